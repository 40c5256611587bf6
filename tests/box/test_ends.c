/* test_ends.c - every way in which a run can end: the verdict is true, and nothing is left. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(ends, .timeout = 200);

/* The wall limit held: not early, and late by no more than that (a loaded machine: more). */
static void expect_wall(const struct answer *a, double limit_ms)
{
    double wall = answer_double(a, "usage.wall_ms");
    expect(a, wall >= limit_ms - 20);
    expect(a, wall <= limit_ms + 400 * slow());
}

Test(ends, with_the_program_though_a_child_sleeps)
{
    processes_watch();
    _cleanup_answer_ struct answer a =
        run_py("import subprocess\n"
               "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
               "print('done', flush=True)\n",
               LIST("--timeout", "60"));
    expect_stdout(&a, "done\n");
    expect(&a, answer_double(&a, "duration_ms") < 5000 * slow());
    expect(&a, !a.o.pipe_held);
    expect_nothing_left();
}

Test(ends, at_the_wall_limit_though_daemons_ignore_every_signal)
{
    const double limit_s = slow() > 1 ? 8 : 1.5; /* it has to come as far as its print */
    processes_watch();
    _cleanup_answer_ struct answer a = run_py("import os, signal, time\n"
                                              "for s in range(1, 65):\n"
                                              "    try: signal.signal(s, signal.SIG_IGN)\n"
                                              "    except (OSError, ValueError): pass\n"
                                              "if os.fork() == 0:\n"
                                              "    os.setsid()\n"
                                              "    if os.fork() == 0: time.sleep(600)\n"
                                              "    os._exit(0)\n"
                                              "print('up', flush=True)\n"
                                              "while True:\n"
                                              "    try: time.sleep(600)\n"
                                              "    except InterruptedError: pass\n",
                                              LIST("--timeout", text_format("%.1f", limit_s)));
    expect_reason(&a, "timeout");
    expect(&a, answer_is(&a, "stdout", "up\n"));
    expect_wall(&a, limit_s * 1000);
    expect_nothing_left();
}

Test(ends, stopping_everything_is_a_timeout)
{
    processes_watch();
    _cleanup_answer_ struct answer a =
        run_sh("kill -STOP 0; kill -STOP -1; sleep 600", LIST("--timeout", "1"));
    expect_reason(&a, "timeout");
    expect_wall(&a, 1000);
    expect_nothing_left();
}

Test(ends, signals_to_everybody_reach_nobody_outside)
{
    struct spawn bystander = {.argv = LIST("sleep", "100")};
    struct child child;
    struct output o;
    spawn_start(&bystander, &child);
    _cleanup_answer_ struct answer a = run_py("import os, signal\n"
                                              "for pid in (1, os.getppid()):\n"
                                              "    try: os.kill(pid, signal.SIGKILL)\n"
                                              "    except OSError: pass\n"
                                              "print('alive', flush=True)\n"
                                              "try: os.kill(-1, signal.SIGKILL)\n"
                                              "except OSError: pass\n"
                                              "print('still alive', flush=True)\n"
                                              "os.kill(os.getpid(), signal.SIGKILL)\n",
                                              NULL);
    expect_reason(&a, "signal");
    expect(&a, answer_int(&a, "signal") == SIGKILL);
    expect(&a, answer_is(&a, "stdout", "alive\nstill alive\n"));
    cr_assert_eq(kill(child.pid, 0), 0);
    cr_assert_eq(processes_below(getpid()), 1, "the bystander is gone");
    spawn_kill(&child, SIGKILL);
    spawn_finish(&child, &o);
    cr_assert_eq(o.signal, SIGKILL);
}

Test(ends, three_thousand_orphans_are_reaped_within_a_limit_of_64)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "made = 0\n"
                                              "while made < 3000:\n"
                                              "    try: pid = os.fork()\n"
                                              "    except BlockingIOError:\n"
                                              "        time.sleep(0.001); continue\n"
                                              "    if pid == 0:\n"
                                              "        if os.fork() == 0: os._exit(0)\n"
                                              "        os._exit(0)\n"
                                              "    try: os.waitpid(pid, 0)\n"
                                              "    except ChildProcessError: pass\n"
                                              "    made += 1\n"
                                              "print(made)\n",
                                              LIST("--pids", "64", "--timeout", "100"));
    expect_stdout(&a, "3000\n");
}

