/*
 * program.c - the last steps, in the program's own process, in the order of box/init/steps.c.
 *
 * Capabilities go before the filter because dropping them needs calls that no profile allows;
 * no_new_privs comes before Landlock and seccomp because both demand it; file descriptors are
 * cut when nothing opens any more; seccomp is last, so that its profile needs to allow nothing
 * but what the program itself does.
 */
#include "kernel/seccomp_secret.h"
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

#define SYS_ENOENT 2
#define SYS_EIO 5
#define SYS_EACCES 13
#define SYS_EINVAL 22
#define SYS_ENOTDIR 20
#define SYS_ENAMETOOLONG 36

#define SIGNALS 64

struct sys_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* Must: give the program default actions and nothing blocked: clone3 keeps ignored signals
 * ignored, and a host written in Python ignores SIGPIPE. */
int step_signals(struct step_state *s)
{
    const struct sys_sigaction standard = {0};
    const uint64_t none = 0;

    s->object = "signal actions";
    for (int signal = 1; signal <= SIGNALS; signal++)
        if (signal != 9 && signal != 19) { /* SIGKILL, SIGSTOP */
            long r = step_call(__NR_rt_sigaction, signal, &standard, 0, sizeof(none));
            if (r < 0)
                return (int)r;
        }
    return (int)step_call(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, sizeof(none));
}

/* Must: leave the program without a controlling terminal and in a group of its own. */
int step_session(struct step_state *s)
{
    long r;

    (void)sys_call(__NR_umask, 022);
    s->object = "session";
    r = step_call(__NR_setsid);
    return r < 0 ? (int)r : 0;
}

/* `count` CPUs of the caller's, from the one that the kernel has just put this process on: it was
 * the idlest, and every other choice would wait behind somebody. */
static void choose_cpus(const uint64_t *allowed, uint32_t words, uint32_t count, uint32_t first,
                        uint64_t *ret_mask)
{
    const uint32_t bits = words * 64;

    for (uint32_t i = 0; i < bits && count > 0; i++) {
        uint32_t cpu = (first + i) % bits;
        uint64_t bit = 1ULL << (cpu % 64);
        if (allowed[cpu / 64] & bit) {
            ret_mask[cpu / 64] |= bit;
            count--;
        }
    }
}

int step_schedule(struct step_state *s)
{
    const struct plan_header *p = s->plan;
    uint64_t mask[PLAN_CPU_WORDS] = {0};
    uint32_t cpu = 0;

    if (p->cpus == 0 || p->affinity.count == 0)
        return 0;
    s->object = "CPU affinity";
    (void)sys_call(__NR_getcpu, &cpu, 0, 0);
    choose_cpus(plan_at(s, p->affinity.offset), p->affinity.count, p->cpus, cpu, mask);
    return (int)step_call(__NR_sched_setaffinity, 0, p->affinity.count * sizeof(uint64_t), mask);
}

/* Must: come while CAP_SETPCAP is still held. */
int step_drop_bounding(struct step_state *s)
{
    s->object = "bounding set";
    for (int cap = 0; cap < 64; cap++) {
        long r = step_call(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
        if (r == -SYS_EINVAL && cap > 0)
            return 0; /* the kernel's last capability is behind us */
        if (r < 0)
            return (int)r;
    }
    return 0;
}

#define SECURE_BITS                                                                                \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                               \
     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |       \
     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Must: come while CAP_SETPCAP is still held. */
int step_lock_securebits(struct step_state *s)
{
    s->object = "securebits";
    return (int)step_call(__NR_prctl, PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0);
}

/* Must: empty all sets, the inheritable one too, or a file capability could bring one back. */
int step_drop_capabilities(struct step_state *s)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    long r;

    s->object = "ambient set";
    r = step_call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (r < 0)
        return (int)r;
    s->object = "capability sets";
    return (int)step_call(__NR_capset, &header, none);
}

