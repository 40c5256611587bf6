/*
 * policy - compiles the files of policy/ into a C table, when hutch is built.
 *
 *     policy FILE.. > policies.c
 *
 * The translation is the library's own (src/kernel/seccomp_json.c, seccomp_compile.c); only the
 * way to libseccomp differs. Anything that a user's file is merely warned about is an error here.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_profile.h"

static const struct profile_lib LIB = {
    .init = seccomp_init,
    .release = seccomp_release,
    .attr_set = seccomp_attr_set,
    .rule_add_array = seccomp_rule_add_array,
    .resolve_name = seccomp_syscall_resolve_name,
    .export_bpf = seccomp_export_bpf,
};

static const char *const VARIANTS[POLICY_VARIANTS] = {"CGROUP", "WATCHDOG"};
/* The profile whose rules stand before all others' in the watchdog's variant. */
#define FIRST "watchdog"

/* Not for a request: init's own filter, what stands under every user's file, and what stands
 * before every profile in the one variant. */
static bool is_internal(const char *name)
{
    return strcmp(name, "init") == 0 || strcmp(name, "floor") == 0 || strcmp(name, FIRST) == 0;
}

static int profile_name(const char *path, char *ret_name, size_t size, struct hutch_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t len = dot ? (size_t)(dot - base) : strlen(base);
    if (len == 0 || len >= size || strspn(base, "abcdefghijklmnopqrstuvwxyz") != len)
        return error_request(err, "%s: a profile's file is named by small letters", path);
    memcpy(ret_name, base, len);
    ret_name[len] = '\0';
    return 0;
}

static int read_file(const char *path, struct buf *buf, struct hutch_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, HUTCH_STAGE_HOST, errno, "%s", path);
    int r = buf_read_fd(buf, fd, POLICY_FILE_MAX_BYTES);
    return r < 0 ? error_errno(err, HUTCH_STAGE_HOST, r, "%s", path) : 0;
}

static void put_string(const char *text, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            fputs(i + 1 < len ? "\\n\"\n    \"" : "\\n", stdout);
        else if (c == '"' || c == '\\' || c < ' ' || c > '~' || c == '?')
            printf("\\%03o", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void put_code(const char *name, const char *variant, const struct profile_code *code)
{
    printf("static const struct sock_filter %s_%s[] = {\n", name, variant);
    for (size_t i = 0; i < code->len; i++)
        printf("    {0x%02x, %u, %u, 0x%08x},\n", code->insns[i].code, code->insns[i].jt,
               code->insns[i].jf, code->insns[i].k);
    puts("};");
}

static int compile(const char *name, const struct profile *first, const struct buf *json,
                   struct buf *row, struct hutch_error *err)
{
    _cleanup_profile_ struct profile profile = {0};
    _cleanup_buf_ struct buf notes = BUF(1 << 16);
    int r = profile_parse(name, json->data, json->len, &profile, &notes, err);
    for (int v = 0; r == 0 && v < POLICY_VARIANTS; v++) {
        _cleanup_profile_code_ struct profile_code code = {0};
        r = profile_compile(name, v == POLICY_WATCHDOG ? first : NULL, &profile, &LIB, &code,
                            &notes, err);
        if (r == 0)
            put_code(name, VARIANTS[v], &code);
    }
    if (r == 0 && notes.len > 0)
        return error_request(err, "%s: %.*s", name, (int)notes.len, notes.data);
    if (r == 0)
        printf("static const char %s_JSON[] =\n    ", name);
    if (r == 0)
        put_string(json->data, json->len);
    if (r == 0)
        printf(";\nstatic const char %s_COMMENT[] = ", name);
    if (r == 0)
        put_string(profile.comment ? profile.comment : "",
                   profile.comment ? strlen(profile.comment) : 0);
    puts(";");
    buf_printf(
        row,
        "    {\"%s\", %s_COMMENT, %s_JSON, sizeof(%s_JSON) - 1, %s,\n"
        "     {{%s_CGROUP, ARRAY_LEN(%s_CGROUP)}, {%s_WATCHDOG, ARRAY_LEN(%s_WATCHDOG)}}},\n",
        name, name, name, name, is_internal(name) ? "true" : "false", name, name, name, name);
    return r;
}

static int add_file(const char *path, const struct profile *first, struct buf *rows,
                    struct hutch_error *err)
{
    char name[32];
    _cleanup_buf_ struct buf json = BUF(POLICY_FILE_MAX_BYTES + 1);
    int r = profile_name(path, name, sizeof(name), err);
    if (r == 0)
        r = read_file(path, &json, err);
    if (r == 0)
        r = compile(name, first, &json, rows, err);
    return r;
}

static int read_first(int argc, char **argv, struct profile *first, struct hutch_error *err)
{
    char name[32];
    for (int i = 1; i < argc; i++) {
        _cleanup_buf_ struct buf json = BUF(POLICY_FILE_MAX_BYTES + 1);
        int r = profile_name(argv[i], name, sizeof(name), err);
        if (r == 0 && strcmp(name, FIRST) != 0)
            continue;
        if (r == 0)
            r = read_file(argv[i], &json, err);
        return r == 0 ? profile_parse(name, json.data, json.len, first, NULL, err) : r;
    }
    return error_request(err, "no file is called " FIRST ".json");
}

int main(int argc, char **argv)
{
    _cleanup_buf_ struct buf rows = BUF(1 << 16);
    _cleanup_profile_ struct profile first = {0};
    struct hutch_error err;
    if (read_first(argc, argv, &first, &err) < 0) {
        fprintf(stderr, "policy: %s\n", err.message);
        return 1;
    }
    puts("/* Made from policy/ by tools/policy: don't edit. */\n"
         "#include \"base/cleanup.h\"\n#include \"kernel/seccomp.h\"\n");
    for (int i = 1; i < argc; i++)
        if (add_file(argv[i], &first, &rows, &err) < 0) {
            fprintf(stderr, "policy: %s\n", err.message);
            return 1;
        }
    if (rows.failed)
        return 1;
    printf("\nconst struct policy_shipped POLICY_SHIPPED[] = {\n%.*s};\n"
           "const size_t POLICY_SHIPPED_LEN = ARRAY_LEN(POLICY_SHIPPED);\n",
           (int)rows.len, rows.data);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
