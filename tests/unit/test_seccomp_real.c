/*
 * test_seccomp_real.c - the shipped profiles on the kernel itself: real programs run under them,
 * outside any box, and calls are refused with the errno that the filter was made for. Each
 * refused call is first made without a filter, where it must answer something else.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_secret.h"
#include "support/spawn.h"

#define EXEC_FD 1023
#define AT_EMPTY 0x1000

extern char **environ;

/* ---- under a filter ---- */

static int install(const struct sock_filter *insns, unsigned short len)
{
    struct sock_fprog program = {.len = len, .filter = (struct sock_filter *)(uintptr_t)insns};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static struct policy_program load(const char *name, bool watchdog)
{
    struct policy_program program = {0};
    struct hutch_error err;
    cr_assert_eq(policy_load(name, watchdog, &program, &err), 0);
    return program;
}

static void under_filter(void *arg)
{
    const struct policy_program *program = arg;
    if (install(program->insns, program->len) < 0)
        _exit(125);
}

/* tool: the filter's one exec, as a box makes it. Never returns. */
static void exec_by_fd(void *arg)
{
    const struct policy_program *program = arg;
    struct sock_filter armed[POLICY_MAX_INSNS];
    const struct rlimit files = {1000, 1000};
    uint64_t secret = 0;
    char python[] = "/usr/bin/python3", isolated[] = "-I", no_site[] = "-S";
    char script[] = HUTCH_SOURCE "/tests/unit/seccomp/tool.py";
    char *argv[] = {python, isolated, no_site, script, NULL};
    memcpy(armed, program->insns, program->len * sizeof(*armed));
    int fd = open(python, O_PATH | O_CLOEXEC);
    if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret) || fd < 0 ||
        dup3(fd, EXEC_FD, O_CLOEXEC) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0 ||
        policy_secret_put(armed, program->len, secret) < 0 || install(armed, program->len) < 0)
        _exit(125);
    syscall(SYS_execveat, EXEC_FD, "", argv, environ, AT_EMPTY, secret);
    _exit(126);
}

/* Runs a command under a profile, in a fresh directory; it must end with "all ok". */
static void run_under(const char *name, bool watchdog, void (*child)(void *),
                      const char *const *argv)
{
    char dir[] = "/tmp/hutch-seccomp-XXXXXX";
    _cleanup_(policy_program_free) struct policy_program program = load(name, watchdog);
    cr_assert_not_null(mkdtemp(dir));
    struct spawn spec = {.argv = argv, .cwd = dir, .child = child, .arg = &program};
    _cleanup_output_ struct output output = spawn_run(&spec);
    cr_expect_eq(output.exit_code, 0, "%s: exit %d, signal %d: %s", name, output.exit_code,
                 output.signal, output.err);
    cr_expect(strstr(output.out, "all ok"), "%s: %s%s", name, output.out, output.err);
    spec = (struct spawn){.argv = LIST("rm", "-rf", dir)};
    _cleanup_output_ struct output removed = spawn_run(&spec);
}

#define SCRIPT(name) HUTCH_SOURCE "/tests/unit/seccomp/" name

Test(seccomp_real, python_works_under_python)
{
    const char *const *argv = LIST("/usr/bin/python3", "-S", SCRIPT("python.py"));
    run_under("python", false, under_filter, argv);
    run_under("python", true, under_filter, argv);
}

Test(seccomp_real, python_works_under_default)
{
    run_under("default", true, under_filter, LIST("/usr/bin/python3", "-S", SCRIPT("python.py")));
}

Test(seccomp_real, numpy_and_threads_work_under_tool)
{
    run_under("tool", false, exec_by_fd, LIST("unused"));
    run_under("tool", true, exec_by_fd, LIST("unused"));
}

Test(seccomp_real, node_works_under_node)
{
    const char *const *argv = LIST("/usr/bin/node", SCRIPT("node.js"));
    run_under("node", false, under_filter, argv);
    run_under("node", true, under_filter, argv);
}

Test(seccomp_real, a_shell_and_its_tools_work_under_default)
{
    const char *const *argv = LIST("/bin/bash", SCRIPT("default.sh"));
    run_under("default", false, under_filter, argv);
    run_under("default", true, under_filter, argv);
}

/* ---- single calls ---- */

struct call {
    const char *profile;
    long number;
    long args[6];
    int want; /* errno under the profile */
    bool watchdog;
};

static int errno_of(const struct call *call)
{
    errno = 0;
    (void)syscall(call->number, call->args[0], call->args[1], call->args[2], call->args[3],
                  call->args[4], call->args[5]);
    return errno;
}

/* getpid by int 0x80; the kernel may be built without it (then the process dies of SIGSEGV). */
static int errno_of_int80(void)
{
    long answer = 20;
    __asm__ volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
    return answer < 0 ? (int)-answer : 0;
}

