/*
 * probe.c - reads the settings of this machine, and has everything else tried.
 */
#include "kernel/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/memfd.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dl.h"
#include "base/error.h"
#include "kernel/caps.h"
#include "kernel/step/sys.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define TEXT_MAX (1U << 20) /* of a file in /proc */

/* ---- files of /proc -------------------------------------------------------------------------- */

static int read_text(const char *path, struct buf *buf)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int r = buf_read_fd(buf, fd, TEXT_MAX);

    buf_put(buf, "", 1);
    return r < 0 ? r : buf->failed;
}

static int64_t read_number(const char *path)
{
    _cleanup_buf_ struct buf text = BUF(0);
    long long number;

    if (read_text(path, &text) < 0 || sscanf(text.data, "%lld", &number) != 1 || number < 0)
        return PROBE_ABSENT;
    return number;
}

/* The number behind a line's name in /proc/self/status; 0 if there is no such line. */
static int status_number(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    int number = 0;

    return at != NULL && sscanf(at + strlen(name), " %d", &number) == 1 ? number : 0;
}

/* "inside outside count" lines. */
static bool map_has(const char *map, uint32_t id)
{
    for (const char *line = map; line != NULL && *line != '\0';) {
        unsigned inside, outside, count;
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && id >= inside &&
            id - inside < count)
            return true;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return false;
}

