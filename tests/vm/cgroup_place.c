/*
 * Places made for the purpose by root below the top of the tree, with too few controllers or in
 * other users' hands: what is made of them.
 */
#include "cgroup_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define NARROW TOP "/vm-narrow"

enum { BOB = 4322 };

/* ---- without the memory controller ---- */

static void box_with_two(const char *place)
{
    for (int i = 0; i < 3; i++) {
        make_box(place, CGROUP_CPU | CGROUP_PIDS);
        expect_untouched(place);
    }
}

static void box_of_several(const char *place)
{
    struct cgroup first = CGROUP;
    char cause[CGROUP_CAUSE_TEXT];
    check(create_any(&first, cause) == 0, "%s", cause);
    make_box(place, CGROUP_CPU | CGROUP_PIDS);
    pid_t pid = start(&first, sleep_on);
    destroy(&first);
    (void)wait_for(pid);
    expect_untouched(place);
}

/* Somebody has made a thread root of it: controllers beside processes. */
static void box_in_a_thread_root(const char *place)
{
    put(place, "cgroup.subtree_control", "+cpu");
    expect_text(place, "cgroup.type", "domain threaded");
    make_box(place, CGROUP_CPU | CGROUP_PIDS);
    expect_untouched(place);
}

static pid_t start_hutch(int *ret_out)
{
    int out[2];
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(out[1], 1);
        (void)execl(getenv("HUTCH"), "hutch", "run", "--json", "--", "/bin/true", NULL);
        _exit(127);
    }
    (void)close(out[1]);
    *ret_out = out[0];
    return pid;
}

/* The whole run: what it says of its limits. */
static void run_hutch(const char *place)
{
    char text[16384];
    size_t have = 0;
    int out;
    pid_t pid = start_hutch(&out);
    for (ssize_t len = 1; len > 0 && have<sizeof(text) - 1; have += len> 0 ? (size_t)len : 0)
        len = read(out, text + have, sizeof(text) - 1 - have);
    text[have] = '\0';
    (void)close(out);
    check(wait_for(pid) == 0, "%s", text);
    check(strstr(text, "\"memory\":\"watchdog\",\"pids\":\"cgroup\",\"cpu\":\"cgroup\""), "%s",
          text);
    check(strstr(text, "controllers memory are not delegated"), "%s", text);
    expect_untouched(place);
}

static void does_without_the_memory_controller(void)
{
    NEED("root");
    static const uid_t users[] = {ROOT, ALICE};
    widen_top();
    check(mkdir(NARROW, 0755) == 0);
    put(NARROW, "cgroup.subtree_control", "+cpu +pids");
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        make_place(NARROW "/place", users[i]);
        in_place(NARROW "/place", users[i], box_with_two);
        in_place(NARROW "/place", users[i], box_of_several);
        in_place(NARROW "/place", users[i], box_in_a_thread_root);
        in_place(NARROW "/place", users[i], run_hutch);
        end_place(NARROW "/place");
    }
    end_place(NARROW);
}

/* ---- failures ---- */

static void fail_to_make_one(const char *place)
{
    struct cgroup cgroup = CGROUP;
    char cause[CGROUP_CAUSE_TEXT];
    check(create_any(&cgroup, cause) == 1);
    check(strstr(cause, "can't be made") != NULL, "%s", cause);
    cgroup_close(&cgroup);
    expect_untouched(place);
}

static void fail_in_subgroup(const char *subgroup)
{
    (void)subgroup;
    fail_to_make_one(PLACE);
}

/* With a program in a child of the place nothing is moved, but controllers are enabled. */
static void gives_a_place_back_as_it_was_when_it_fails(void)
{
    NEED("root");
    static const uid_t users[] = {ROOT, ALICE};
    widen_top();
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        make_place(PLACE, users[i]);
        put(PLACE, "cgroup.max.descendants", "1"); /* room for the host leaf */
        in_place(PLACE, users[i], fail_to_make_one);
        make_place(PLACE "/main", users[i]);
        if (users[i] == ROOT)
            check(removexattr(PLACE "/main", "trusted.delegate") == 0);
        put(PLACE, "cgroup.max.descendants", users[i] == ROOT ? "1" : "2");
        check(setxattr(PLACE, "user.delegate", "1", 1, 0) == 0);
        in_place(PLACE "/main", users[i], fail_in_subgroup);
        end_place(PLACE "/main");
        end_place(PLACE);
    }
}