int step_no_new_privs(struct step_state *s)
{
    s->object = "PR_SET_NO_NEW_PRIVS";
    return (int)step_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

struct rlimit_pair {
    uint64_t soft, hard;
};

/* Must: open the interpreter at a number above the hard limit that it then sets, so that the
 * number, which is all that the profile allows to be executed, can never be filled again. */
int step_exec_fd(struct step_state *s)
{
    struct rlimit_pair limit = {0};
    long fd, r;

    if ((s->plan->flags & PLAN_FLAG_EXEC_BY_FD) == 0)
        return 0;
    s->object = "limit of open files (1024 must be allowed)";
    r = step_call(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
    limit.soft = limit.hard;
    if (r >= 0)
        r = step_call(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
    if (r < 0)
        return (int)r;
    s->object = plan_text(s, s->plan->program);
    fd = step_call(__NR_openat, AT_FDCWD, s->object, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    s->object = "fd of the interpreter (the hard limit of open files must be at least 1024)";
    r = step_call(__NR_dup3, fd, PLAN_EXEC_FD, O_CLOEXEC);
    sys_close((int)fd);
    limit.soft = limit.hard = PLAN_EXEC_NOFILE;
    if (r >= 0)
        r = step_call(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
    return r < 0 ? (int)r : 0;
}

/* Must: leave the program 0, 1, 2 and its result fd; init's own go at the exec. */
int step_program_fds(struct step_state *s)
{
    unsigned first = (s->plan->flags & PLAN_FLAG_RESULT_FD) ? PLAN_FD_RESULT + 1 : PLAN_FD_RESULT;

    s->object = "file descriptors";
    return (int)step_call(__NR_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC);
}

int step_install_filter(struct step_state *s, struct plan_span filter)
{
    struct sock_fprog program = {
        .len = (unsigned short)filter.count,
        .filter = (struct sock_filter *)(uintptr_t)plan_at(s, filter.offset),
    };

    return (int)step_call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Must: be the last step. An exec-by-fd profile gets a secret that only the one exec knows
 * (kernel/seccomp_secret.h says why); our copy of the plan ends at that exec. */
int step_seccomp(struct step_state *s)
{
    if (s->plan->flags & PLAN_FLAG_EXEC_BY_FD) {
        struct sock_filter *filter =
            (struct sock_filter *)(uintptr_t)plan_at(s, s->plan->seccomp.offset);
        s->object = "secret of the one exec";
        if (step_call(__NR_getrandom, &s->exec_secret, sizeof(s->exec_secret), 0) !=
            (long)sizeof(s->exec_secret))
            return -SYS_EIO;
        if (policy_secret_put(filter, s->plan->seccomp.count, s->exec_secret) < 0)
            return -SYS_EINVAL;
    }
    s->object = "seccomp profile";
    return step_install_filter(s, s->plan->seccomp);
}

/* A span of text offsets becomes the kernel's array of pointers, in place: the mapping is ours. */
static char **pointers(struct step_state *s, struct plan_span span)
{
    uint64_t *slots = (uint64_t *)(uintptr_t)plan_at(s, span.offset);

    for (uint32_t i = 0; i < span.count; i++)
        if (slots[i] != 0)
            slots[i] = (uint64_t)(uintptr_t)(s->block + slots[i]);
    return (char **)slots;
}

static long exec_in(const char *dir, const char *name, char **argv, char **env)
{
    char path[4096];
    size_t len = 0;

    if (text_len(dir) + text_len(name) + 2 > sizeof(path))
        return -SYS_ENAMETOOLONG;
    text_add(path, sizeof(path), &len, dir);
    text_add(path, sizeof(path), &len, "/");
    text_add(path, sizeof(path), &len, name);
    return sys_call(__NR_execve, path, argv, env);
}

/* As execvp(3) looks: a file that may not be executed is remembered, the search goes on. */
static long exec_by_name(struct step_state *s, const char *name, char **argv, char **env)
{
    const uint32_t *dirs = plan_at(s, s->plan->path_dirs.offset);
    long found = -SYS_ENOENT;

    for (uint32_t i = 0; i < s->plan->path_dirs.count; i++) {
        long r = exec_in(plan_text(s, dirs[i]), name, argv, env);
        if (r != -SYS_ENOENT && r != -SYS_ENOTDIR && r != -SYS_EACCES)
            return r;
        if (r == -SYS_EACCES)
            found = r;
    }
    return found;
}

static int has_slash(const char *text)
{
    while (*text != '\0' && *text != '/')
        text++;
    return *text == '/';
}

int step_exec(struct step_state *s)
{
    const char *program = plan_text(s, s->plan->program);
    char **argv = pointers(s, s->plan->argv);
    char **env = pointers(s, s->plan->env);

    s->object = program;
    if (s->plan->flags & PLAN_FLAG_EXEC_BY_FD)
        return (int)sys_call(__NR_execveat, PLAN_EXEC_FD, "", argv, env, AT_EMPTY_PATH,
                             s->exec_secret);
    if (has_slash(program))
        return (int)sys_call(__NR_execve, program, argv, env);
    return (int)exec_by_name(s, program, argv, env);
}
