/*
 * test_review2.c - system calls with arguments that a review found open: set-id files for the
 * host, memory that nobody counts, the scheduling and the limits of the box's init.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "support/host.h"
#include "support/probe.h"

TestSuite(review2, .timeout = 180);

#define EVERYTHING "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}"

static bool watchdog_counts(void)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    expect_clean(&a);
    return answer_is(&a, "receipt.layers.memory", "watchdog");
}

/* A profile that allows everything, but for what stands under it. */
static const char *const *everything(const struct tempdir *dir)
{
    const char *path = file_new(dir->path, "everything.json", EVERYTHING, 0644);
    return join(LIST("--policy", path), NULL);
}

/* ---- set-id files ---- */

/* A directory that any user can write to, as a caller binds one for a box's results. */
static struct tempdir shared_dir(void)
{
    struct tempdir dir = tempdir_new();
    cr_assert_eq(chmod(dir.path, 0777), 0);
    return dir;
}

static size_t set_id_files(const char *dir)
{
    size_t count = 0;
    struct stat info;
    DIR *entries = opendir(dir);
    cr_assert_not_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (lstat(path_in(dir, entry->d_name), &info) == 0 && info.st_mode & 06000)
            count++;
    closedir(entries);
    return count;
}

static const char *const *in_dir(const char *const *names, const struct tempdir *dir)
{
    const char *const *list = NULL;
    for (; *names; names++)
        list = join(list, LIST(text_format("%s:%s", *names, dir->path)));
    return list;
}

static void expect_no_set_id(const char *const *names, const char *const *options)
{
    _cleanup_tempdir_ struct tempdir dir = shared_dir();
    const char *const *attempts = in_dir(names, &dir);
    const char *bind = text_format("%s:%s", dir.path, dir.path);
    struct attempts outside = probe_outside(attempts, false);
    cr_assert_gt(set_id_files(dir.path), 4, "the control: %s", outside.text);
    expect_denied(attempts, join(LIST("--bind", bind), options));
    cr_expect_eq(set_id_files(dir.path), 0);
    expect_allowed(in_dir(LIST("plain_chmod"), &dir), join(LIST("--bind", bind), options));
}

#define EVERY_WAY                                                                                  \
    "setid_chmod", "setid_chmod_high", "setid_fchmod", "setid_fchmodat", "setid_fchmodat2",        \
        "setid_uid_only", "setid_gid_only", "setid_open", "setid_openat", "setid_openat_high",     \
        "setid_openat2", "setid_creat", "setid_mknod", "setid_mknodat", "setid_tmpfile"

Test(review2, no_set_id_file_in_a_bound_directory)
{
    expect_no_set_id(LIST(EVERY_WAY), NULL);
    expect_no_set_id(LIST(EVERY_WAY), LIST("--policy", "python"));
    expect_no_set_id(LIST(EVERY_WAY), LIST("--policy", "node"));
}

Test(review2, no_set_id_file_under_a_profile_that_allows_everything)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    expect_no_set_id(LIST(EVERY_WAY), everything(&dir));
}

/* Returns what the attempts below answer, as "name=OK|errno" in one text. */
#define TOOL_CODE                                                                                  \
    "import ctypes, errno\n"                                                                       \
    "c = ctypes.CDLL(None, use_errno=True)\n"                                                      \
    "def call(*a):\n"                                                                              \
    "    ctypes.set_errno(0)\n"                                                                    \
    "    r = c.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])\n"             \
    "    return 'OK' if r != -1 else errno.errorcode[ctypes.get_errno()]\n"                        \
    "out = ' '.join(['openat=' + call(257, -100, b'/tmp/hutch-test-a', 0o101, 0o4755),\n"          \
    "    'high=' + call(257, -100, b'/tmp/hutch-test-b', 0o101 | 1 << 32, 0o2755 | 1 << 32),\n"    \
    "    'plain=' + call(257, -100, b'/tmp/hutch-test-c', 0o101, 0o755),\n"                        \
    "    'chmod=' + call(90, b'/tmp/hutch-test-c', 0o4755),\n"                                     \
    "    'shared=' + call(9, 0, 4096, 3, 0x21, -1, 0),\n"                                          \
    "    'private=' + call(9, 0, 4096, 3, 0x22, -1, 0)])\n"