static void box_in_subgroup(const char *subgroup)
{
    (void)subgroup;
    make_box(PLACE, CGROUP_ALL);
    check(!is_there(PLACE "/hutch-host"));
}

static void leaves_a_subgroup_alone(void)
{
    NEED("root");
    static const uid_t users[] = {ROOT, ALICE};
    widen_top();
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        make_place(PLACE, users[i]);
        check(setxattr(PLACE, "user.delegate", "1", 1, 0) == 0);
        make_place(PLACE "/main", BOB);
        check(chown(PLACE "/main/cgroup.procs", users[i], users[i]) == 0);
        in_place(PLACE "/main", users[i], box_in_subgroup);
        end_place(PLACE "/main");
        end_place(PLACE);
    }
}

/* Out of file descriptors at every point in turn. */
static void leaves_no_empty_slice_when_it_fails(void)
{
    NEED("root");
    struct rlimit usual;
    check(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    int r = -1, failures = 0;
    for (rlim_t files = 4; r != 0; files++) {
        check(files < 64);
        struct cgroup cgroup = CGROUP;
        char cause[CGROUP_CAUSE_TEXT];
        const struct rlimit few = {files, usual.rlim_max};
        check(setrlimit(RLIMIT_NOFILE, &few) == 0);
        r = cgroup_create(NULL, &small, CGROUP_ALL, &cgroup, cause, sizeof(cause), NULL);
        check(setrlimit(RLIMIT_NOFILE, &usual) == 0);
        failures += r < 0;
        destroy(&cgroup);
        check(!is_there(SLICE), "with %d files", (int)files);
    }
    check(failures > 2);
}

/* ---- other users ---- */

static void expect_slice(const char *place)
{
    (void)place;
    struct cgroup_place found = CGROUP_PLACE;
    char cause[CGROUP_CAUSE_TEXT];
    check(cgroup_find(CGROUP_ALL, &found, cause, sizeof(cause), NULL) == 0, "%s", cause);
    check(found.kind == CGROUP_SLICE, "it is %s", found.path);
    cgroup_place_close(&found);
}

static void expect_distrust(const char *place)
{
    (void)place;
    struct cgroup_place found = CGROUP_PLACE;
    char cause[CGROUP_CAUSE_TEXT];
    check(cgroup_find(CGROUP_ALL, &found, cause, sizeof(cause), NULL) == 1, "%s", found.path);
    check(strstr(cause, "another user may write") != NULL, "%s", cause);
}

static void expect_none(const char *place)
{
    (void)place;
    struct cgroup_place found = CGROUP_PLACE;
    char cause[CGROUP_CAUSE_TEXT];
    check(cgroup_find(CGROUP_ALL, &found, cause, sizeof(cause), NULL) == 1, "%s", found.path);
}

static void make_marked_place(const char *path, uid_t owner)
{
    static const char *const MARKS[] = {"user.hutch.delegated", "user.delegate",
                                        "trusted.delegate"};
    make_place(path, owner);
    for (size_t i = 0; i < ARRAY_LEN(MARKS); i++)
        check(setxattr(path, MARKS[i], "1", 1, 0) == 0, "%s", strerror(errno));
}

static void in_marked_place(uid_t owner, uid_t user, void (*test)(const char *))
{
    make_marked_place(PLACE, owner);
    in_place(PLACE, user, test);
    end_place(PLACE);
}

static void box_with_all(const char *place)
{
    make_box(place, CGROUP_ALL);
}

static void keeps_root_out_of_a_users_subtree(void)
{
    NEED("root");
    widen_top();
    in_marked_place(ROOT, ROOT, box_with_all);
    in_marked_place(ALICE, ALICE, box_with_all);
    in_marked_place(ALICE, ROOT, expect_slice);
    in_marked_place(BOB, ALICE, expect_none);
}

static void in_marked_below(uid_t above, uid_t user, void (*test)(const char *))
{
    make_place(PLACE, above);
    put(PLACE, "cgroup.subtree_control", "+memory +pids +cpu");
    make_marked_place(PLACE "/below", user);
    in_place(PLACE "/below", user, test);
    end_place(PLACE "/below");
    end_place(PLACE);
}

static void wants_nobody_else_above_its_boxes(void)
{
    NEED("root");
    widen_top();
    in_marked_below(ROOT, ALICE, box_with_all);
    in_marked_below(ALICE, ALICE, box_with_all);
    in_marked_below(BOB, ALICE, expect_distrust);
    in_marked_below(ALICE, ROOT, expect_slice);
}

static void wants_no_file_of_anybody_elses_above(void)
{
    NEED("root");
    static const char *const FILES[] = {"cgroup.procs", "cgroup.subtree_control"};
    widen_top();
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        char file[64];
        (void)snprintf(file, sizeof(file), PLACE "/%s", FILES[i]);
        make_marked_place(PLACE, ROOT);
        check(chown(file, ALICE, ALICE) == 0);
        in_place(PLACE, ROOT, expect_slice);
        check(chown(file, ROOT, ROOT) == 0 && chmod(file, 0666) == 0);
        in_place(PLACE, ROOT, expect_slice);
        check(chmod(file, 0644) == 0);
        in_place(PLACE, ROOT, box_with_all);
        end_place(PLACE);
    }
}

