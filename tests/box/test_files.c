/* test_files.c - what a program may leave in its directory, and what must come of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(files, .timeout = 200);

static void expect_skipped(const struct answer *a, const char *name, const char *why)
{
    int at = answer_find(a, "files_skipped", name);
    cr_assert_geq(at, 0, "%s is not listed as skipped\n%s", name, answer_show(a));
    expect(a, answer_is(a, text_format("files_skipped.%d.why", at), why));
    expect(a, answer_find(a, "files", name) < 0);
}

Test(files, symlinks_are_listed_and_never_read)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "os.symlink('/etc/hostname', 'out.txt')\n"
               "os.symlink('/proc/self/root/etc/hostname', 'proc.txt')\n"
               "os.symlink('../../../etc/hostname', 'up.txt')\n"
               "os.symlink('/', 'dir')\n"
               "os.symlink('real.txt', 'inside.txt')\n"
               "open('real.txt', 'w').write('real')\n",
               NULL);
    expect_clean(&a);
    static const char *const links[] = {"out.txt", "proc.txt", "up.txt", "dir", "inside.txt"};
    for (size_t i = 0; i < 5; i++)
        expect_skipped(&a, links[i], "symlink");
    expect(&a, answer_len(&a, "files") == 1);
    cr_assert_str_eq(answer_file(&a, "real.txt", NULL), "real");
}

Test(files, surviving_child_that_swaps_names_is_dead_before_collection)
{
    static const char CODE[] = "import os, sys, time\n"
                               "open('secret-name', 'w').write('mine')\n"
                               "if os.fork() == 0:\n"
                               "    os.setsid()\n"
                               "    n = 0\n"
                               "    while True:\n"
                               "        n += 1\n"
                               "        try: os.unlink('x')\n"
                               "        except OSError: pass\n"
                               "        if n % 3 == 0: os.mkfifo('x')\n"
                               "        elif n % 3 == 1: os.symlink('/etc/passwd', 'x')\n"
                               "        else: open('x', 'w').write('file')\n"
                               "        if n == 5: open('started', 'w')\n"
                               "while not os.path.exists('started'): time.sleep(0.001)\n";
    int repeats = slow() > 1 ? 20 : 200;
    processes_watch();
    for (int i = 0; i < repeats; i++) {
        _cleanup_answer_ struct answer a = run_py(CODE, NULL);
        expect_clean(&a);
        const char *data = answer_file(&a, "x", NULL);
        expect(&a, !data || strcmp(data, "file") == 0 || *data == 0);
        expect(&a, !strstr(a.o.out, "cm9vdDp4")); /* "root:x" in base64 */
        cr_assert_str_eq(answer_file(&a, "secret-name", NULL), "mine");
    }
    expect_nothing_left();
}

Test(files, fifos_sockets_and_devices_are_skipped_with_their_type)
{
    _cleanup_answer_ struct answer a = run_py("import os, socket\n"
                                              "os.mkfifo('a')\n"
                                              "s = socket.socket(socket.AF_UNIX)\n"
                                              "s.bind('sock')\n"
                                              "open('real.json', 'w').write('{}')\n",
                                              NULL);
    expect_clean(&a);
    expect_skipped(&a, "a", "fifo");
    expect_skipped(&a, "sock", "socket");
    cr_assert_str_eq(answer_file(&a, "real.json", NULL), "{}");
}

Test(files, endless_empty_files_end_at_the_inode_limit)
{
    _cleanup_answer_ struct answer a = run_py("import errno\n"
                                              "for i in range(10_000_000):\n"
                                              "    try: open(f'f{i}', 'w').close()\n"
                                              "    except OSError as e:\n"
                                              "        print(errno.errorcode[e.errno], i < 20000)\n"
                                              "        break\n",
                                              LIST("--timeout", "60"));
    expect_stdout(&a, "ENOSPC True\n");
    expect(&a, answer_bool(&a, "files_cut"));
    expect(&a, answer_len(&a, "files") < 20000);
    expect(&a, a.o.ms < 30000 * slow());
}

Test(files, full_tmp_is_enospc_and_no_kill)
{
    _cleanup_answer_ struct answer a =
        run_py("import errno\n"
               "n = 0\n"
               "try:\n"
               "    with open('/tmp/big', 'wb', 0) as f:\n"
               "        while True: n += f.write(b'x' * 65536)\n"
               "except OSError as e: print(errno.errorcode[e.errno])\n"
               "print(4 << 20 <= n <= 8 << 20)\n",
               LIST("--disk", "8M", "--memory", "128M"));
    expect_stdout(&a, "ENOSPC\nTrue\n");
}

Test(files, disk_is_one_limit_over_all_writable_places)
{
    _cleanup_answer_ struct answer a =
        run_py("import os, errno\n"
               "total = 0\n"
               "for d in '/work', '/tmp', '/dev/shm':\n"
               "    try:\n"
               "        with open(d + '/big', 'wb', 0) as f:\n"
               "            for _ in range(1000): total += f.write(b'x' * 65536)\n"
               "    except OSError as e: assert e.errno == errno.ENOSPC\n"
               "os.unlink('/work/big')\n"
               "print(total <= 8 << 20, total >= 4 << 20)\n",
               LIST("--disk", "8M"));
    expect_stdout(&a, "True True\n");
}

Test(files, unreadable_directories_leave_nothing_behind)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "os.makedirs('closed/inner'); open('closed/inner/f', 'w').write('deep')\n"
               "os.chmod('closed/inner/f', 0)\n"
               "os.makedirs('ro'); open('ro/g', 'w').write('shallow')\n"
               "os.chmod('ro', 0o500); os.chmod('closed/inner', 0); os.chmod('closed', 0)\n",
               NULL);
    expect_clean(&a);
    cr_assert_str_eq(answer_file(&a, "closed/inner/f", NULL), "deep");
    cr_assert_str_eq(answer_file(&a, "ro/g", NULL), "shallow");
}

