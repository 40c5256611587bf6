/*
 * seccomp_file.c - a user's profile: read, translated by libseccomp, put on the floor.
 *
 * A user may allow what the shipped profiles don't. What may never be allowed stands in
 * policy/floor.json (and in policy/watchdog.json, whose rules the floor's filter has where no
 * cgroup counts the box's memory). The floor's filter runs first: where it would let a call
 * through, it goes on in the user's.
 */
#include "kernel/seccomp_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dl.h"
#include "base/error.h"
#include "kernel/seccomp_profile.h"

struct library {
    void *handle;
    struct profile_lib calls;
};

static void close_library(struct library *library)
{
    dl_close(library->handle);
}

static int open_library(struct library *library, struct hutch_error *err)
{
    struct profile_lib *calls = &library->calls;
    const struct dl_symbol symbols[] = {
        {"seccomp_init", &calls->init},
        {"seccomp_release", &calls->release},
        {"seccomp_attr_set", &calls->attr_set},
        {"seccomp_rule_add_array", &calls->rule_add_array},
        {"seccomp_syscall_resolve_name", &calls->resolve_name},
        {"seccomp_export_bpf", &calls->export_bpf},
    };
    return dl_open("libseccomp.so.2", "libseccomp2", symbols, ARRAY_LEN(symbols),
                   HUTCH_STAGE_POLICY, &library->handle, err);
}

static int cannot(const char *path, int code, struct hutch_error *err)
{
    return error_errno(err, HUTCH_STAGE_REQUEST, code, "policy %s", path);
}

int policy_read_file(const char *path, struct buf *buf, struct hutch_error *err)
{
    struct stat st;
    /* Non-blocking: a FIFO must not hold us up before it is refused. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot(path, errno, err);
    if (!S_ISREG(st.st_mode))
        return error_request(err, "policy %s: not a regular file", path);
    int r = buf_read_fd(buf, fd, POLICY_FILE_MAX_BYTES);
    if (r == -EFBIG)
        return error_request(err, "policy %s: over %u bytes", path, POLICY_FILE_MAX_BYTES);
    return r < 0 ? cannot(path, -r, err) : 0;
}

static int put_on_floor(struct profile_code *user, enum policy_variant variant,
                        struct policy_program *ret, struct hutch_error *err)
{
    const struct policy_code *floor = &policy_shipped_find("floor")->code[variant];
    _cleanup_profile_code_ struct profile_code code = {0};
    int r = profile_chain(&code, 0, floor->insns, floor->len, err);
    if (r == 0)
        r = profile_chain(&code, SECCOMP_RET_ALLOW, user->insns, user->len, err);
    if (r < 0)
        return r;
    *ret = (struct policy_program){
        .insns = code.insns, .owned = code.insns, .len = (unsigned short)code.len};
    code = (struct profile_code){0};
    return 0;
}

int policy_load_text(const char *name, const char *json, size_t json_len,
                     enum policy_variant variant, struct policy_program *ret, struct buf *notes,
                     struct hutch_error *err)
{
    _cleanup_(close_library) struct library library = {0};
    _cleanup_profile_ struct profile profile = {0};
    _cleanup_profile_code_ struct profile_code code = {0};
    int r = profile_parse(name, json, json_len, &profile, notes, err);
    if (r == 0)
        r = open_library(&library, err);
    if (r == 0)
        r = profile_compile(name, NULL, &profile, &library.calls, &code, notes, err);
    if (r == 0)
        r = put_on_floor(&code, variant, ret, err);
    return r;
}

int policy_load_file(const char *path, enum policy_variant variant, struct policy_program *ret,
                     struct hutch_error *err)
{
    _cleanup_buf_ struct buf json = BUF(POLICY_FILE_MAX_BYTES + 1);
    int r = policy_read_file(path, &json, err);
    if (r == 0)
        r = policy_load_text(path, json.data, json.len, variant, ret, NULL, err);
    return r;
}
