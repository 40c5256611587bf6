/*
 * In the virtual machine: the cgroup part alone, as each caller and from each place of the tree.
 * HUTCH_VM_SETTING says which one this is, so that a place found by luck doesn't pass. Not a
 * criterion test: its processes fork children that check things too, which criterion's runner
 * doesn't take. Each test is a process with a deadline of its own here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel/cgroup.h"

#define MIB (1024ULL * 1024)

enum { TEST_SECONDS = 60, NOT_HERE = 77 };

__attribute__((format(printf, 3, 4))) static void fail(int line, const char *what,
                                                       const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fprintf(stderr, "  line %d: %s: %s\n", line, what, text);
    _exit(1);
}
/* Ends the process on a false one: `check(a == b, "what was seen: %d", a)`. */
#define check(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__LINE__, #condition, " " __VA_ARGS__);                                           \
    } while (0)

static const struct cgroup_limits small = {.memory_bytes = 64 * MIB, .pids = 16, .cpus_milli = 500};

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

static const char *expected_cause;

static enum cgroup_kind expected(void)
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

/* ---- a process in the box ---- */

typedef void program_fn(void);

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

/* Starts `program` in the leaf; a deferred one waits at a pipe until it was adopted. */
static pid_t start(struct cgroup *cgroup, program_fn *program)
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

static int wait_for(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

static struct cgroup create(const struct cgroup_limits *limits)
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

static void destroy(struct cgroup *cgroup)
{
    struct hutch_error err = {0};
    check(cgroup_destroy(cgroup, 5000, &err) == 0, "destroy: %s", err.message);
}

static void text_of(int dir_fd, const char *file, char text[static 128])
{
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    check(fd >= 0, "%s: %s", file, strerror(errno));
    ssize_t len = read(fd, text, 127);
    check(len > 0);
    text[len - 1] = '\0';
    (void)close(fd);
}

/* ---- what runs in it ---- */

static void touch(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; memory != MAP_FAILED && i < bytes; i += 4096)
        memory[i] = 1;
}

static void eat_200m(void)
{
    touch(200 * MIB);
}

static void eat_40m(void)
{
    touch(40 * MIB);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static void child_eats(void)
{
    pid_t pid = fork();
    if (pid == 0)
        eat_200m();
    sleep_on();
}

static void fork_50(void)
{
    for (int i = 0; i < 50; i++)
        if (fork() == 0)
            sleep_on();
}

static void fork_bomb(void)
{
    for (;;)
        (void)fork();
}

static void spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static void nothing(void) {}

/* ---- tests ---- */

/* Where nothing can be had the other tests have nothing to look at. */
#define NEED_CGROUP()                                                                              \
    if (expected() == CGROUP_NONE_HERE)                                                            \
    _exit(NOT_HERE)

static void is_found_where_the_setting_has_it(void)
{
    struct cgroup_place place = CGROUP_PLACE;
    struct hutch_error err = {0};
    char cause[CGROUP_CAUSE_TEXT];
    int r = cgroup_find(CGROUP_ALL, &place, cause, sizeof(cause), &err);
    if (expected() == CGROUP_NONE_HERE) {
        check(r == 1);
        check(strstr(cause, expected_cause) != NULL, "%s", cause);
        return;
    }
    check(r == 0, "%s%s", cause, err.message);
    check(place.kind == expected(), "%d at %s", place.kind, place.path);
    check(place.controllers == CGROUP_ALL, "%s", cause);
    cgroup_place_close(&place);
}

static void has_its_limits_before_a_process(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, sleep_on);
    char text[128];
    text_of(cgroup.dir_fd, "memory.max", text);
    check(strcmp(text, "67108864") == 0, "it is %s", text);
    text_of(cgroup.dir_fd, "memory.swap.max", text);
    check(strcmp(text, "0") == 0, "it is %s", text);
    if (faccessat(cgroup.dir_fd, "memory.zswap.max", F_OK, 0) == 0) {
        text_of(cgroup.dir_fd, "memory.zswap.max", text);
        check(strcmp(text, "0") == 0, "it is %s", text);
    }
    text_of(cgroup.dir_fd, "memory.oom.group", text);
    check(strcmp(text, "1") == 0, "it is %s", text);
    text_of(cgroup.dir_fd, "pids.max", text);
    check(strcmp(text, "16") == 0, "it is %s", text);
    text_of(cgroup.dir_fd, "cpu.max", text);
    check(strcmp(text, "50000 100000") == 0, "it is %s", text);
    check(cgroup_populated(&cgroup) == 1);
    destroy(&cgroup);
    check(WIFSIGNALED(wait_for(pid)));
}

