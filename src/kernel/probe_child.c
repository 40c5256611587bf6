/*
 * probe_child.c - namespaces, mounts and system calls, each tried by itself.
 *
 * A copy of the process is made for each try (raw clone, as launch would make it where clone3 is
 * missing), does it, writes the errno into shared memory and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/probe.h"
#include "kernel/spawn.h"
#include "kernel/step/mount.h"
#include "kernel/step/sys.h"

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

int probe_child(uint64_t namespaces, void (*fn)(void *arg), void *arg)
{
    long pid = sys_call(__NR_clone, namespaces | SIGCHLD, 0, 0, 0, 0);

    if (pid < 0)
        return (int)pid;
    if (pid == 0) {
        fn(arg);
        (void)sys_call(__NR_exit_group, 0);
    }
    wait_for((pid_t)pid);
    return 0;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint64_t flag;
} NAMESPACES[PROBE_NS_COUNT] = {
    [PROBE_NS_USER] = {"user", CLONE_NEWUSER},       [PROBE_NS_PID] = {"pid", CLONE_NEWPID},
    [PROBE_NS_MOUNT] = {"mnt", CLONE_NEWNS},         [PROBE_NS_NET] = {"net", CLONE_NEWNET},
    [PROBE_NS_IPC] = {"ipc", CLONE_NEWIPC},          [PROBE_NS_UTS] = {"uts", CLONE_NEWUTS},
    [PROBE_NS_CGROUP] = {"cgroup", CLONE_NEWCGROUP}, [PROBE_NS_TIME] = {"time", CLONE_NEWTIME},
};

const char *probe_ns_name(enum probe_ns ns)
{
    return (unsigned)ns < PROBE_NS_COUNT ? NAMESPACES[ns].name : "?";
}

/* The kernel refuses CLONE_SIGHAND without CLONE_VM as invalid before it looks at anything else:
 * whoever answers otherwise is a filter in front of it. */
static bool is_filtered(uint64_t flag)
{
    long self = sys_call(__NR_getpid);
    long r = sys_call(__NR_clone, flag | CLONE_SIGHAND, 0, 0, 0, 0);

    if (r == 0 && sys_call(__NR_getpid) != self)
        (void)sys_call(__NR_exit_group, 0); /* it was made after all: no kernel that we know */
    if (r > 0)
        wait_for((pid_t)r);
    return r != -EINVAL;
}