Test(ends, nothing_of_the_box_outlives_a_killed_hutch)
{
    processes_watch();
    unsigned seed = 12345;
    for (int i = 0; i < 50; i++) {
        struct spawn spec = {.argv = LIST(hutch_path(), "run", "--timeout", "60", "--", "sh", "-c",
                                          "trap '' HUP TERM; (setsid sleep 600 &) ; sleep 600")};
        struct child child;
        struct output o;
        spawn_start(&spec, &child);
        sleep_ms((unsigned)rand_r(&seed) % 60);
        spawn_kill(&child, SIGKILL);
        spawn_finish(&child, &o);
        cr_assert_eq(o.signal, SIGKILL);
        expect_nothing_left();
    }
}

Test(ends, there_is_always_a_wall_limit)
{
    _cleanup_answer_ struct answer plan =
        hutch(LIST("plan", "run", "--cpu-time", "5", "--", "sleep", "1000000"));
    expect(&plan, plan.json && strstr(plan.o.out, "30000"));
    _cleanup_answer_ struct answer a =
        run_command(LIST("--cpu-time", "1", "--timeout", "1.5"), LIST("sleep", "1000000"));
    expect_reason(&a, "timeout");
}

Test(ends, cpu_time_is_told_apart_from_wall_time)
{
    _cleanup_answer_ struct answer a =
        run_py("while True: pass", LIST("--cpu-time", "0.5", "--timeout", "60"));
    expect_reason(&a, "cpu_time");
    double cpu = answer_double(&a, "usage.cpu_ms");
    expect(&a, cpu >= 450 && cpu <= 1500 * slow());
}

Test(ends, cpu_time_counts_every_process_of_the_box)
{
    _cleanup_answer_ struct answer a = run_py("import os\n"
                                              "for i in range(7):\n"
                                              "    if os.fork() == 0: break\n"
                                              "while True: pass\n",
                                              LIST("--cpu-time", "1", "--timeout", "60"));
    expect_reason(&a, "cpu_time");
    expect(&a, answer_double(&a, "usage.wall_ms") < 10000 * slow());
}

Test(ends, signals_and_statuses_stay_distinguishable)
{
    static const struct {
        const char *code, *reason;
        int value, status;
    } cases[] = {
        {"kill -SEGV $$", "signal", 11, 139}, {"kill -TERM $$", "signal", 15, 143},
        {"kill -KILL $$", "signal", 9, 137},  {"exit 137", "exit", 137, 137},
        {"exit 125", "exit", 125, 125},       {"exit 124", "exit", 124, 124},
        {"exit 159", "exit", 159, 159},       {"exit 2", "exit", 2, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = run_command(NULL, LIST("sh", "-c", cases[i].code));
        expect_reason(&a, cases[i].reason);
        bool exit = strcmp(cases[i].reason, "exit") == 0;
        expect(&a, answer_int(&a, exit ? "exit_code" : "signal") == cases[i].value);
        expect(&a, a.o.exit_code == cases[i].status);
    }
}

Test(ends, abort_is_signal_6)
{
    _cleanup_answer_ struct answer a = run_py("import os\nos.abort()", NULL);
    expect_reason(&a, "signal");
    expect(&a, answer_int(&a, "signal") == SIGABRT);
}

Test(ends, ignoring_sigterm_is_timeout_and_killing_oneself_is_signal)
{
    _cleanup_answer_ struct answer a =
        run_py("import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)",
               LIST("--timeout", "0.7"));
    expect_reason(&a, "timeout");
    _cleanup_answer_ struct answer b = run_py("import os\nos.kill(os.getpid(), 9)", NULL);
    expect_reason(&b, "signal");
    expect(&b, answer_int(&b, "signal") == 9);
}

Test(ends, closed_streams_and_vanished_readers_do_not_hang)
{
    _cleanup_answer_ struct answer a = run_py("import os\n"
                                              "for fd in range(3): os.close(fd)\n"
                                              "os._exit(5)\n",
                                              NULL);
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 5);
}

Test(ends, output_that_nobody_reads_any_more_ends_hutch)
{
    struct spawn spec = {
        .argv =
            LIST("sh", "-c", text_format("%s run --timeout 60 -- yes | head -c 10", hutch_path()))};
    processes_watch();
    _cleanup_output_ struct output o = spawn_run(&spec);
    cr_assert_not(o.late);
    cr_assert_lt(o.ms, 30000 * slow());
    expect_nothing_left();
}