static void ends_a_process_over_the_memory_limit(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    int status = wait_for(start(&cgroup, eat_200m));
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct cgroup_usage usage;
    check(cgroup_usage(&cgroup, &usage, NULL) == 0);
    check(usage.oom_kills >= 1);
    check(usage.oom_kills != CGROUP_UNKNOWN);
    check(usage.memory_peak_bytes > 60 * MIB && usage.memory_peak_bytes <= 64 * MIB, "peak %llu",
          (unsigned long long)usage.memory_peak_bytes);
    check(usage.memory_max_events > 0);
    destroy(&cgroup);
}

static void ends_the_whole_box_with_it_and_wakes_a_poll(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, child_eats);
    struct pollfd event = {.fd = cgroup.memory_events_fd, .events = POLLPRI};
    check(poll(&event, 1, 20000) == 1);
    int status = wait_for(pid);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    event.fd = cgroup.events_fd;
    while (cgroup_populated(&cgroup) == 1)
        check(poll(&event, 1, 20000) == 1);
    destroy(&cgroup);
}

static void counts_no_oom_kill_for_an_ordinary_kill(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, sleep_on);
    (void)kill(pid, SIGKILL);
    (void)wait_for(pid);
    struct cgroup_usage usage;
    check(cgroup_usage(&cgroup, &usage, NULL) == 0);
    check(usage.oom_kills == 0);
    destroy(&cgroup);
}

static void bounds_processes_and_counts_the_refused(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    (void)wait_for(start(&cgroup, fork_50));
    struct cgroup_usage usage;
    check(cgroup_usage(&cgroup, &usage, NULL) == 0);
    check(usage.pids_denied >= 1 && usage.pids_denied < 100, "denied %llu",
          (unsigned long long)usage.pids_denied);
    if (usage.pids_peak != CGROUP_UNKNOWN)
        check(usage.pids_peak == 16);
    destroy(&cgroup);
}

static void ends_a_fork_bomb_at_once(void)
{
    NEED_CGROUP();
    struct cgroup_limits limits = small;
    limits.pids = 200;
    limits.memory_bytes = 1024 * MIB;
    struct cgroup cgroup = create(&limits);
    pid_t pid = start(&cgroup, fork_bomb);
    struct cgroup_usage usage = {0};
    while (usage.pids_denied < 100)
        check(cgroup_usage(&cgroup, &usage, NULL) == 0);
    destroy(&cgroup);
    (void)wait_for(pid);
}

static void keeps_a_fraction_of_a_cpu(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    struct timespec from, to;
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    pid_t pid = start(&cgroup, spin);
    while (cgroup_cpu_usec(&cgroup) < 1000000)
        (void)poll(NULL, 0, 10);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    double wall = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    /* One second of CPU at half a CPU takes two; the last period may be used up to the full. */
    check(wall >= 1.8);
    destroy(&cgroup);
    (void)wait_for(pid);
}

static void shares_no_limit_between_boxes(void)
{
    NEED_CGROUP();
    struct cgroup cgroup[3];
    pid_t pid[3];
    for (int i = 0; i < 3; i++)
        cgroup[i] = create(&small);
    for (int i = 0; i < 3; i++)
        pid[i] = start(&cgroup[i], eat_40m);
    for (int i = 0; i < 3; i++) {
        check(wait_for(pid[i]) == 0);
        destroy(&cgroup[i]);
    }
}

static void says_when_it_is_not_empty_yet(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, sleep_on);
    /* Not reaped, but dead: the second try ends it at the latest. */
    int r = cgroup_destroy(&cgroup, 0, NULL);
    check(r == 0 || r == -EAGAIN);
    if (r == -EAGAIN)
        destroy(&cgroup);
    (void)wait_for(pid);
    check(cgroup_destroy(&cgroup, 0, NULL) == 0);
}

static void removes_nested_children(void)
{
    NEED_CGROUP();
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, nothing);
    check(mkdirat(cgroup.dir_fd, "a", 0755) == 0);
    check(mkdirat(cgroup.dir_fd, "a/b", 0755) == 0);
    check(mkdirat(cgroup.dir_fd, "a/c", 0755) == 0);
    (void)wait_for(pid);
    destroy(&cgroup);
}

