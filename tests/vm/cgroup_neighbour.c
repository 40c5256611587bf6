/*
 * Neighbours that hold things up, paths of any length, and what only a user's systemd can show.
 */
#include "cgroup_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool is_exiting(pid_t pid)
{
    char path[32], text[512] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    unsigned flags = 0;
    char state = 0;
    check(len > 0);
    (void)close(fd);
    check(sscanf(strrchr(text, ')'), ") %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2);
    return state != 'Z' && (flags & 4); /* PF_EXITING */
}

/* It has much to give back before the kernel lets it leave its cgroup. */
static pid_t start_big_neighbour(void)
{
    enum { BIG = 600 * 1024 * 1024 };
    int out[2];
    char byte;
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(memory != MAP_FAILED);
        (void)madvise(memory, BIG, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < BIG; i += 4096)
            memory[i] = 1;
        (void)!write(out[1], "b", 1);
        sleep_on();
    }
    (void)close(out[1]);
    check(read(out[0], &byte, 1) == 1);
    (void)close(out[0]);
    return pid;
}

static void box_beside_an_exit(const char *place)
{
    pid_t pid = start_big_neighbour();
    (void)kill(pid, SIGKILL);
    while (!is_exiting(pid))
        (void)sched_yield();
    struct cgroup cgroup = CGROUP;
    char cause[CGROUP_CAUSE_TEXT];
    check(create_any(&cgroup, cause) == 0, "%s", cause);
    check(cgroup.controllers == CGROUP_ALL, "%s", cause);
    destroy(&cgroup);
    (void)wait_for(pid);
    expect_untouched(place);
}

static void waits_for_a_neighbour_that_exits(void)
{
    NEED("root");
    widen_top();
    make_place(PLACE, ALICE);
    in_place(PLACE, ALICE, box_beside_an_exit);
    end_place(PLACE);
}

static void reaches_leftovers_among_many_that_live(void)
{
    NEED("root");
    enum { LIVING = 200, LEFTOVERS = 3, RUNS = 200 };
    static struct cgroup living[LIVING];
    char path[LEFTOVERS][CGROUP_PATH_TEXT];
    const struct rlimit files = {8 * LIVING, 8 * LIVING};
    check(setrlimit(RLIMIT_NOFILE, &files) == 0, "%s", strerror(errno));
    for (size_t i = 0; i < LIVING; i++)
        living[i] = create(&small);
    pid_t owner[LEFTOVERS];
    for (size_t i = 0; i < LEFTOVERS; i++)
        owner[i] = start_owner(TOP, ROOT, path[i]);
    for (size_t i = 0; i < LEFTOVERS; i++)
        end_process(owner[i]);
    for (int i = 0; i < RUNS && (is_there(path[0]) || is_there(path[1]) || is_there(path[2]));
         i++) {
        struct cgroup cgroup = create(&small);
        destroy(&cgroup);
    }
    for (size_t i = 0; i < LEFTOVERS; i++)
        check(!is_there(path[i]), "%s", path[i]);
    for (size_t i = 0; i < LIVING; i++)
        destroy(&living[i]);
}

/* Its end waits for its tracer. */
static pid_t make_unkillable(const char *leaf)
{
    check(mkdir(leaf, 0755) == 0, "%s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        put(leaf, "cgroup.procs", "0");
        (void)raise(SIGSTOP);
        sleep_on();
    }
    int status;
    check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    check(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) == 0, "%s", strerror(errno));
    return pid;
}

static double time_of_a_box(void)
{
    double began = seconds();
    struct cgroup cgroup = create(&small);
    double took = seconds() - began;
    destroy(&cgroup);
    return took;
}

static void waits_once_for_a_leftover_that_cannot_be_killed(void)
{
    NEED("root");
    struct cgroup holds_the_slice = create(&small);
    pid_t pid = make_unkillable(SLICE "/hutch-1-0123456789abcdef");
    (void)time_of_a_box();
    double fastest = 100;
    for (int i = 0; i < 5; i++) {
        double took = time_of_a_box();
        fastest = took < fastest ? took : fastest;
    }
    check(fastest < 0.3, "%.3f s", fastest);
    check(is_there(SLICE "/hutch-1-0123456789abcdef"));
    int status;
    do
        check(waitpid(pid, &status, __WALL) == pid && ptrace(PTRACE_CONT, pid, NULL, 0) == 0);
    while (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXIT << 8));
    (void)wait_for(pid);
    (void)time_of_a_box();
    check(!is_there(SLICE "/hutch-1-0123456789abcdef"));
    destroy(&holds_the_slice);
}

/* ---- where we are ---- */

/* Directories with names of 250 letters, one in the other; returns the innermost. */
static int make_deep(int depth)
{
    char name[251];
    memset(name, 'd', 250);
    name[250] = '\0';
    int fd = open(TOP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < depth; i++) {
        check(mkdirat(fd, name, 0755) == 0, "%d: %s", i, strerror(errno));
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check(next >= 0, "%s", strerror(errno));
        (void)close(fd);
        fd = next;
    }
    return fd;
}