Test(review2, tool_makes_none_either)
{
    _cleanup_answer_ struct answer control = hutch_with(
        &(struct spawn){.argv = LIST("/usr/bin/python3")},
        LIST("-I", "-c",
             TOOL_CODE "import os\nfor f in 'abc': os.unlink('/tmp/hutch-test-' + f)\nprint(out)"));
    cr_assert_str_eq(control.o.out, "openat=OK high=OK plain=OK chmod=OK shared=OK private=OK\n",
                     "%s", control.o.err);
    const char *shared = watchdog_counts() ? "EPERM" : "OK";
    _cleanup_answer_ struct answer box = exec_body(TOOL_CODE "return out", "\"check\":\"none\"");
    expect_clean(&box);
    expect(&box, answer_is(&box, "output",
                           text_format("openat=EPERM high=EPERM plain=OK chmod=ENOSYS shared=%s "
                                       "private=OK",
                                       shared)));
}

Test(review2, honest_modes_work)
{
    _cleanup_tempdir_ struct tempdir dir = shared_dir();
    const char *bind = text_format("%s:%s", dir.path, dir.path);
    expect_allowed(
        in_dir(LIST("plain_tmpfile", "plain_chmod", "plain_creat", "map_shared_file"), &dir),
        LIST("--bind", bind));
    _cleanup_answer_ struct answer tools =
        run_command(LIST("--bind", bind),
                    LIST("sh", "-ec",
                         text_format("cd %s; mkdir -m 1777 a; echo x > a/f; chmod 750 a/f\n"
                                     "tar cpf t a; rm -r a; tar xpf t; cp -rp a b\n"
                                     "install -D -m 755 a/f c/f; stat -c %%a a a/f b b/f c/f",
                                     dir.path)));
    expect_stdout(&tools, "1777\n750\n1777\n750\n755\n");
    _cleanup_answer_ struct answer python =
        run_py("import os, shutil, tempfile, zipfile\n"
               "os.makedirs('a/b'); open('a/b/f', 'w').close(); os.chmod('a/b/f', 0o750)\n"
               "shutil.copytree('a', 'c'); shutil.make_archive('z', 'gztar', 'a')\n"
               "shutil.unpack_archive('z.tar.gz', 'd'); tempfile.TemporaryFile(dir='.').close()\n"
               "print(*[oct(os.stat(p + '/b/f').st_mode & 0o7777) for p in 'acd'])\n",
               NULL);
    expect_stdout(&python, "0o750 0o750 0o750\n");
}

/* ---- memory ---- */

/* Fills memory and takes it out of the process's numbers again, piece by piece. */
#define GROW_SHARED                                                                                \
    "import mmap, sys\n"                                                                           \
    "try:\n"                                                                                       \
    "    kept = mmap.mmap(-1, 400 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n"            \
    "except PermissionError:\n"                                                                    \
    "    sys.exit('refused')\n"                                                                    \
    "for at in range(0, 400 << 20, 1 << 20):\n"                                                    \
    "    kept[at:at + (1 << 20)] = b'x' * (1 << 20)\n"                                             \
    "    kept.madvise(mmap.MADV_DONTNEED, at, 1 << 20)\n"                                          \
    "print('has it all:', kept[5], kept[399 << 20])\n"

Test(review2, shared_memory_without_a_file_does_not_pass_by_the_limit)
{
    _cleanup_output_ struct output control =
        spawn_run(&(struct spawn){.argv = LIST("/usr/bin/python3", "-I", "-c", GROW_SHARED)});
    cr_assert_str_eq(control.out, "has it all: 120 120\n", "%s", control.err);
    _cleanup_answer_ struct answer a = run_py(GROW_SHARED, LIST("--memory", "64M"));
    expect(&a, !strstr(answer_text(&a, "stdout"), "has it all"));
    if (watchdog_counts())
        expect(&a, strstr(answer_text(&a, "stderr"), "refused"));
    else
        expect_reason(&a, "memory");
}