/* Namespaces of time can't be asked from clone: their bit is part of its exit signal. */
static void make_time(void *arg)
{
    *(int *)arg = (int)-sys_call(__NR_unshare, CLONE_NEWTIME);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void *shared_new(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static int try_time(void)
{
    int *error = shared_new(sizeof(*error));
    int r, answer;

    if (error == NULL)
        return PROBE_NOT_TRIED;
    *error = PROBE_NOT_TRIED;
    r = probe_child(CLONE_NEWUSER, make_time, error);
    answer = r < 0 ? -r : *error;
    (void)munmap(error, sizeof(*error));
    return answer;
}

void probe_namespaces(struct probe *probe)
{
    for (enum probe_ns ns = 0; ns < PROBE_NS_COUNT; ns++) {
        struct probe_ns_state *state = &probe->ns[ns];
        if (ns != PROBE_NS_TIME)
            state->filtered = is_filtered(NAMESPACES[ns].flag);
        if (ns != PROBE_NS_USER && probe->ns[PROBE_NS_USER].error != 0)
            state->error = PROBE_NOT_TRIED;
        else if (ns == PROBE_NS_TIME)
            state->error = try_time();
        else
            state->error = -probe_child(CLONE_NEWUSER | NAMESPACES[ns].flag, nothing, NULL);
    }
    probe->clone3_error = (int)-sys_call(__NR_clone3, NULL, 0);
    if (probe->clone3_error == EINVAL)
        probe->clone3_error = 0;
}

/* ---- system calls ---------------------------------------------------------------------------- */

#define NOWHERE (-1L) /* an fd and a set of flags that there never are */

/* Each with arguments that the kernel refuses as invalid, once it looks at them at all. The child
 * has every capability over its own namespaces, so that this comes before any question of rights.
 */
static const struct {
    const char *name;
    long number;
    long a, b, c, d, e;
} CALLS[] = {
    {"close_range", __NR_close_range, 2, 1, 0, 0, 0},
    {"execveat", __NR_execveat, NOWHERE, 0, 0, 0, NOWHERE},
    {"fsconfig", __NR_fsconfig, NOWHERE, 0, 0, 0, 0},
    {"fsmount", __NR_fsmount, NOWHERE, NOWHERE, NOWHERE, 0, 0},
    {"fsopen", __NR_fsopen, 0, NOWHERE, 0, 0, 0},
    {"memfd_create", __NR_memfd_create, 0, 0, 0, 0, 0},
    {"mount", __NR_mount, 0, 0, 0, 0, 0},
    {"mount_setattr", __NR_mount_setattr, NOWHERE, 0, NOWHERE, 0, 0},
    {"move_mount", __NR_move_mount, NOWHERE, 0, NOWHERE, 0, NOWHERE},
    {"open_tree", __NR_open_tree, NOWHERE, 0, NOWHERE, 0, 0},
    {"openat2", __NR_openat2, NOWHERE, 0, 0, 0, 0},
    {"pidfd_open", __NR_pidfd_open, 0, 0, 0, 0, 0},
    {"pidfd_send_signal", __NR_pidfd_send_signal, NOWHERE, 0, 0, NOWHERE, 0},
    {"pivot_root", __NR_pivot_root, 0, 0, 0, 0, 0},
    {"prctl", __NR_prctl, NOWHERE, 0, 0, 0, 0},
    {"seccomp", __NR_seccomp, NOWHERE, 0, 0, 0, 0},
    {"setresuid", __NR_setresuid, -1, -1, -1, 0, 0},
    {"umount2", __NR_umount2, 0, NOWHERE, 0, 0, 0},
    {"unshare", __NR_unshare, 1, 0, 0, 0, 0},
};

static bool is_refusal(long r)
{
    return r == -EPERM || r == -EACCES || r == -ENOSYS;
}

static void try_calls(struct probe_call *calls)
{
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        long r =
            sys_call(CALLS[i].number, CALLS[i].a, CALLS[i].b, CALLS[i].c, CALLS[i].d, CALLS[i].e);
        calls[i] = (struct probe_call){CALLS[i].name, is_refusal(r) ? (int)-r : 0};
    }
}

/* ---- the first steps of a box ---------------------------------------------------------------- */

struct steps {
    uint32_t uid, gid;
    int errors[PROBE_STEP_COUNT];
    struct probe_call calls[PROBE_CALLS_MAX];
};

static int write_text(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return errno;
    return 0;
}

static int write_maps(uint32_t uid, uint32_t gid)
{
    char line[32];
    int error = write_text("/proc/self/setgroups", "deny");

    (void)snprintf(line, sizeof(line), "1000 %u 1\n", uid);
    if (error == 0)
        error = write_text("/proc/self/uid_map", line);
    (void)snprintf(line, sizeof(line), "1000 %u 1\n", gid);
    return error != 0 ? error : write_text("/proc/self/gid_map", line);
}

static int error_of(int fd)
{
    return fd < 0 ? -fd : 0;
}

/* Over a tmpfs of ours, as an unprivileged overlay can be had since 5.11. */
static int make_overlay(int tmpfs)
{
    static const struct mount_option OPTIONS[] = {
        {"lowerdir", "lower"}, {"upperdir", "upper"}, {"workdir", "scratch"}, {"userxattr", NULL}};
    int r = (int)sys_call(__NR_fchdir, tmpfs);

    for (size_t i = 0; r >= 0 && i < 3; i++)
        r = (int)sys_call(__NR_mkdirat, tmpfs, OPTIONS[i].value, 0755);
    return error_of(r < 0 ? r : mount_new("overlay", OPTIONS, ARRAY_LEN(OPTIONS), 0));
}

static void run_steps(void *arg)
{
    struct steps *s = arg;
    const unsigned quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    int tmpfs;

    try_calls(s->calls);
    s->errors[PROBE_STEP_MAP] = write_maps(s->uid, s->gid);
    s->errors[PROBE_STEP_PRIVATE] =
        (int)-sys_call(__NR_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    s->errors[PROBE_STEP_CLONE] = error_of(mount_clone(AT_FDCWD, "/usr"));
    s->errors[PROBE_STEP_PROC] = error_of(mount_new("proc", NULL, 0, quiet));
    s->errors[PROBE_STEP_DEVPTS] = error_of(mount_new("devpts", NULL, 0, quiet));
    tmpfs = mount_new("tmpfs", NULL, 0, quiet);
    s->errors[PROBE_STEP_TMPFS] = error_of(tmpfs);
    if (tmpfs < 0)
        return;
    s->errors[PROBE_STEP_ATTACH] = error_of(mount_over_root(tmpfs));
    if (s->errors[PROBE_STEP_ATTACH] == 0 && s->errors[PROBE_STEP_MAP] == 0)
        s->errors[PROBE_STEP_OVERLAY] = make_overlay(tmpfs);
}

void probe_steps(struct probe *probe)
{
    static const enum probe_ns WANTED[] = {PROBE_NS_USER, PROBE_NS_PID, PROBE_NS_MOUNT};
    struct steps *s = shared_new(sizeof(*s));
    uint64_t flags = 0;

    for (size_t i = 0; i < PROBE_STEP_COUNT; i++)
        probe->step_errors[i] = PROBE_NOT_TRIED;
    for (size_t i = 0; i < ARRAY_LEN(WANTED); i++)
        if (probe->ns[WANTED[i]].error == 0)
            flags |= NAMESPACES[WANTED[i]].flag;
    if (s == NULL || !(flags & CLONE_NEWUSER) || !(flags & CLONE_NEWNS))
        return;
    *s = (struct steps){.uid = geteuid(), .gid = getegid()};
    memcpy(s->errors, probe->step_errors, sizeof(s->errors));
    if (probe_child(flags, run_steps, s) == 0) {
        memcpy(probe->step_errors, s->errors, sizeof(s->errors));
        memcpy(probe->calls, s->calls, sizeof(s->calls));
        probe->calls_len = ARRAY_LEN(CALLS);
        if (!(flags & CLONE_NEWPID))
            probe->step_errors[PROBE_STEP_PROC] = PROBE_NOT_TRIED;
    }
    (void)munmap(s, sizeof(*s));
}
