/* test_review.c - ways around a limit, or into a false answer, that were found by attacking. */
#include <criterion/criterion.h>
#include <signal.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(review, .timeout = 120);

/* ---- what a host hands down ---- */

static void ignore_children(void *arg)
{
    (void)arg;
    (void)signal(SIGCHLD, SIG_IGN);
}

Test(review, a_host_that_ignores_sigchld_hears_of_the_end)
{
    struct spawn base = {.child = ignore_children};
    _cleanup_answer_ struct answer a = hutch_with(
        &base, LIST("run", "--json", "--timeout", "20", "--", "sh", "-c", "(exit 4); exit $?"));
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 4);
}

/* ---- memory, where no cgroup counts it ---- */

Test(review, memory_of_threads_counts_when_the_first_has_ended)
{
    _cleanup_answer_ struct answer a =
        run_py("import ctypes, mmap, os, threading\n"
               "def grow():\n"
               "    kept = []\n"
               "    for i in range(400):\n"
               "        kept.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE))\n"
               "        kept[-1].write(b'x' * (1 << 20))\n"
               "    print('has it all', flush=True)\n"
               "    os._exit(0)\n"
               "threading.Thread(target=grow).start()\n"
               "ctypes.CDLL(None).syscall(60, 0)\n",
               LIST("--memory", "64M"));
    expect_reason(&a, "memory");
}

Test(review, a_vforked_child_counts_with_its_parent)
{
    _cleanup_answer_ struct answer a = run_py("import subprocess\n"
                                              "kept = bytearray(b'x') * (40 << 20)\n"
                                              "for i in range(200):\n"
                                              "    subprocess.run(['/bin/true'], check=True)\n"
                                              "print(len(kept))\n",
                                              LIST("--memory", "64M"));
    expect_stdout(&a, "41943040\n");
}

Test(review, a_written_copy_counts)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "kept = bytearray(b'x') * (40 << 20)\n"
                                              "if os.fork() == 0:\n"
                                              "    kept[::4096] = b'y' * (len(kept) // 4096)\n"
                                              "    time.sleep(20)\n"
                                              "os.wait()\n",
                                              LIST("--memory", "64M"));
    expect_reason(&a, "memory");
}

/* ---- CPU time ---- */

Test(review, cpu_time_of_children_that_were_waited_for_counts)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "while True:\n"
                                              "    pid = os.fork()\n"
                                              "    if pid == 0:\n"
                                              "        while time.process_time() < 0.1:\n"
                                              "            pass\n"
                                              "        os._exit(0)\n"
                                              "    os.waitpid(pid, 0)\n",
                                              LIST("--cpu-time", "1", "--timeout", "20"));
    expect_reason(&a, "cpu_time");
}

Test(review, a_signal_is_no_used_up_cpu_time)
{
    _cleanup_answer_ struct answer a =
        run_command(LIST("--cpu-time", "10"), LIST("sh", "-c", "kill -XCPU $$"));
    expect_reason(&a, "signal");
}

/* ---- what boxes share ---- */

Test(review, terminals_are_few)
{
    _cleanup_answer_ struct answer a = run_py("import os\n"
                                              "kept = []\n"
                                              "try:\n"
                                              "    while True:\n"
                                              "        kept += os.openpty()\n"
                                              "except OSError:\n"
                                              "    print(len(kept) // 2)\n",
                                              LIST("--policy", "default"));
    expect_stdout(&a, "64\n");
}

/* ---- files ---- */

static const char *python_in(const char *dir, const char *name)
{
    const char *python = path_in(dir, name);
    cr_assert_eq(symlink("/usr/bin/python3", python), 0);
    return python;
}