Test(review2, shared_memory_without_a_file_is_refused_where_a_watchdog_counts)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    static const char *const attempts[] = {
        "map_shared", "map_shared_validate", "memfd", "shmget", "sndbuf",
        "rcvbuf",     "sndbuf_high",         NULL};
    if (watchdog_counts()) {
        expect_denied(attempts, NULL);
        expect_denied(attempts, LIST("--policy", "python"));
        expect_denied(attempts, LIST("--policy", "node"));
        expect_denied(attempts, everything(&dir));
        expect_answer(LIST("map_zero"), "ENODEV", everything(&dir));
    } else {
        expect_allowed(LIST("map_shared", "sndbuf", "rcvbuf"), NULL);
    }
    expect_allowed(LIST("map_private"), NULL);
}

Test(review2, huge_pages_are_refused)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    expect_denied(LIST("map_huge", "memfd_huge", "#shmget_huge"), NULL);
    expect_denied(LIST("map_huge", "memfd_huge", "#shmget_huge"), everything(&dir));
    expect_denied(LIST("map_huge"), LIST("--policy", "python"));
    expect_denied(LIST("map_huge"), LIST("--policy", "node"));
}

/* What shares memory by files keeps working. */
Test(review2, processes_share_memory_through_files)
{
    _cleanup_answer_ struct answer a =
        run_py("import multiprocessing as mp, sqlite3\n"
               "from multiprocessing import shared_memory\n"
               "def work(value, array, name):\n"
               "    block = shared_memory.SharedMemory(name)\n"
               "    with value.get_lock(): value.value += 1\n"
               "    array[1] = 2.5; block.buf[0] = 7; block.close()\n"
               "if __name__ == '__main__':\n"
               "    value, array = mp.Value('i', 1), mp.Array('d', 3)\n"
               "    block = shared_memory.SharedMemory(create=True, size=1 << 20)\n"
               "    child = mp.Process(target=work, args=(value, array, block.name))\n"
               "    child.start(); child.join()\n"
               "    print(value.value, array[:], block.buf[0])\n"
               "    block.close(); block.unlink()\n"
               "    with mp.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
               "    one, two = sqlite3.connect('b'), sqlite3.connect('b')\n"
               "    print(one.execute('pragma journal_mode=wal').fetchone()[0])\n"
               "    one.execute('create table t(x)'); one.execute('insert into t values (6)')\n"
               "    one.commit(); print(two.execute('select x from t').fetchone())\n",
               NULL);
    expect_stdout(&a, "2 [0.0, 2.5, 0.0] 7\n[1, 2]\nwal\n(6,)\n");
}

/* ---- another process of the same user, as init is one ---- */

Test(review2, the_scheduling_and_limits_of_others_are_not_the_programs)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    static const char *const attempts[] = {
        "other_prlimit",   "other_affinity", "other_priority", "other_group_priority",
        "other_scheduler", "other_param",    "other_ioprio",   NULL};
    expect_denied(attempts, NULL);
    expect_denied(attempts, LIST("--policy", "python"));
    expect_denied(attempts, LIST("--policy", "node"));
    expect_denied(attempts, everything(&dir));
    expect_allowed(LIST("own_prlimit", "own_priority"), NULL);
}

Test(review2, the_programs_own_cpus_are_its_own_only_where_a_cgroup_counts)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    if (watchdog_counts()) {
        expect_denied(LIST("own_affinity"), NULL);
        expect_denied(LIST("own_affinity"), everything(&dir));
    } else {
        expect_allowed(LIST("own_affinity"), NULL);
    }
}

/* Without files to open, and with no time left, init would count nothing. */
Test(review2, init_keeps_its_limits)
{
    _cleanup_answer_ struct answer a =
        run_py("import resource, sys\n"
               "for what, limit in (('NOFILE', (0, 0)), ('CPU', (1, 1)), ('AS', (0, 0))):\n"
               "    try: resource.prlimit(1, getattr(resource, 'RLIMIT_' + what), limit)\n"
               "    except PermissionError: print(what, flush=True)\n"
               "kept = bytearray(b'x') * (400 << 20)\n"
               "print('has it all')\n",
               LIST("--memory", "64M"));
    expect_reason(&a, "memory");
    expect(&a, answer_is(&a, "stdout", "NOFILE\nCPU\nAS\n"));
}
