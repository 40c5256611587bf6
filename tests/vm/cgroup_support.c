/* What the files of the cgroup test share (cgroup_test.h). */
#include "cgroup_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

void fail(int line, const char *what, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fprintf(stderr, "  line %d: %s: %s\n", line, what, text);
    _exit(1);
}
const struct cgroup_limits small = {.memory_bytes = 64 * MIB, .pids = 16, .cpus_milli = 500};

static const struct {
    const char *name;
    enum cgroup_kind kind;
    const char *cause; /* what it says where there is none */
} settings[] = {
    {"root", CGROUP_SLICE, NULL},          {"user", CGROUP_DELEGATED, NULL},
    {"session", CGROUP_SCOPE, NULL},       {"none", CGROUP_NONE_HERE, "loginctl enable-linger"},
    {"service", CGROUP_DELEGATED, NULL},   {"service-root", CGROUP_DELEGATED, NULL},
    {"container", CGROUP_DELEGATED, NULL}, {"readonly", CGROUP_NONE_HERE, "Read-only file system"},
};

const char *expected_cause;

enum cgroup_kind expected(void)
{
    const char *name = getenv("HUTCH_VM_SETTING");
    check(name != NULL, "HUTCH_VM_SETTING is not set");
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (strcmp(settings[i].name, name) == 0) {
            expected_cause = settings[i].cause;
            return settings[i].kind;
        }
    check(0, "unknown setting %s", name);
    abort();
}

bool setting_is(const char *name)
{
    const char *setting = getenv("HUTCH_VM_SETTING");
    return setting && strcmp(setting, name) == 0;
}

/* ---- a process in the box ---- */

static pid_t clone_into(int dir_fd)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (dir_fd >= 0) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)dir_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static struct cgroup_keeper start_keeper(void)
{
    int hold[2];
    check(pipe2(hold, O_CLOEXEC) == 0, "%s", strerror(errno));
    struct clone_args args = {.flags = CLONE_PIDFD};
    struct cgroup_keeper keeper = {.pidfd = -1, .hold_fd = hold[1]};
    args.pidfd = (uint64_t)(uintptr_t)&keeper.pidfd;
    keeper.pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    check(keeper.pid >= 0, "%s", strerror(errno));
    if (keeper.pid == 0) {
        char byte;
        (void)dup2(hold[0], 0);
        (void)close_range(1, ~0U, 0);
        (void)!read(0, &byte, 1);
        _exit(0);
    }
    (void)close(hold[0]);
    return keeper;
}

pid_t start(struct cgroup *cgroup, program_fn *program)
{
    int go[2];
    check(pipe2(go, O_CLOEXEC) == 0);
    pid_t pid = clone_into(cgroup->dir_fd);
    check(pid >= 0, "clone3: %s", strerror(errno));
    if (pid == 0) {
        char byte;
        (void)close(go[1]);
        ssize_t len = read(go[0], &byte, 1);
        /* As the exec of a real box would: the lock must end with its owner. */
        (void)close_range(3, ~0U, 0);
        if (len == 1)
            program();
        _exit(0);
    }
    struct hutch_error err = {0};
    struct cgroup_keeper keeper = {0};
    int r = 0;
    if (cgroup->deferred) {
        keeper = start_keeper();
        r = cgroup_adopt(cgroup, pid, &keeper, &err);
    }
    check(r == 0, "adopt: %s", err.message);
    check(write(go[1], "g", 1) == 1);
    (void)close(go[0]);
    (void)close(go[1]);
    return pid;
}

int wait_for(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

struct cgroup create(const struct cgroup_limits *limits)
{
    struct cgroup cgroup = CGROUP;
    struct hutch_error err = {0};
    char cause[CGROUP_CAUSE_TEXT];
    int r = cgroup_create(NULL, limits, CGROUP_ALL, &cgroup, cause, sizeof(cause), &err);
    check(r == 0, "create: %d, %s%s", r, cause, err.message);
    check(cgroup.controllers == CGROUP_ALL, "%s", cause);
    check(cause[0] == '\0', "it is %s", cause);
    return cgroup;
}

void destroy(struct cgroup *cgroup)
{
    struct hutch_error err = {0};
    check(cgroup_destroy(cgroup, 5000, &err) == 0, "destroy: %s", err.message);
}

void text_of(int dir_fd, const char *file, char text[static 128])
{
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    check(fd >= 0, "%s: %s", file, strerror(errno));
    ssize_t len = read(fd, text, 127);
    check(len > 0);
    text[len - 1] = '\0';
    (void)close(fd);
}

bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

void own_path(char text[static CGROUP_PATH_TEXT])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    check(file != NULL);
    check(fgets(text, CGROUP_PATH_TEXT, file) != NULL);
    (void)fclose(file);
}