/* A process that makes a box with a sleeper in it, says where, and then waits to be killed. */
static pid_t crashing_owner(char path[static CGROUP_PATH_TEXT])
{
    int out[2];
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
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

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void sweeps_what_a_dead_owner_left_and_nothing_else(void)
{
    NEED_CGROUP();
    if (expected() == CGROUP_SCOPE)
        return; /* systemd ends a scope; nothing of ours outlives it */
    char dead[CGROUP_PATH_TEXT], alive[CGROUP_PATH_TEXT];
    pid_t dead_pid = crashing_owner(dead), alive_pid = crashing_owner(alive);
    (void)kill(dead_pid, SIGKILL);
    (void)wait_for(dead_pid);
    check(is_there(dead));
    struct cgroup cgroup = create(&small);
    check(!is_there(dead));
    check(is_there(alive));
    (void)kill(alive_pid, SIGKILL);
    (void)wait_for(alive_pid);
    struct cgroup other = create(&small);
    check(!is_there(alive));
    destroy(&cgroup);
    destroy(&other);
}

static void own_path(char text[static 512])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    check(file != NULL);
    check(fgets(text, 512, file) != NULL);
    (void)fclose(file);
}

static void leaves_no_directory_and_puts_processes_back(void)
{
    NEED_CGROUP();
    char before[512], after[512], path[CGROUP_PATH_TEXT];
    own_path(before);
    struct cgroup cgroup = create(&small);
    pid_t pid = start(&cgroup, nothing);
    (void)wait_for(pid);
    (void)snprintf(path, sizeof(path), "%s", cgroup.path);
    check(is_there(path));
    destroy(&cgroup);
    own_path(after);
    check(strcmp(before, after) == 0, "it is %s", before);
    check(!is_there(path));
    char *slash = strrchr(path, '/');
    (void)snprintf(slash, 16, "/hutch-host");
    while (expected() == CGROUP_SCOPE && is_there(path))
        (void)poll(NULL, 0, 10); /* systemd's part; the test's deadline bounds it */
    check(!is_there(path));
    *slash = '\0';
    check(is_there(path) == (expected() == CGROUP_DELEGATED));
}

static void many_runs(void)
{
    for (int i = 0; i < 10; i++) {
        struct cgroup cgroup = create(&small);
        check(wait_for(start(&cgroup, nothing)) == 0);
        destroy(&cgroup);
    }
}

static void lets_many_processes_do_it_at_once(void)
{
    NEED_CGROUP();
    pid_t pid[8];
    for (size_t i = 0; i < ARRAY_LEN(pid); i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            many_runs();
            _exit(0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(pid); i++)
        check(wait_for(pid[i]) == 0);
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Not a verdict: the numbers for docs/limits.md. */
static void tells_what_it_costs(void)
{
    NEED_CGROUP();
    enum { RUNS = 20 };
    double find = 0, made = 0, started = 0, destroyed = 0;
    for (int i = 0; i < RUNS; i++) {
        double t0 = now();
        struct cgroup_place place = CGROUP_PLACE;
        char cause[CGROUP_CAUSE_TEXT];
        check(cgroup_find(CGROUP_ALL, &place, cause, sizeof(cause), NULL) == 0, "errno %s",
              strerror(errno));
        double t1 = now();
        struct cgroup cgroup = CGROUP;
        check(cgroup_create(&place, &small, CGROUP_ALL, &cgroup, cause, sizeof(cause), NULL) == 0,
              "errno %s", strerror(errno));
        double t2 = now();
        pid_t pid = start(&cgroup, nothing);
        double t3 = now();
        (void)wait_for(pid);
        double t4 = now();
        destroy(&cgroup);
        double t5 = now();
        cgroup_place_close(&place);
        find += t1 - t0;
        made += t2 - t1;
        started += t3 - t2;
        destroyed += t5 - t4;
    }
    printf("cost us: find %.0f create %.0f start %.0f destroy %.0f\n", find / RUNS, made / RUNS,
           started / RUNS, destroyed / RUNS);
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
    TEST(is_found_where_the_setting_has_it),
    TEST(has_its_limits_before_a_process),
    TEST(ends_a_process_over_the_memory_limit),
    TEST(ends_the_whole_box_with_it_and_wakes_a_poll),
    TEST(counts_no_oom_kill_for_an_ordinary_kill),
    TEST(bounds_processes_and_counts_the_refused),
    TEST(ends_a_fork_bomb_at_once),
    TEST(keeps_a_fraction_of_a_cpu),
    TEST(shares_no_limit_between_boxes),
    TEST(says_when_it_is_not_empty_yet),
    TEST(removes_nested_children),
    TEST(sweeps_what_a_dead_owner_left_and_nothing_else),
    TEST(leaves_no_directory_and_puts_processes_back),
    TEST(lets_many_processes_do_it_at_once),
    TEST(tells_what_it_costs),
};

static int run_one(size_t index)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(TEST_SECONDS);
        tests[index].run();
        (void)fflush(stdout);
        _exit(0);
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    return status;
}

int main(void)
{
    size_t passed = 0, failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
        int status = run_one(i);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
            continue;
        (void)printf("%s %s\n", status == 0 ? "ok  " : "FAIL", tests[i].name);
        passed += status == 0;
        failed += status != 0;
    }
    (void)printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