static void lock_all(const char *path)
{
    static const char *const FILES[] = {"",
                                        "cgroup.kill",
                                        "cgroup.procs",
                                        "cgroup.subtree_control",
                                        "cgroup.events",
                                        "cgroup.type",
                                        "cgroup.freeze",
                                        "hutch-host",
                                        "hutch-host/cgroup.kill",
                                        "hutch-host/cgroup.procs"};
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        char file[CGROUP_PATH_TEXT + 32];
        (void)snprintf(file, sizeof(file), "%s/%s", path, FILES[i]);
        int fd = open(file, O_RDONLY);
        if (fd < 0)
            fd = open(file, O_WRONLY);
        if (fd >= 0)
            check(flock(fd, LOCK_SH | LOCK_NB) == 0, "%s: %s", file, strerror(errno));
    }
}

/* Another user with a shared lock on whatever can be opened in the two directories. */
static pid_t start_locker(const char *place, const char *leaf)
{
    int out[2];
    char byte;
    check(pipe2(out, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        put(TOP, "cgroup.procs", "0");
        check(setresgid(BOB, BOB, BOB) == 0 && setresuid(BOB, BOB, BOB) == 0);
        lock_all(place);
        lock_all(leaf);
        (void)!write(out[1], "l", 1);
        sleep_on();
    }
    (void)close(out[1]);
    check(read(out[0], &byte, 1) == 1);
    (void)close(out[0]);
    return pid;
}

static void box_at_once(const char *place)
{
    double began = seconds();
    make_box(place, CGROUP_ALL);
    check(seconds() - began < 5, "%.1f s", seconds() - began); /* a lock is waited for for 10 */
}

static void sweep_under_locks(const char *place, uid_t user)
{
    char path[CGROUP_PATH_TEXT];
    pid_t owner = start_owner(place, user, path), locker = start_locker(place, path);
    in_place(place, user, box_at_once);
    check(is_there(path));
    end_process(owner);
    in_place(place, user, box_at_once);
    check(!is_there(path), "%s was kept from being swept", path);
    end_process(locker);
}

static void is_not_held_up_by_other_users_locks(void)
{
    NEED("root");
    static const uid_t users[] = {ROOT, ALICE};
    widen_top();
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        make_place(PLACE, users[i]);
        sweep_under_locks(PLACE, users[i]);
        expect_untouched(PLACE);
        end_place(PLACE);
    }
}

const struct vm_test place_tests[] = {
    TEST(does_without_the_memory_controller),
    TEST(gives_a_place_back_as_it_was_when_it_fails),
    TEST(leaves_a_subgroup_alone),
    TEST(leaves_no_empty_slice_when_it_fails),
    TEST(keeps_root_out_of_a_users_subtree),
    TEST(wants_nobody_else_above_its_boxes),
    TEST(wants_no_file_of_anybody_elses_above),
    TEST(is_not_held_up_by_other_users_locks),
};
const size_t place_tests_len = ARRAY_LEN(place_tests);