void sleep_on(void)
{
    for (;;)
        pause();
}

void nothing(void) {}

/* ---- places ---- */

void put(const char *dir, const char *file, const char *text)
{
    char path[CGROUP_PATH_TEXT];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fd >= 0, "%s: %s", path, strerror(errno));
    check(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path, strerror(errno));
    (void)close(fd);
}

void expect_text(const char *dir, const char *file, const char *expected_text)
{
    char path[CGROUP_PATH_TEXT], text[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    check(len >= 0, "%s: %s", path, strerror(errno));
    text[len > 0 ? len - 1 : 0] = '\0';
    (void)close(fd);
    check(strcmp(text, expected_text) == 0, "%s is `%s`", path, text);
}

void make_place(const char *path, uid_t owner)
{
    static const char *const FILES[] = {"", "cgroup.procs", "cgroup.threads",
                                        "cgroup.subtree_control"};
    check(mkdir(path, 0755) == 0, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        char file[CGROUP_PATH_TEXT];
        (void)snprintf(file, sizeof(file), "%s/%s", path, FILES[i]);
        check(chown(file, owner, owner) == 0, "%s: %s", file, strerror(errno));
    }
    if (owner == ROOT)
        check(setxattr(path, "trusted.delegate", "1", 1, 0) == 0, "%s", strerror(errno));
}

void end_place(const char *path)
{
    check(rmdir(path) == 0, "%s: %s", path, strerror(errno));
}

void widen_top(void)
{
    put(TOP, "cgroup.subtree_control", "+memory +pids +cpu");
}

/* While there are boxes the kernel takes nobody in beside them. */
static void enter(const char *place)
{
    char host_leaf[CGROUP_PATH_TEXT];
    (void)snprintf(host_leaf, sizeof(host_leaf), "%.4000s/hutch-host", place);
    put(is_there(host_leaf) ? host_leaf : place, "cgroup.procs", "0");
}

void in_place(const char *place, uid_t user, void (*test)(const char *place))
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        enter(place);
        check(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
        test(place);
        _exit(0);
    }
    check(wait_for(pid) == 0);
}

int create_any(struct cgroup *cgroup, char cause[static CGROUP_CAUSE_TEXT])
{
    struct hutch_error err = {0};
    int r = cgroup_create(NULL, &small, CGROUP_ALL, cgroup, cause, CGROUP_CAUSE_TEXT, &err);
    check(r >= 0, "%s", err.message);
    return r;
}

void make_box(const char *place, unsigned controllers)
{
    struct cgroup cgroup = CGROUP;
    char cause[CGROUP_CAUSE_TEXT];
    check(create_any(&cgroup, cause) == 0, "%s", cause);
    check(cgroup.controllers == controllers, "%x: %s", cgroup.controllers, cause);
    check(strncmp(cgroup.path, place, strlen(place)) == 0, "it is in %s", cgroup.path);
    check(cgroup.path[strlen(place)] == '/', "it is in %s", cgroup.path);
    check(wait_for(start(&cgroup, nothing)) == 0);
    destroy(&cgroup);
}

void expect_untouched(const char *place)
{
    expect_text(place, "cgroup.subtree_control", "");
    expect_text(place, "cgroup.type", "domain");
    char path[CGROUP_PATH_TEXT];
    (void)snprintf(path, sizeof(path), "%s/hutch-host", place);
    check(!is_there(path));
}

pid_t start_owner(const char *place, uid_t user, char path[static CGROUP_PATH_TEXT])
{
    int out[2];
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        if (place) {
            enter(place);
            check(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
        }
        struct cgroup cgroup = create(&small);
        (void)start(&cgroup, sleep_on);
        (void)!write(out[1], cgroup.path, sizeof(cgroup.path));
        sleep_on();
    }
    (void)close(out[1]);
    check(read(out[0], path, CGROUP_PATH_TEXT) == CGROUP_PATH_TEXT);
    (void)close(out[0]);
    return pid;
}

void end_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)wait_for(pid);
}

double seconds(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