static void remove_deep(int fd, int depth)
{
    char name[251];
    memset(name, 'd', 250);
    name[250] = '\0';
    for (int i = 0; i < depth; i++) {
        int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check(unlinkat(above, name, AT_REMOVEDIR) == 0, "%d: %s", i, strerror(errno));
        (void)close(fd);
        fd = above;
    }
    (void)close(fd);
}

static void in_deep(int depth, void (*test)(const char *))
{
    int fd = make_deep(depth);
    pid_t pid = fork();
    if (pid == 0) {
        int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        check(write(procs, "0", 1) == 1, "%s", strerror(errno));
        test("");
        _exit(0);
    }
    check(wait_for(pid) == 0);
    remove_deep(fd, depth);
}

static void expect_too_deep(const char *place)
{
    (void)place;
    struct cgroup_place found = CGROUP_PLACE;
    char cause[CGROUP_CAUSE_TEXT];
    int r = cgroup_find(CGROUP_ALL, &found, cause, sizeof(cause), NULL);
    check(r == 1, "%d", r);
    check(strstr(cause, "too long") != NULL, "%s", cause);
}

static void box_in_slice(const char *place)
{
    (void)place;
    make_box(SLICE, CGROUP_ALL);
}

static void takes_long_paths(void)
{
    NEED("root");
    in_deep(3, box_in_slice);
    in_deep(17, expect_too_deep);
}

/* systemd would take our number for another process's. */
static void asks_no_systemd_from_another_pid_namespace(void)
{
    NEED("session");
    char map[32];
    (void)snprintf(map, sizeof(map), "%u %u 1", geteuid(), geteuid());
    check(unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0, "%s", strerror(errno));
    put("/proc/self", "uid_map", map);
    pid_t pid = fork();
    if (pid == 0) {
        struct cgroup cgroup = CGROUP;
        char cause[CGROUP_CAUSE_TEXT];
        check(create_any(&cgroup, cause) == 1, "it is in %s", cgroup.path);
        check(strstr(cause, "pid namespace") != NULL, "%s", cause);
        _exit(0);
    }
    check(wait_for(pid) == 0);
}

/* ---- the host's copies ---- */

static void first_child(char pid[static 16])
{
    char path[48], text[64] = "";
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, "%s", strerror(errno));
    (void)close(fd);
    (void)snprintf(pid, 16, "%.*s", (int)strcspn(text, " "), text);
}

static void scope_of(const char *pid, char path[static CGROUP_PATH_TEXT])
{
    char file[32], line[CGROUP_PATH_TEXT];
    (void)snprintf(file, sizeof(file), "/proc/%s/cgroup", pid);
    FILE *stream = fopen(file, "re");
    check(stream && fgets(line, sizeof(line), stream), "%s: %s", file, strerror(errno));
    (void)fclose(stream);
    (void)snprintf(path, CGROUP_PATH_TEXT, TOP "%.4000s", line + strlen("0::"));
    *strrchr(path, '/') = '\0';
    check(strstr(path, ".scope") != NULL, "%s", path);
}

static void start_sleep(void)
{
    const char *const argv[] = {"/bin/sleep", "1000", NULL};
    struct hutch_request *request = NULL;
    struct hutch_run *run = NULL;
    struct hutch_error err = {0};
    int r = hutch_request_new(HUTCH_VERB_RUN, &request, &err);
    if (r == 0)
        r = hutch_request_set_command(request, argv, &err);
    if (r == 0)
        r = hutch_run_start(request, &run, &err);
    check(r == 0, "%s", err.message);
}

struct copied_host {
    pid_t copy;
    char scope[CGROUP_PATH_TEXT];
};

/* A host that has started a box and has been forked since. */
static pid_t start_copied_host(struct copied_host *host)
{
    int out[2];
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char child[16];
        start_sleep();
        first_child(child);
        scope_of(child, host->scope);
        host->copy = fork();
        if (host->copy == 0)
            sleep_on();
        (void)!write(out[1], host, sizeof(*host));
        sleep_on();
    }
    (void)close(out[1]);
    size_t have = 0;
    for (ssize_t len = 1; len > 0 && have < sizeof(*host); have += (size_t)len) {
        len = read(out[0], (char *)host + have, sizeof(*host) - have);
        check(len > 0);
    }
    (void)close(out[0]);
    return pid;
}

static void ends_the_scope_with_the_host_whoever_holds_its_files(void)
{
    NEED("session");
    struct copied_host host;
    pid_t pid = start_copied_host(&host);
    check(is_there(host.scope));
    end_process(pid);
    double began = seconds();
    while (is_there(host.scope) && seconds() - began < 20)
        (void)poll(NULL, 0, 10); /* systemd's part */
    bool stayed = is_there(host.scope);
    (void)kill(host.copy, SIGKILL);
    check(!stayed);
}

const struct vm_test neighbour_tests[] = {
    TEST(waits_for_a_neighbour_that_exits),
    TEST(reaches_leftovers_among_many_that_live),
    TEST(waits_once_for_a_leftover_that_cannot_be_killed),
    TEST(takes_long_paths),
    TEST(asks_no_systemd_from_another_pid_namespace),
    TEST(ends_the_scope_with_the_host_whoever_holds_its_files),
};
const size_t neighbour_tests_len = ARRAY_LEN(neighbour_tests);