/* In a process of its own, with the profile or without one; the errno is its exit status. */
static int call_in_child(const struct call *call, const struct policy_program *program)
{
    int status = 0;
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        if (program && install(program->insns, program->len) < 0)
            _exit(255);
        _exit(call->number < 0 ? errno_of_int80() : errno_of(call));
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static char word[64];
#define WORD ((long)(uintptr_t)word)
#define INT80 (-1)
#define NOBODY 0x7fffffff /* no process has that id */

static const struct call CALLS[] = {
    {"python", SYS_clone3, {0, 0}, ENOSYS},
    {"python", SYS_unshare, {0}, EPERM},
    {"python", SYS_setns, {-1, 0}, EPERM},
    {"python", SYS_io_uring_setup, {0, 0}, ENOSYS},
    {"python", SYS_getxattr, {0, 0, 0, 0}, EOPNOTSUPP},
    {"python", SYS_socket, {16, 3, 0}, EPERM},
    {"python", SYS_socket, {16 | 1L << 32, 3, 0}, EPERM},
    {"python", SYS_socket, {2, 1, 262}, EPERM},
    {"python", SYS_ioctl, {-1, 0x5412, 0}, EPERM},
    {"python", SYS_ioctl, {-1, 0x5412 | 1L << 32, 0}, EPERM},
    {"python", SYS_fcntl, {-1, 1024, 0}, EPERM},
    {"python", SYS_prctl, {4, 1, 0, 0, 0}, EPERM},
    {"python", SYS_prlimit64, {0, 4, WORD, 0}, EPERM},
    {"python", SYS_prlimit64, {0, 4 | 1L << 32, WORD, 0}, EPERM},
    {"python", SYS_setsockopt, {-1, 6, 31, 0, 0}, EPERM},
    {"python", SYS_chmod, {WORD, 04755}, EPERM},
    {"python", SYS_openat, {-1, WORD, 0101, 02755 | 1L << 32}, EPERM},
    {"python", SYS_openat2, {-1, 0, 0, 0}, ENOSYS},
    {"python", SYS_mmap, {0, 0, 3, 0x40022, -1, 0}, EPERM},
    {"python", SYS_mmap, {0, 0, 3, 0x21, -1, 0}, EPERM, true},
    {"python", SYS_setsockopt, {-1, 1, 7, 0, 0}, EPERM, true},
    {"python", SYS_prlimit64, {NOBODY, 7, WORD, 0}, EPERM},
    {"python", SYS_getpid | 0x40000000, {0}, ENOSYS},
    {"python", SYS_socket | 0x40000000, {1, 1, 0}, ENOSYS},
    {"python", INT80, {0}, ENOSYS},
    {"tool", SYS_execve, {0, 0, 0}, EPERM},
    {"tool", SYS_execveat, {EXEC_FD, 0, 0, 0, AT_EMPTY, 0}, EPERM},
    {"tool", SYS_socket, {1, 1, 0}, EPERM},
    {"tool", INT80, {0}, ENOSYS},
    {"node", SYS_flock, {-1, 0}, ENOSYS},
    {"node", SYS_socket | 0x40000000, {1, 1, 0}, ENOSYS},
    {"node", INT80, {0}, ENOSYS},
    {"default", SYS_setrlimit, {4, WORD}, EPERM},
    {"default", SYS_creat, {WORD, 04755}, EPERM},
    {"default", SYS_mknod, {WORD, 0104755, 0}, EPERM},
    {"default", SYS_sched_setaffinity, {NOBODY, 0, 0}, EPERM},
    {"default", SYS_sched_setaffinity, {NOBODY, 0, 0}, EPERM, true},
    {"default", SYS_setpriority, {0, NOBODY, 0}, EPERM},
    {"default", SYS_personality, {0x0400000}, EPERM},
    {"default", SYS_ptrace, {0}, EPERM},
    {"default", SYS_keyctl, {0, -3, 0}, EPERM},
    {"default", SYS_splice, {-1, 0, -1, 0, 0, 0}, ENOSYS},
    {"default", SYS_getpid | 0x40000000, {0}, ENOSYS},
    {"default", INT80, {0}, ENOSYS},
};

/* x32 is off in most kernels; then the control can't tell the filter from the kernel, and what
 * the filter itself says is in test_seccomp.c. */
static bool control_is_blind(const struct call *call, int without)
{
    return (call->number > 0x40000000 && without == ENOSYS) ||
           (call->number == INT80 && without == -SIGSEGV);
}

Test(seccomp_real, refuses_calls_on_the_kernel)
{
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        const struct call *call = &CALLS[i];
        _cleanup_(policy_program_free) struct policy_program program =
            load(call->profile, call->watchdog);
        int without = call_in_child(call, NULL);
        if (!control_is_blind(call, without))
            cr_expect_neq(without, call->want, "%s, row %zu: the control", call->profile, i);
        int with = call_in_child(call, &program);
        cr_expect_eq(with, call->want, "%s, row %zu: %d", call->profile, i, with);
    }
}

/* ---- the hole that the secret closes ---- */

static const char *exec_path;
static uint64_t exec_secret;

/* Tries to start another program by execveat's absolute path, with the right secret or not. */
static void exec_other(void *arg)
{
    const struct policy_program *program = arg;
    struct sock_filter armed[POLICY_MAX_INSNS];
    char name[] = "echo", text[] = "all ok";
    char *argv[] = {name, text, NULL};
    memcpy(armed, program->insns, program->len * sizeof(*armed));
    if (policy_secret_put(armed, program->len, 0x1234567890abcdefULL) < 0 ||
        install(armed, program->len) < 0)
        _exit(125);
    syscall(SYS_execveat, EXEC_FD, exec_path, argv, environ, AT_EMPTY, exec_secret);
    _exit(errno);
}

Test(seccomp_real, an_absolute_path_does_not_pass_for_the_one_exec)
{
    _cleanup_(policy_program_free) struct policy_program program = load("tool", false);
    struct spawn spec = {.argv = LIST("unused"), .child = exec_other, .arg = &program};
    exec_path = "/bin/echo";
    exec_secret = 0x1234567890abcdefULL; /* the control: the kernel does ignore the fd */
    _cleanup_output_ struct output control = spawn_run(&spec);
    cr_assert_eq(control.exit_code, 0);
    cr_assert_str_eq(control.out, "all ok\n");
    exec_secret = (uint64_t)POLICY_SECRET_HIGH << 32 | POLICY_SECRET_LOW;
    _cleanup_output_ struct output refused = spawn_run(&spec);
    cr_expect_eq(refused.exit_code, EPERM);
    cr_expect_eq(refused.out_len, 0);
}