Test(files, out_directory_needs_no_root_to_be_removed)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *out = path_in(dir.path, "out");
    struct stat info;
    _cleanup_answer_ struct answer a =
        hutch(LIST("run", "--out", out, "--", "sh", "-c",
                   "mkdir -p d/e; echo x >d/e/f; chmod 0 d/e/f; chmod 0500 d/e; chmod 0 d"));
    expect(&a, a.o.exit_code == 0);
    cr_assert_str_eq(file_text(path_in(out, "d/e/f")), "x\n");
    cr_assert_eq(stat(path_in(out, "d/e"), &info), 0);
    cr_assert_eq(info.st_uid, geteuid());
    cr_assert_eq(info.st_mode & 0700, 0700);
}

Test(files, bind_of_the_current_directory_leaves_no_ghosts)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    file_new(dir.path, "here", "x", 0644);
    const char *before = tree_now(dir.path), *mounts = mounts_now();
    struct spawn base = {.cwd = dir.path};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--bind", text_format("%s:/work", dir.path), "--", "true"));
    expect(&a, a.o.exit_code == 0);
    cr_assert_str_eq(tree_now(dir.path), before);

    struct spawn killed = {.argv = LIST(hutch_path(), "run", "--bind",
                                        text_format("%s:/work", dir.path), "--", "sh", "-c",
                                        "echo ready; sleep 60")};
    struct child child;
    struct output o;
    processes_watch();
    spawn_start(&killed, &child);
    cr_assert(spawn_await(&child, "ready", 20000));
    spawn_kill(&child, SIGKILL);
    spawn_finish(&child, &o);
    expect_nothing_left();
    cr_assert_str_eq(tree_now(dir.path), before);
    cr_assert_str_eq(lines_new(mounts, mounts_now()), "");
}

Test(files, strange_names_come_back_each_once)
{
    _cleanup_answer_ struct answer a = run_py(
        "import os\n"
        "for n in 'Case', 'case', 'CASE', '-rf', ' space ', 'new\\nline', 'tab\\t', \"q'\\\"\","
        " '$(touch pwned)', '*', 'back\\\\slash', 'a' * 255, '\\x7f\\x1b[31m', 'ü':\n"
        "    open(n, 'w').write(n)\n"
        "os.close(os.open(b'\\xff\\xfe', os.O_CREAT | os.O_WRONLY))\n",
        NULL);
    static const char *const names[] = {"Case",           "case",      "CASE",        "-rf",
                                        " space ",        "new\nline", "tab\t",       "q'\"",
                                        "$(touch pwned)", "*",         "back\\slash", "ü"};
    expect_clean(&a);
    expect(&a, answer_len(&a, "files") == 15);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *data = answer_file(&a, names[i], NULL);
        cr_assert(data && strcmp(data, names[i]) == 0, "%s\n%s", names[i], answer_show(&a));
    }
    bool bytes = false;
    for (size_t i = 0; i < 15; i++) {
        const char *path = text_format("files.%zu.name_b64", i);
        bytes |= answer_is(&a, path, "//4=");
    }
    expect(&a, bytes);
}

Test(files, strange_names_come_out_into_a_directory)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *out = path_in(dir.path, "out");
    _cleanup_answer_ struct answer a =
        hutch(LIST("run", "--out", out, "--", "sh", "-c",
                   "echo 1 >./-rf; echo 2 >' x '; echo 3 >'$(touch pwned)'; echo 4 >'*'"));
    expect(&a, a.o.exit_code == 0);
    cr_assert_str_eq(names_now(out), " x \n$(touch pwned)\n*\n-rf\n");
}

Test(files, a_file_larger_than_the_disk_is_efbig_and_a_large_one_is_bounded)
{
    _cleanup_answer_ struct answer a =
        run_py("import errno\n"
               "f = open('sparse', 'wb', 0)\n"
               "try: f.seek((1 << 40) - 1); f.write(b'x')\n"
               "except OSError as e: print(errno.errorcode[e.errno])\n"
               "f.truncate(12 << 20)\n",
               LIST("--disk", "16M"));
    expect_stdout(&a, "EFBIG\n");
    expect(&a, a.o.max_rss_kib < rss_bound(400 << 10));
    const char *path = text_format("files.%d", answer_find(&a, "files", "sparse"));
    size_t len;
    (void)answer_file(&a, "sparse", &len);
    expect(&a, answer_int(&a, text_format("%s.size", path)) == 12 << 20);
    expect(&a, (len == 12 << 20) != answer_bool(&a, text_format("%s.truncated", path)));
}

Test(files, hard_links_and_deep_trees_are_bounded)
{
    _cleanup_answer_ struct answer a = run_py("import os\n"
                                              "for i in range(400):\n"
                                              "    os.mkdir('d'); os.chdir('d')\n"
                                              "open('bottom', 'w').write('x')\n",
                                              NULL);
    expect(&a, answer_is(&a, "reason", "exit") && answer_int(&a, "exit_code") == 0);
    expect(&a, answer_bool(&a, "files_cut") || answer_len(&a, "files") == 1);
}

Test(files, a_replaced_work_directory_changes_nothing)
{
    _cleanup_answer_ struct answer a =
        run_sh("cd /; mv /work /tmp/w 2>/dev/null; "
               "rmdir /work 2>/dev/null; ln -s /etc /work 2>/dev/null\n"
               "echo x >/work/file",
               NULL);
    expect(&a, answer_is(&a, "reason", "exit"));
    cr_assert_str_eq(answer_file(&a, "file", NULL), "x\n");
}
