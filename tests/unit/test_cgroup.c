/* Where a cgroup is looked for, decided from the texts that kernels really give. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "kernel/cgroup_internal.h"
#include "kernel/userns.h"

#define UNIFIED                                                                                    \
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec - cgroup2 cgroup2 rw,nsdelegate\n"
#define OTHER "22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n"

static struct cgroup_self self_of(const char *text)
{
    struct cgroup_self self;
    cr_assert_eq(cgroup_parse_self(text, &self), 0);
    return self;
}

static struct cgroup_mount mount_of(const char *text, const char *path)
{
    struct cgroup_mount mount;
    cr_assert_eq(cgroup_parse_mounts(text, path, &mount), 0);
    return mount;
}

Test(cgroup, reads_its_path_on_a_unified_system)
{
    struct cgroup_self self = self_of("0::/user.slice/user-1000.slice/session-3.scope\n");
    cr_assert(self.has_v2);
    cr_assert_eq(self.v1_controllers, 0);
    cr_assert_str_eq(self.path, "/user.slice/user-1000.slice/session-3.scope");
}

Test(cgroup, sees_what_v1_holds_on_a_hybrid_system)
{
    struct cgroup_self self = self_of("9:name=systemd:/\n8:pids:/\n4:memory:/a:b\n"
                                      "2:cpu,cpuacct:/x\n0::/\n");
    cr_assert(self.has_v2);
    cr_assert_eq(self.v1_controllers, CGROUP_ALL);
    cr_assert_str_eq(self.path, "/");
}

Test(cgroup, tells_cpu_from_cpuset_and_cpuacct)
{
    cr_assert_eq(self_of("3:cpuset:/\n2:cpuacct:/\n").v1_controllers, 0);
}

Test(cgroup, knows_a_v1_system)
{
    struct cgroup_self self = self_of("4:memory:/user\n1:pids:/\n");
    cr_assert_not(self.has_v2);
    cr_assert_eq(self.v1_controllers, CGROUP_MEMORY | CGROUP_PIDS);
}

Test(cgroup, keeps_colons_and_blanks_of_a_path)
{
    cr_assert_str_eq(self_of("0::/a:b c/d::e\n").path, "/a:b c/d::e");
}

Test(cgroup, refuses_a_path_longer_than_its_buffer)
{
    char text[CGROUP_PATH_TEXT + 16];
    memset(text, 'a', sizeof(text));
    memcpy(text, "0::/", 4);
    text[sizeof(text) - 1] = '\0';
    struct cgroup_self self;
    cr_assert_eq(cgroup_parse_self(text, &self), -ENAMETOOLONG);
}

Test(cgroup, finds_the_mount_among_others)
{
    struct cgroup_mount mount = mount_of(OTHER UNIFIED, "/a");
    cr_assert_str_eq(mount.point, "/sys/fs/cgroup");
    cr_assert_str_eq(mount.root, "/");
    cr_assert(mount.writable);
}

Test(cgroup, takes_no_v1_mount)
{
    struct cgroup_mount mount;
    const char *text = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    cr_assert_eq(cgroup_parse_mounts(text, "/", &mount), -ENOENT);
}

Test(cgroup, reads_optional_fields_and_escapes)
{
    const char *text = "41 31 0:38 /a\\040b /mnt/c\\134d rw shared:1 master:2 - cgroup2 none rw\n";
    struct cgroup_mount mount = mount_of(text, "/a b/x");
    cr_assert_str_eq(mount.root, "/a b");
    cr_assert_str_eq(mount.point, "/mnt/c\\d");
}

Test(cgroup, sees_either_kind_of_read_only)
{
    cr_assert_not(mount_of("1 2 0:3 / /c ro - cgroup2 cgroup rw\n", "/").writable);
    cr_assert_not(mount_of("1 2 0:3 / /c rw - cgroup2 cgroup ro\n", "/").writable);
}

Test(cgroup, prefers_a_writable_mount_then_the_one_that_shows_more)
{
    const char *text = "1 2 0:3 / /ro ro - cgroup2 c rw\n"
                       "1 2 0:3 /a/b /part rw - cgroup2 c rw\n"
                       "1 2 0:3 /a /more rw - cgroup2 c rw\n";
    cr_assert_str_eq(mount_of(text, "/a/b/c").point, "/more");
    cr_assert_str_eq(mount_of(text, "/x").point, "/ro");
}

Test(cgroup, takes_no_mount_of_a_sibling_with_the_same_beginning)
{
    struct cgroup_mount mount;
    const char *text = "1 2 0:3 /ab /c rw - cgroup2 c rw\n";
    cr_assert_eq(cgroup_parse_mounts(text, "/abc", &mount), -ENOENT);
    cr_assert_eq(cgroup_parse_mounts(text, "/ab/c", &mount), 0);
    cr_assert_eq(cgroup_parse_mounts(text, "/ab", &mount), 0);
}

Test(cgroup, survives_lines_that_are_cut_short)
{
    struct cgroup_mount mount;
    const char *line = "1 2 0:3 / /c rw shared:1 - cgroup2 c rw";
    char cut[64];
    for (size_t len = 0; len < strlen(line) - 2; len++) {
        memcpy(cut, line, len);
        cut[len] = '\0';
        cr_assert_eq(cgroup_parse_mounts(cut, "/", &mount), -ENOENT, "at %zu", len);
    }
}

Test(cgroup, shows_a_path_through_its_mount)
{
    char path[CGROUP_PATH_TEXT];
    struct cgroup_mount whole = mount_of(UNIFIED, "/");
    cr_assert_eq(cgroup_mount_path(&whole, "/", path), 0);
    cr_assert_str_eq(path, "/sys/fs/cgroup");
    cr_assert_eq(cgroup_mount_path(&whole, "/a/b", path), 0);
    cr_assert_str_eq(path, "/sys/fs/cgroup/a/b");
    struct cgroup_mount part = mount_of("1 2 0:3 /a /c rw - cgroup2 c rw\n", "/a");
    cr_assert_eq(cgroup_mount_path(&part, "/a/b", path), 0);
    cr_assert_str_eq(path, "/c/b");
}

Test(cgroup, sees_nothing_outside_of_its_namespace)
{
    char path[CGROUP_PATH_TEXT];
    struct cgroup_mount whole = mount_of(UNIFIED, "/");
    cr_assert_eq(cgroup_mount_path(&whole, "/../other", path), -ENOENT);
    cr_assert_eq(cgroup_mount_path(&whole, "/..", path), -ENOENT);
}

Test(cgroup, reads_keyed_files)
{
    const char *text = "low 0\nmax 17\noom 2\noom_kill 3\n";
    cr_assert_eq(text_value(text, "oom_kill"), 3);
    cr_assert_eq(text_value(text, "oom"), 2);
    cr_assert_eq(text_value(text, "low"), 0);
    cr_assert_eq(text_value(text, "kill"), CGROUP_UNKNOWN);
    cr_assert_eq(text_value("max max\n", "max"), CGROUP_UNKNOWN);
    cr_assert_eq(text_value("", "max"), CGROUP_UNKNOWN);
}

Test(cgroup, removes_only_names_of_its_own_kind)
{
    char name[48];
    leaf_name(name, sizeof(name));
    cr_assert(leaf_name_is_ours(name), "%s", name);
    cr_assert(leaf_name_is_ours("hutch-1-0123456789abcdef"));
    const char *others[] = {"hutch-host",
                            "hutch-1-0123456789abcde",
                            "hutch-1-0123456789abcdef0",
                            "hutch--0123456789abcdef",
                            "hutch-x-0123456789abcdef",
                            "hutch-1-0123456789abcdeg",
                            "xhutch-1-0123456789abcdef",
                            "hutch-1-0123456789abcdef.scope",
                            ""};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cr_assert_not(leaf_name_is_ours(others[i]), "%s", others[i]);
}

Test(cgroup, gives_two_boxes_of_one_process_different_names)
{
    char one[48], other[48];
    leaf_name(one, sizeof(one));
    leaf_name(other, sizeof(other));
    cr_assert_str_neq(one, other);
}

Test(cgroup, always_has_a_cause_when_there_is_none)
{
    struct cgroup_place place = CGROUP_PLACE;
    struct hutch_error err = {0};
    char cause[CGROUP_CAUSE_TEXT];
    int r = cgroup_find(CGROUP_ALL, &place, cause, sizeof(cause), &err);
    cr_assert_geq(r, 0, "%s", err.message);
    if (r == 1) {
        cr_assert_str_not_empty(cause);
        cr_assert_eq(place.fd, -1);
    } else {
        cr_assert_neq(place.controllers, 0);
    }
    cgroup_place_close(&place);
}

Test(cgroup, does_nothing_for_a_cgroup_that_was_never_made)
{
    struct cgroup cgroup = CGROUP;
    struct cgroup_usage usage;
    cr_assert_eq(cgroup_kill(&cgroup, NULL), 0);
    cr_assert_eq(cgroup_destroy(&cgroup, 0, NULL), 0);
    cr_assert_lt(cgroup_usage(&cgroup, &usage, NULL), 0);
    cr_assert_lt(cgroup_populated(&cgroup), 0);
    cr_assert_eq(cgroup_cpu_usec(&cgroup), CGROUP_UNKNOWN);
    cgroup_close(&cgroup);
}

/* ---- who else may write ---- */

