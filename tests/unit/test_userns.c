/*
 * test_userns.c - which ids a box gets. As root a host id of its own is drawn; a plain user's own
 * id is the box's.
 */
#include "kernel/userns.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/host.h"

TestSuite(userns, .timeout = 60);

static struct hutch_error err;

static void needs_root(void)
{
    if (!is_root())
        cr_skip_test("only root draws a host id");
}

Test(userns, the_callers_ids_are_noted)
{
    struct facts facts = {0};
    cr_assert_eq(userns_choose(NULL, &facts, &err), 0, "%s", err.message);
    cr_assert_eq(facts.euid, geteuid());
    cr_assert_eq(facts.egid, getegid());
    cr_assert_eq(facts.mode, is_root() ? PLAN_MODE_ROOT : PLAN_MODE_SELF);
    if (!is_root())
        cr_assert_eq(facts.keeps_groups, getgroups(0, NULL) > 0);
}

Test(userns, a_range_that_is_none_is_refused)
{
    static const char *const BAD[] = {"",
                                      ":",
                                      "5",
                                      "5:",
                                      ":5",
                                      "0:1",
                                      "1:0",
                                      "x:1",
                                      "1:x",
                                      "1 :1",
                                      "-1:1",
                                      "1:-1",
                                      "1:1:1",
                                      "4294967295:1",
                                      "1:4294967295",
                                      "4294967294:2",
                                      "99999999999999999999999999:1"};
    struct facts facts = {0};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        cr_expect_eq(userns_choose(BAD[i], &facts, &err), -EINVAL, "'%s'", BAD[i]);
        cr_expect(err.stage == HUTCH_STAGE_REQUEST && strstr(err.message, "--host-ids"), "'%s': %s",
                  BAD[i], err.message);
    }
}

Test(userns, every_box_draws_another_id_of_the_range)
{
    needs_root();
    unsigned same = 0;
    uint32_t before = 0;
    for (int i = 0; i < 200; i++) {
        struct facts facts = {0};
        cr_assert_eq(userns_choose(NULL, &facts, &err), 0, "%s", err.message);
        cr_assert(facts.host_id >= 1900000000 && facts.host_id < 1990000000, "%u", facts.host_id);
        same += facts.host_id == before;
        before = facts.host_id;
    }
    cr_assert_leq(same, 1, "%u of 200 draws were the one before", same);
}

Test(userns, a_named_range_is_kept_to_its_ends)
{
    needs_root();
    unsigned seen = 0;
    for (int i = 0; i < 200; i++) {
        struct facts facts = {0};
        cr_assert_eq(userns_choose("1234567:3", &facts, &err), 0, "%s", err.message);
        cr_assert(facts.host_id >= 1234567 && facts.host_id <= 1234569, "%u", facts.host_id);
        seen |= 1U << (facts.host_id - 1234567);
    }
    cr_assert_eq(seen, 7, "not every id of the range was drawn");
}

/* useradd gives each user some; what is theirs is not ours. */
Test(userns, ids_that_are_allocated_to_users_are_left_alone)
{
    needs_root();
    char name[64];
    unsigned long first, count;
    char *text = file_text("/etc/subuid");
    if (!text || sscanf(text, "%63[^:]:%lu:%lu", name, &first, &count) != 3 || count < 2)
        cr_skip_test("/etc/subuid allocates nothing here");
    struct facts facts = {0};
    cr_assert_lt(userns_choose(text_format("%lu:%lu", first, count), &facts, &err), 0);
    cr_assert_eq(err.stage, HUTCH_STAGE_HOST);
    cr_assert(strstr(err.message, "--host-ids"), "%s", err.message);
    cr_assert_eq(userns_choose(text_format("%lu:%lu", first + count - 1, 2000UL), &facts, &err), 0,
                 "%s", err.message);
    cr_assert_geq(facts.host_id, first + count);
}

Test(userns, a_map_of_ids_for_a_mount)
{
    needs_root();
    _cleanup_close_ int fd = -1;
    uid_t owner = 99;
    char mine[64] = "", its[64] = "";
    cr_assert_eq(userns_open(1001, 1002, 1900000007, &fd, &err), 0, "%s", err.message);
    cr_assert_gt(readlink("/proc/self/ns/user", mine, sizeof mine - 1), 0);
    cr_assert_gt(readlink(text_format("/proc/self/fd/%d", fd), its, sizeof its - 1), 0);
    cr_assert(strncmp(its, "user:[", 6) == 0 && strcmp(its, mine) != 0, "%s", its);
    cr_assert_eq(ioctl(fd, NS_GET_OWNER_UID, &owner), 0);
    cr_assert_eq(owner, 0);
    cr_assert_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    cr_assert(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD, "its process is still there");
}

Test(userns, a_map_of_ids_that_cant_be_written_leaves_nothing)
{
    const char *before = fds_now();
    int fd = -7;
    /* Root: an id that is none. A plain user: any but the own one. */
    cr_assert_lt(userns_open(1, 1, is_root() ? UINT32_MAX : geteuid() + 1, &fd, &err), 0);
    cr_assert(err.stage == HUTCH_STAGE_LAUNCH && strstr(err.message, "uid_map"), "%s", err.message);
    cr_assert_eq(fd, -7);
    cr_assert(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD, "its process is still there");
    cr_assert_str_eq(fds_now(), before);
}

Test(userns, maps_of_a_process_that_is_gone)
{
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0)
        _exit(0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(userns_write_maps(pid, 1000, 1900000001, &err), -ENOENT);
    cr_assert(strstr(err.message, "1900000001") && strstr(err.message, "uid_map"), "%s",
              err.message);
}
