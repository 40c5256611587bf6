/*
 * spawn.c - clone3 and the few instructions between it and the exec.
 *
 * The child runs on a small stack inside the parent's frame while the parent stands still, in the
 * parent's address space: so no libc, no allocation, no errno, nothing written but its own
 * struct, and never set*id or PR_SET_DUMPABLE (they would act on the host's memory).
 */
#include "kernel/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kernel/step/sys.h"

#define STACK_BYTES 16384

struct child {
    const struct spawn *spawn;
    const char *failed; /* what it was doing, when... */
    long error;         /* ...this is not 0 */
};

/* Capabilities of the new user namespace vanish at the exec, because the id isn't mapped yet:
 * only ambient ones stay, and every one is needed (a subset breaks overlay and time
 * namespaces). */
static long keep_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    long r = sys_call(__NR_capget, &header, sets);

    if (r < 0)
        return r;
    sets[0].inheritable = sets[0].permitted;
    sets[1].inheritable = sets[1].permitted;
    r = sys_call(__NR_capset, &header, sets);
    for (int cap = 0; r >= 0 && cap < 64; cap++) {
        r = sys_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
        if (r == -EINVAL && cap > 0)
            return 0; /* behind the kernel's last one */
    }
    return r;
}

/* First out of the way of every target number, then into place: no order of the caller's fds
 * can then make one overwrite another. */
static long place_fds(const struct spawn *spawn, int *exe_fd)
{
    long moved[SPAWN_FDS_MAX];
    long r = 0;

    for (unsigned i = 0; i < spawn->fds_len; i++) {
        moved[i] = spawn->fds[i] < 0
                       ? -1
                       : sys_call(__NR_fcntl, spawn->fds[i], F_DUPFD_CLOEXEC, spawn->fds_len);
        if (moved[i] < 0 && spawn->fds[i] >= 0)
            return moved[i];
    }
    r = sys_call(__NR_fcntl, *exe_fd, F_DUPFD_CLOEXEC, spawn->fds_len);
    *exe_fd = (int)r;
    for (unsigned i = 0; r >= 0 && i < spawn->fds_len; i++)
        r = moved[i] >= 0 ? sys_call(__NR_dup2, moved[i], i) : (sys_close((int)i), 0);
    return r;
}

static int child_main(void *arg)
{
    static const char *const ARGV[] = {"hutch-init", NULL};
    static const char *const ENV[] = {NULL};
    struct child *child = arg;
    int exe_fd = child->spawn->exe_fd;
    long r = keep_capabilities();

    child->failed = "keep the capabilities of the new user namespace";
    if (r >= 0) {
        child->failed = "put the box's file descriptors in place (raise the limit of open files)";
        r = place_fds(child->spawn, &exe_fd);
    }
    if (r >= 0) {
        child->failed = "execute init from its sealed memory file (vm.memfd_noexec must not be 2)";
        r = sys_call(__NR_execveat, exe_fd, "", ARGV, ENV, AT_EMPTY_PATH);
    }
    child->error = r;
    return 127;
}

/* The parent ends it before its call returns; should the parent's thread die meanwhile, so does
 * this. */
static void __attribute__((noreturn)) wait_for_end(void)
{
    (void)sys_call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (;;)
        (void)sys_call(__NR_pause);
}

/* One instruction sequence for clone3 and clone: the child, on its new stack, calls fn(arg) and
 * exits with what it returns. */
static long clone_call(long nr, long a1, long a2, long a3, int (*fn)(void *), void *arg)
{
    long ret;
    register int (*fn_register)(void *) __asm__("r12") = fn;
    register void *arg_register __asm__("r13") = arg;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $60, %%eax\n\t" /* exit: this thread of execution only */
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(nr), "D"(a1), "S"(a2), "d"(a3), "r"(fn_register), "r"(arg_register),
                       "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return ret;
}

struct request {
    uint64_t flags;
    int cgroup_fd;
    char *stack;
    int (*fn)(void *);
    void *arg;
};