static bool is_mapped(const char *path, uint32_t id)
{
    _cleanup_buf_ struct buf map = BUF(0);

    return read_text(path, &map) < 0 || map_has(map.data, id);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

struct mount_line {
    char point[512], options[256], type[32];
};

static bool parse_mount(const char *line, struct mount_line *ret)
{
    const char *end = strchr(line, '\n');
    const char *dash = strstr(line, " - ");

    if (dash == NULL || (end != NULL && dash > end))
        return false;
    return sscanf(line, "%*s %*s %*s %*s %511s %255s", ret->point, ret->options) == 2 &&
           sscanf(dash, " - %31s", ret->type) == 1;
}

/* A mount of the kernel's own on one of its empty directories hides nothing. */
static bool hides_nothing(const struct mount_line *mount)
{
    return strcmp(mount->type, "binfmt_misc") == 0 || strcmp(mount->type, "autofs") == 0 ||
           strcmp(mount->type, "nfsd") == 0;
}

void probe_proc_covers(const char *mountinfo, char *ret_covers, size_t size, bool *ret_readonly)
{
    struct mount_line mount;
    size_t len = 0;

    ret_covers[0] = '\0';
    *ret_readonly = false;
    for (const char *line = mountinfo; line != NULL && *line != '\0';) {
        bool parsed = parse_mount(line, &mount);
        if (parsed && strcmp(mount.point, "/proc") == 0)
            *ret_readonly =
                strncmp(mount.options, "ro", 2) == 0 && strchr(",", mount.options[2]) != NULL;
        if (parsed && strncmp(mount.point, "/proc/", 6) == 0 && !hides_nothing(&mount) &&
            len < size)
            len += (size_t)snprintf(ret_covers + len, size - len, "%s%s", len > 0 ? " " : "",
                                    mount.point);
        line = strchr(line, '\n');
        line += line != NULL;
    }
}

/* In a chroot the mount that "/" lies in has another point than "/", or none that we see. */
static bool sees_root_mount(const char *mountinfo)
{
    struct mount_line mount;

    for (const char *line = mountinfo; line != NULL && *line != '\0';) {
        if (parse_mount(line, &mount) && strcmp(mount.point, "/") == 0)
            return true;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return false;
}

static void observe_proc(struct probe *probe)
{
    _cleanup_buf_ struct buf status = BUF(0), mounts = BUF(0);

    probe->has_proc = read_text("/proc/self/status", &status) == 0;
    if (!probe->has_proc)
        return;
    probe->seccomp_mode = status_number(status.data, "\nSeccomp:");
    probe->id_unmapped =
        !is_mapped("/proc/self/uid_map", geteuid()) || !is_mapped("/proc/self/gid_map", getegid());
    if (read_text("/proc/self/mountinfo", &mounts) == 0) {
        probe_proc_covers(mounts.data, probe->proc_covers, sizeof(probe->proc_covers),
                          &probe->proc_readonly);
        probe->chrooted = !sees_root_mount(mounts.data);
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

static void observe_sysctls(struct probe *probe)
{
    _cleanup_buf_ struct buf pattern = BUF(0), profile = BUF(0);

    probe->unprivileged_userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone");
    probe->apparmor_restrict_userns =
        read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if (read_text("/proc/self/attr/apparmor/current", &profile) == 0)
        (void)snprintf(probe->apparmor, sizeof(probe->apparmor), "%.*s",
                       (int)strcspn(profile.data, " \n"), profile.data);
    probe->memfd_noexec = read_number("/proc/sys/vm/memfd_noexec");
    if (read_text("/proc/sys/kernel/core_pattern", &pattern) == 0)
        probe->core_pattern = pattern.data[0];
    for (enum probe_ns ns = 0; ns < PROBE_NS_COUNT; ns++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", probe_ns_name(ns));
        probe->ns[ns].maximum = read_number(path);
    }
}

static uint64_t hard_limit(__rlimit_resource_t resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) < 0 || limit.rlim_max == RLIM_INFINITY ? UINT64_MAX
                                                                              : limit.rlim_max;
}

static void observe_process(struct probe *probe)
{
    static const unsigned ADMIN[] = {CAP_SYS_ADMIN};
    struct utsname name;

    if (uname(&name) == 0) {
        (void)snprintf(probe->kernel, sizeof(probe->kernel), "%s", name.release);
        (void)sscanf(name.release, "%u.%u", &probe->major, &probe->minor);
    }
    probe->euid = geteuid();
    probe->privileged = caps_have(ADMIN, 1);
    probe->open_files = hard_limit(RLIMIT_NOFILE);
    probe->processes = hard_limit(RLIMIT_NPROC);
    probe->core = hard_limit(RLIMIT_CORE);
}

/* ---- what one call tells --------------------------------------------------------------------- */

/* As launch makes it for init; kernels before 6.3 don't know the flag and don't need it. */
static int try_memfd(void)
{
    _cleanup_close_ int fd = memfd_create("hutch-doctor", MFD_CLOEXEC | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("hutch-doctor", MFD_CLOEXEC);
    return fd < 0 ? errno : 0;
}

static void observe_calls(struct probe *probe)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    long r = sys_call(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);

    probe->seccomp_error = r < 0 ? (int)-r : 0;
    r = sys_call(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    probe->landlock_error = r < 0 ? (int)-r : 0;
    probe->memfd_error = try_memfd();
}

static void observe_cgroup(struct probe *probe)
{
    _cleanup_cgroup_place_ struct cgroup_place place = CGROUP_PLACE;
    struct hutch_error err;
    int r = cgroup_find(CGROUP_ALL, &place, probe->cgroup_cause, sizeof(probe->cgroup_cause), &err);

    probe->has_cgroup = r == 0;
    if (r < 0)
        (void)snprintf(probe->cgroup_cause, sizeof(probe->cgroup_cause), "%.*s",
                       CGROUP_CAUSE_TEXT - 1, err.message);
}

static void observe_libseccomp(struct probe *probe)
{
    void *compile = NULL, *handle = NULL;
    const struct dl_symbol symbols[] = {{"seccomp_export_bpf", &compile}};
    struct hutch_error err;

    if (dl_open("libseccomp.so.2", "libseccomp2", symbols, ARRAY_LEN(symbols), HUTCH_STAGE_HOST,
                &handle, &err) < 0)
        (void)snprintf(probe->libseccomp, sizeof(probe->libseccomp), "%.*s", FINDING_TEXT - 1,
                       err.message);
    dl_close(handle);
}

void probe_observe(struct probe *probe)
{
    *probe = (struct probe){0};
    observe_process(probe);
    observe_proc(probe);
    observe_sysctls(probe);
    observe_calls(probe);
    observe_cgroup(probe);
    observe_libseccomp(probe);
    probe->has_newuidmap =
        access("/usr/bin/newuidmap", X_OK) == 0 || access("/usr/local/bin/newuidmap", X_OK) == 0;
    probe_namespaces(probe);
    probe_steps(probe);
    probe->net.error = PROBE_NOT_TRIED;
    if (probe->ns[PROBE_NS_NET].error == 0)
        probe_network(&probe->net);
}
