/* test_spawn.c - processes that borrow the host's memory until they execute something. */
#include "kernel/spawn.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/host.h"

TestSuite(spawn, .timeout = 60);

static struct hutch_error err;

static void expect_no_child(void)
{
    cr_assert(waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

static struct spawn spawn_of(int exe_fd)
{
    struct spawn spawn = {
        .namespaces = CLONE_NEWUSER, .cgroup_fd = -1, .exe_fd = exe_fd, .fds_len = 3};
    for (unsigned i = 0; i < SPAWN_FDS_MAX; i++)
        spawn.fds[i] = -1;
    return spawn;
}

/* The exit status of a program that was spawned, awaited through its pidfd. */
static int status_of(pid_t pid, int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    int status = -1;
    cr_assert_eq(poll(&fd, 1, 30000), 1);
    cr_assert_eq(waitpid(pid, &status, __WALL), pid);
    return status;
}

/* As init is: a static program without arguments or environment. */
static int program(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0, "%s", path);
    return fd;
}

Test(spawn, runs_a_program_from_its_fd)
{
    _cleanup_close_ int exe = program("/bin/true"), pidfd = -1;
    const struct spawn spawn = spawn_of(exe);
    int in_cgroup = 7;
    pid_t pid = 0;
    cr_assert_eq(spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err), 0, "%s", err.message);
    cr_assert_eq(in_cgroup, 0);
    cr_assert_neq(fcntl(pidfd, F_GETFD) & FD_CLOEXEC, 0);
    cr_assert_eq(status_of(pid, pidfd), 0);
    expect_no_child();
}

Test(spawn, makes_the_namespaces)
{
    _cleanup_close_ int exe = program("/bin/cat"), pidfd = -1;
    int in[2], out[2], in_cgroup;
    char its[64] = "", mine[64] = "", echo = 0;
    pid_t pid = 0;
    cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    struct spawn spawn = spawn_of(exe);
    spawn.namespaces = CLONE_NEWUSER | CLONE_NEWUTS;
    spawn.fds[0] = in[0];
    spawn.fds[1] = out[1];
    cr_assert_eq(spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err), 0, "%s", err.message);
    cr_assert_eq(write(in[1], "x", 1), 1);
    cr_assert_eq(read(out[0], &echo, 1), 1); /* cat is there, its fds are in place */
    cr_assert_gt(readlink(text_format("/proc/%d/ns/uts", pid), its, sizeof its - 1), 0);
    cr_assert_gt(readlink("/proc/self/ns/uts", mine, sizeof mine - 1), 0);
    cr_assert_str_neq(its, mine);
    spawn_end(pid, pidfd);
    expect_no_child();
}

/* An open file with that text, at a number from `from` up. */
static int text_fd(const char *text, int from)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, from);
    cr_assert_geq(moved, from);
    close(fd);
    return moved;
}

/* Every order of the caller's numbers, also those that are each other's targets. The
 * targets are above the numbers that criterion uses. */
Test(spawn, places_fds_that_stand_in_each_others_way)
{
    enum { FIRST = 30 };
    static const int ORDERS[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    static const char SCRIPT[] = "a=$(cat /dev/fd/30) b=$(cat /dev/fd/31) c=$(cat /dev/fd/32)\n"
                                 "test $a$b$c = 012 || exit 9\n"
                                 "for fd in 3 29 33 60; do test ! -e /proc/self/fd/$fd || exit 8\n"
                                 "done\n";
    for (size_t i = 0; i < ARRAY_LEN(ORDERS); i++) {
        _cleanup_close_ int exe = program("/bin/sh"), pidfd = -1;
        struct spawn spawn = spawn_of(exe);
        pid_t pid = 0;
        int in_cgroup;
        spawn.fds_len = FIRST + 3;
        spawn.fds[0] = text_fd(SCRIPT, 60);
        for (int k = 0; k < 3; k++) { /* text k is at one target's number and wanted at another */
            int fd = text_fd(text_format("%d\n", k), 60);
            spawn.fds[FIRST + k] = dup3(fd, FIRST + ORDERS[i][k], O_CLOEXEC);
            close(fd);
        }
        cr_assert_eq(spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err), 0, "%s", err.message);
        cr_expect_eq(status_of(pid, pidfd), 0, "order %zu", i);
        close(spawn.fds[0]);
        for (int k = 0; k < 3; k++)
            close(FIRST + k);
    }
}

Test(spawn, a_program_that_cant_be_executed_leaves_nothing)
{
    _cleanup_close_ int exe = program("/etc/passwd");
    const struct spawn spawn = spawn_of(exe);
    const char *before = fds_now();
    int pidfd = -7, in_cgroup = -7;
    pid_t pid = -7;
    cr_assert_eq(spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err), -EACCES, "%s", err.message);
    cr_assert(err.stage == HUTCH_STAGE_LAUNCH && strstr(err.message, "execute init"), "%s",
              err.message);
    cr_assert(pid == -7 && pidfd == -7 && in_cgroup == -7, "outputs were touched");
    expect_no_child();
    cr_assert_str_eq(fds_now(), before);
}

Test(spawn, fds_without_room_are_named)
{
    _cleanup_close_ int exe = program("/bin/true");
    struct spawn spawn = spawn_of(exe);
    struct rlimit limit;
    int pidfd, in_cgroup;
    pid_t pid;
    spawn.fds_len = SPAWN_FDS_MAX;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit few = {SPAWN_FDS_MAX, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert(r == -EINVAL || r == -EMFILE, "%d", r);
    cr_assert(strstr(err.message, "limit of open files"), "%s", err.message);
    expect_no_child();
}

Test(spawn, what_the_kernel_refuses_has_a_remedy)
{
    _cleanup_close_ int exe = program("/bin/true");
    struct spawn spawn = spawn_of(exe);
    int pidfd, in_cgroup;
    pid_t pid;
    spawn.namespaces = CLONE_NEWUSER | CLONE_FS; /* which exclude each other */
    cr_assert_eq(spawn_init(&spawn, &pid, &pidfd, &in_cgroup, &err), -EINVAL);
    cr_assert(err.stage == HUTCH_STAGE_LAUNCH && strstr(err.message, "CONFIG_USER_NS"), "%s",
              err.message);
    expect_no_child();
}

Test(spawn, waiting_ends_when_told)
{
    char its[64] = "", mine[64] = "";
    sigset_t before = {0}, after = {0};
    int pidfd = -1;
    pid_t pid = 0;
    (void)sigprocmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(spawn_waiting(CLONE_NEWUSER, &pid, &pidfd, &err), 0, "%s", err.message);
    (void)sigprocmask(SIG_SETMASK, NULL, &after);
    cr_assert_eq(memcmp(&before, &after, sizeof before), 0, "the signal mask changed");
    cr_assert_gt(readlink(text_format("/proc/%d/ns/user", pid), its, sizeof its - 1), 0);
    cr_assert_gt(readlink("/proc/self/ns/user", mine, sizeof mine - 1), 0);
    cr_assert_str_neq(its, mine);
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    cr_assert_eq(poll(&fd, 1, 0), 0, "it waits");
    spawn_end(pid, pidfd);
    expect_no_child();
    close(pidfd);
}

Test(spawn, ending_what_has_ended_is_fine)
{
    int pidfd = -1;
    pid_t pid = 0;
    cr_assert_eq(spawn_waiting(CLONE_NEWUSER, &pid, &pidfd, &err), 0, "%s", err.message);
    spawn_end(pid, pidfd);
    spawn_end(pid, pidfd);
    expect_no_child();
    close(pidfd);
}