static bool trusted(uid_t uid, gid_t gid, mode_t mode)
{
    const struct stat st = {.st_uid = uid, .st_gid = gid, .st_mode = S_IFDIR | mode};
    return owner_trusted(&st, 1000);
}

Test(cgroup, trusts_directories_of_roots_and_its_own)
{
    cr_assert(trusted(0, 0, 0755));
    cr_assert(trusted(1000, 1000, 0755));
    cr_assert(trusted(0, 0, 0775));
    cr_assert(trusted(1000, 0, 0775));
}

Test(cgroup, distrusts_what_others_may_write)
{
    cr_assert_not(trusted(1001, 1000, 0755));
    cr_assert_not(trusted(1001, 0, 0500));
    cr_assert_not(trusted(0, 0, 0757));
    cr_assert_not(trusted(1000, 1000, 0702));
    cr_assert_not(trusted(1000, 100, 0775));
    cr_assert_not(trusted(0, 100, 0720));
    /* Here it is a user as any other. */
    if (userns_has_uid(65534))
        cr_assert_not(trusted(65534, 65534, 0755));
}

Test(cgroup, asks_only_a_systemd_that_counts_processes_as_it_does)
{
    int pair[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    cr_assert(scope_peer_counts_as_we_do(pair[0]));
    cr_assert_not(scope_peer_counts_as_we_do(file));
    cr_assert_not(scope_peer_counts_as_we_do(-1));
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(file);
}

/* ---- a leaf played by a plain directory ---- */

static void play(int dir_fd, const char *file, mode_t mode)
{
    int fd = openat(dir_fd, file, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    cr_assert_geq(fd, 0, "%s: %s", file, strerror(errno));
    (void)close(fd);
}

static int play_leaf(char path[static 32])
{
    (void)snprintf(path, 32, "/tmp/hutch-leaf.XXXXXX");
    cr_assert_not_null(mkdtemp(path));
    int fd = directory_open(AT_FDCWD, path);
    cr_assert_geq(fd, 0);
    play(fd, "memory.max", 0600);
    play(fd, "memory.swap.max", 0600);
    play(fd, "pids.max", 0600);
    return fd;
}

static void end_leaf(int dir_fd, const char *path)
{
    const char *files[] = {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (unlinkat(dir_fd, files[i], 0) < 0)
            (void)unlinkat(dir_fd, files[i], AT_REMOVEDIR);
    (void)close(dir_fd);
    cr_assert_eq(rmdir(path), 0, "%s", strerror(errno));
}

Test(cgroup, takes_back_a_memory_limit_that_it_could_not_complete)
{
    char path[32], text[64], cause[CGROUP_CAUSE_TEXT] = "";
    struct cgroup cgroup = CGROUP;
    cgroup.dir_fd = play_leaf(path);
    cgroup.controllers = CGROUP_MEMORY | CGROUP_PIDS;
    cgroup.limits = (struct cgroup_limits){.memory_bytes = 64, .pids = 7};
    /* In the way of the last file. */
    cr_assert_eq(mkdirat(cgroup.dir_fd, "memory.oom.group", 0700), 0);
    cr_assert_eq(leaf_limit(&cgroup, (struct cause){cause, sizeof(cause)}), 0);
    cr_assert_eq(cgroup.controllers, CGROUP_PIDS);
    cr_assert_not_null(strstr(cause, "memory limit was refused"), "%s", cause);
    cr_assert_eq(file_read(cgroup.dir_fd, "memory.max", text, sizeof(text)), 0);
    cr_assert_str_eq(text, "max");
    cr_assert_eq(file_read(cgroup.dir_fd, "memory.swap.max", text, sizeof(text)), 0);
    cr_assert_str_eq(text, "max");
    cr_assert_eq(file_read(cgroup.dir_fd, "pids.max", text, sizeof(text)), 0);
    cr_assert_str_eq(text, "8"); /* init counts memory in a thread of its own then */
    end_leaf(cgroup.dir_fd, path);
}