static long call_clone3(const struct request *q, int *pidfd)
{
    struct clone_args args = {
        .flags = q->flags | CLONE_PIDFD | CLONE_CLEAR_SIGHAND |
                 (q->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .stack = (uint64_t)(uintptr_t)q->stack,
        .stack_size = STACK_BYTES,
        .cgroup = q->cgroup_fd >= 0 ? (uint64_t)q->cgroup_fd : 0,
    };
    size_t size = q->cgroup_fd >= 0 ? CLONE_ARGS_SIZE_VER2 : CLONE_ARGS_SIZE_VER0;

    return clone_call(__NR_clone3, (long)(uintptr_t)&args, (long)size, 0, q->fn, q->arg);
}

static long call_clone(const struct request *q, int *pidfd)
{
    uintptr_t top = ((uintptr_t)q->stack + STACK_BYTES) & ~(uintptr_t)15;

    return clone_call(__NR_clone, (long)(q->flags | CLONE_PIDFD), (long)top, (long)(uintptr_t)pidfd,
                      q->fn, q->arg);
}

/* A signal handler must not run in the child: it would act on the host's memory. */
static long clone_quietly(const struct request *q, int *pidfd, int *ret_in_cgroup)
{
    sigset_t all, before;
    long pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    *ret_in_cgroup = q->cgroup_fd >= 0;
    pid = call_clone3(q, pidfd);
    if (pid == -ENOSYS) { /* a container's filter answers so, to make libc use clone */
        *ret_in_cgroup = 0;
        pid = call_clone(q, pidfd);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static const char *clone_remedy(long error)
{
    switch (-error) {
    case EPERM:
        return "user namespaces are forbidden here: a container's seccomp profile, "
               "kernel.unprivileged_userns_clone=0 or "
               "kernel.apparmor_restrict_unprivileged_userns=1; `hutch doctor` says which";
    case ENOSPC:
        return "user.max_user_namespaces (or another user.max_*_namespaces) is used up or 0: "
               "raise it with sysctl";
    case EAGAIN:
        return "the limit of processes is reached (ulimit -u, or the cgroup's pids.max)";
    case EINVAL:
        return "this kernel lacks a namespace (CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, ...)";
    default:
        return "`hutch doctor` looks for the cause";
    }
}

/* The child never returns from its frames, so AddressSanitizer's marks around their variables
 * would stay on the stack that it borrowed. */
static void forget_frames(const char *stack)
{
#ifdef __SANITIZE_ADDRESS__
    void __asan_unpoison_memory_region(void const volatile *, size_t);
    __asan_unpoison_memory_region(stack, STACK_BYTES);
#else
    (void)stack;
#endif
}

int spawn_init(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd, int *ret_in_cgroup,
               struct hutch_error *err)
{
    char stack[STACK_BYTES] __attribute__((aligned(16)));
    struct child child = {.spawn = spawn};
    struct request q = {.flags = spawn->namespaces | CLONE_VM | CLONE_VFORK,
                        .cgroup_fd = spawn->cgroup_fd,
                        .stack = stack,
                        .fn = child_main,
                        .arg = &child};
    int pidfd = -1, in_cgroup = 0;
    long pid = clone_quietly(&q, &pidfd, &in_cgroup);

    forget_frames(stack);
    if (pid < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, (int)pid, "make the box's namespaces (%s)",
                           clone_remedy(pid));
    if (child.error != 0) {
        spawn_end((pid_t)pid, pidfd);
        close_fd(&pidfd);
        return error_errno(err, HUTCH_STAGE_LAUNCH, (int)child.error, "%s", child.failed);
    }
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    *ret_in_cgroup = in_cgroup;
    return 0;
}

/* A plain clone that copies the address space: the parent has to go on while this one waits, so
 * it can't borrow the stack. Only runs with idmapped binds in root mode pay for it. */
int spawn_waiting(uint64_t namespaces, pid_t *ret_pid, int *ret_pidfd, struct hutch_error *err)
{
    sigset_t all, before;
    int pidfd = -1;
    long pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = sys_call(__NR_clone, namespaces | CLONE_PIDFD, 0, &pidfd, 0, 0);
    if (pid == 0)
        wait_for_end();
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, (int)pid, "make a namespace (%s)",
                           clone_remedy(pid));
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    return 0;
}

void spawn_end(pid_t pid, int pidfd)
{
    (void)sys_call(__NR_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}