Test(review, an_interpreter_does_not_bring_a_home_directory_along)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_home();
    const char *bin = path_in(dir.path, "bin"), *tools = path_in(dir.path, "tools");
    cr_assert(mkdir(bin, 0755) == 0 && mkdir(tools, 0755) == 0);
    const char *python = python_in(bin, "python3"), *link = python_in(tools, "python3");
    const char *secret = file_new(dir.path, "secret", "s", 0644);
    const char *code = text_format("import os; print(os.path.exists('%s'))", secret);
    _cleanup_answer_ struct answer a = run_py(code, LIST("--python", python));
    expect_refused(&a, 2, "venv");
    /* In no bin directory: what it links to is all that is needed. */
    _cleanup_answer_ struct answer b = run_py(code, LIST("--python", link));
    expect_stdout(&b, "False\n");
    /* A python of its own, but in the home directory itself. */
    (void)file_new(dir.path, "pyvenv.cfg", "home = /usr/bin\n", 0644);
    _cleanup_answer_ struct answer c = run_py(code, LIST("--python", python));
    expect_stdout(&c, "True\n");
    const char *command = text_format("HOME=%s exec %s run --python %s --language python - "
                                      "</dev/null",
                                      dir.path, hutch_path(), python);
    _cleanup_output_ struct output d =
        spawn_run(&(struct spawn){.argv = LIST("sh", "-c", command)});
    cr_assert(d.exit_code == 2 && strstr(d.err, "venv"), "%d %s", d.exit_code, d.err);
}

/* Landlock keeps /proc from being written; as root the host wrote the score, which then stays even
 * without Landlock. */
Test(review, the_oom_score_stays)
{
    _cleanup_answer_ struct answer a = run_command(
        NULL, LIST("sh", "-c",
                   "echo 0 2>/dev/null >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj"));
    cr_assert_str_eq(answer_text(&a, "stdout"), "1000\n");
}

/* Root's pipes are the box's user's, as a terminal would be. */
Test(review, standard_streams_can_be_opened_again)
{
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("sh", "-c", "echo out >/dev/stdout; echo err >/dev/stderr"));
    cr_assert_str_eq(answer_text(&a, "stdout"), "out\n");
    cr_assert_str_eq(answer_text(&a, "stderr"), "err\n");
}

Test(review, sigsys_of_its_own_is_a_signal)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("sh", "-c", "kill -SYS $$"));
    cr_assert_str_eq(answer_text(&a, "reason"), "signal");
}

Test(review, sockets_count_as_memory)
{
    _cleanup_answer_ struct answer a =
        run_py("import resource, socket, os, time\n"
               "for _ in range(8):\n"
               "    if os.fork() == 0:\n"
               "        kept = []\n"
               "        try:\n"
               "            while True: kept += socket.socketpair()\n"
               "        except OSError:\n"
               "            time.sleep(20)\n"
               "time.sleep(20)\n",
               LIST("--memory", "128M", "--timeout", "30"));
    if (!strcmp(answer_text(&a, "receipt.layers.memory"), "watchdog"))
        cr_assert_str_eq(answer_text(&a, "reason"), "memory");
    else
        cr_assert(strcmp(answer_text(&a, "reason"), "setup") != 0);
}

/* Somebody else's link would choose what root hands into the box. */
Test(review, a_bind_goes_through_no_link_of_another_user)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *secret = path_in(dir.path, "secret"), *link = path_in(dir.path, "link");
    cr_assert_eq(mkdir(secret, 0700) | symlink(secret, link), 0);
    _cleanup_answer_ struct answer own =
        hutch(LIST("run", "--bind", text_format("%s:/in", link), "--", "true"));
    cr_assert_eq(own.o.exit_code, 0, "%s", own.o.err);
    if (!is_root())
        return; /* only root can make another user's link */
    cr_assert_eq(lchown(link, 12345, 12345), 0);
    _cleanup_answer_ struct answer other =
        hutch(LIST("run", "--bind", text_format("%s:/in", link), "--", "true"));
    cr_assert_eq(other.o.exit_code, 2);
    cr_assert_not_null(strstr(other.o.err, "link"));
}

/* A shared map of /dev/zero, dropped again, is in no process's numbers. */
Test(review, zero_is_read_but_not_mapped_where_nothing_counts_it)
{
    _cleanup_answer_ struct answer a =
        run_py("import mmap, os\n"
               "print(sum(open('/dev/zero', 'rb').read(100)))\n"
               "try:\n"
               "    mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20, mmap.MAP_SHARED)\n"
               "    print('mapped')\n"
               "except OSError:\n"
               "    print('refused')\n",
               NULL);
    bool watched = !strcmp(answer_text(&a, "receipt.layers.memory"), "watchdog");
    cr_assert_str_eq(answer_text(&a, "stdout"), watched ? "0\nrefused\n" : "0\nmapped\n");
}
