/*
 * In the virtual machine: the cgroup part alone, as each caller and from each place of the tree.
 * HUTCH_VM_SETTING says which one this is, so that a place found by luck doesn't pass. Not a
 * criterion test: its processes fork children that check things too, which criterion's runner
 * doesn't take. Each test is a process with a deadline of its own here.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "cgroup_test.h"

enum { TEST_SECONDS = 60 };

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

/* ---- tests ---- */

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
    /* Half a CPU is what they have for their ends, too. */
    struct hutch_error err = {0};
    check(cgroup_destroy(&cgroup, 40000, &err) == 0, "destroy: %s", err.message);
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

static void sweeps_what_a_dead_owner_left_and_nothing_else(void)
{
    NEED_CGROUP();
    if (expected() == CGROUP_SCOPE)
        return; /* systemd ends a scope; nothing of ours outlives it */
    char dead[CGROUP_PATH_TEXT], alive[CGROUP_PATH_TEXT];
    pid_t dead_pid = start_owner(NULL, getuid(), dead),
          alive_pid = start_owner(NULL, getuid(), alive);
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

static void leaves_no_directory_and_puts_processes_back(void)
{
    NEED_CGROUP();
    char before[CGROUP_PATH_TEXT], after[CGROUP_PATH_TEXT], path[CGROUP_PATH_TEXT];
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

static const struct vm_test tests[] = {
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

static int run_one(const struct vm_test *test)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(TEST_SECONDS);
        test->run();
        (void)fflush(stdout);
        _exit(0);
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    return status;
}

static void run_all(const struct vm_test *all, size_t len, size_t *passed, size_t *failed)
{
    for (size_t i = 0; i < len; i++) {
        int status = run_one(&all[i]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
            continue;
        (void)printf("%s %s\n", status == 0 ? "ok  " : "FAIL", all[i].name);
        *passed += status == 0;
        *failed += status != 0;
    }
}

int main(void)
{
    size_t passed = 0, failed = 0;
    run_all(tests, ARRAY_LEN(tests), &passed, &failed);
    run_all(place_tests, place_tests_len, &passed, &failed);
    run_all(neighbour_tests, neighbour_tests_len, &passed, &failed);
    (void)printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
