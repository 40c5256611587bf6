/*
 * test_limits.c - memory, processes, CPUs. Where there is no cgroup the watchdog keeps them; the
 * tests ask for what both must do, and that the receipt tells which one it was.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(limits, .timeout = 200);

#define EAT(amount)                                                                                \
    "keep = []\n"                                                                                  \
    "for _ in range(" amount "): keep.append(bytearray(b'x' * (1 << 20)))\n"

static void expect_memory(const struct answer *a, long long limit)
{
    expect_reason(a, "memory");
    expect(a, answer_int(a, "usage.memory_limit_bytes") == limit);
    expect(a, answer_int(a, "usage.memory_peak_bytes") >= limit * 8 / 10);
    expect(a, answer_int(a, "usage.memory_peak_bytes") <= limit * 3 / 2 + (64 << 20));
}

Test(limits, receipt_says_what_keeps_memory)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    expect_clean(&a);
    bool cgroup = answer_is(&a, "receipt.layers.cgroup", "on");
    expect(&a, answer_is(&a, "receipt.layers.memory", cgroup ? "cgroup" : "watchdog"));
    expect(&a, answer_is(&a, "usage.source", cgroup ? "cgroup" : "sampled"));
}

Test(limits, require_memory_insists_on_the_cgroup)
{
    static const char *const layers[] = {"memory", "pids", "cpu", "cgroup"};
    _cleanup_answer_ struct answer plain = run_command(NULL, LIST("true"));
    for (size_t i = 0; i < 4; i++) {
        const char *path = text_format("receipt.layers.%s", layers[i]);
        bool cgroup = answer_is(&plain, path, "cgroup") || answer_is(&plain, path, "on");
        _cleanup_answer_ struct answer a = run_command(LIST("--require", layers[i]), LIST("true"));
        if (cgroup) {
            expect_clean(&a);
        } else {
            expect_reason(&a, "setup");
            expect(&a, strstr(answer_text(&a, "error"), layers[i]));
        }
    }
    _cleanup_answer_ struct answer human = hutch(LIST("run", "--require", "memory", "--", "true"));
    if (!answer_is(&plain, "receipt.layers.memory", "cgroup"))
        expect_refused(&human, 125, "memory");
}

Test(limits, eating_memory_is_memory)
{
    processes_watch();
    _cleanup_answer_ struct answer a =
        run_py(EAT("10000") "print('not reached')", LIST("--memory", "64M", "--timeout", "60"));
    expect_memory(&a, 64 << 20);
    expect_nothing_left();
}

Test(limits, a_child_that_eats_is_memory_though_its_parent_exits_0)
{
    _cleanup_answer_ struct answer a = run_py("import os\n"
                                              "pid = os.fork()\n"
                                              "if pid == 0:\n"
                                              "    "
                                              "keep = []\n"
                                              "    while True: keep.append(b'x' * (1 << 20))\n"
                                              "os.waitpid(pid, 0)\n"
                                              "os._exit(0)\n",
                                              LIST("--memory", "64M", "--timeout", "60"));
    expect_memory(&a, 64 << 20);
}

Test(limits, eight_children_that_eat_at_once_stay_within_the_bound)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "for i in range(8):\n"
                                              "    if os.fork() == 0:\n"
                                              "        keep = []\n"
                                              "        while True: keep.append(b'x' * (1 << 20))\n"
                                              "time.sleep(60)\n",
                                              LIST("--memory", "64M", "--timeout", "60"));
    expect_memory(&a, 64 << 20);
}

Test(limits, memory_hidden_in_tmpfs_counts)
{
    _cleanup_answer_ struct answer a =
        run_py("f = open('/tmp/big', 'wb', 0)\n"
               "for _ in range(200): f.write(b'x' * (1 << 20))\n"
               "import time\ntime.sleep(60)\n",
               LIST("--memory", "64M", "--disk", "1G", "--timeout", "30"));
    expect_reason(&a, "memory");
}

Test(limits, page_tables_count)
{
    _cleanup_answer_ struct answer a =
        run_py("import mmap, time\n"
               "m = mmap.mmap(-1, 1 << 37, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000,"
               " prot=mmap.PROT_READ)\n"
               "x = 0\n"
               "for at in range(0, 1 << 37, 1 << 21): x += m[at]\n"
               "time.sleep(60)\n",
               LIST("--memory", "64M", "--timeout", "30"));
    expect_reason(&a, "memory");
}

Test(limits, below_the_limit_is_no_kill)
{
    _cleanup_answer_ struct answer a =
        run_py(EAT("40") "import time\ntime.sleep(0.3)\nprint('ok')", LIST("--memory", "64M"));
    expect_stdout(&a, "ok\n");
}

Test(limits, there_is_no_address_space_limit)
{
    _cleanup_answer_ struct answer a =
        run_py("try: bytearray(1 << 46)\nexcept MemoryError: print('MemoryError')", NULL);
    expect_stdout(&a, "MemoryError\n");
}

Test(limits, webassembly_memory_works_within_256M)
{
    _cleanup_answer_ struct answer a =
        run_js("const m = new WebAssembly.Memory({initial: 100, maximum: 1000});\n"
               "m.grow(100); new Uint8Array(m.buffer)[5] = 7;\n"
               "console.log(m.buffer.byteLength, new Uint8Array(m.buffer)[5])",
               LIST("--memory", "256M"));
    expect_stdout(&a, "13107200 7\n");
}

Test(limits, matrix_product_with_one_cpu_and_32_processes)
{
    _cleanup_answer_ struct answer a =
        run_py("import numpy\n"
               "a = numpy.ones((600, 600))\n"
               "print((a @ a)[3, 3])\n",
               LIST("--cpus", "1", "--pids", "32", "--memory", "1G", "--timeout", "60"));
    expect_stdout(&a, "600.0\n");
}

Test(limits, thread_counts_are_preset_from_the_quota)
{
    static const struct {
        const char *cpus, *wanted;
    } cases[] = {{"0.5", "1"}, {"1", "1"}, {"1.5", "2"}};
    for (size_t i = 0; i < 3; i++) {
        _cleanup_answer_ struct answer a =
            run_py("import os\n"
                   "for n in 'OPENBLAS OMP MKL NUMEXPR'.split():\n"
                   "    print(os.environ[n + '_NUM_THREADS'])\n"
                   "print(os.environ['RAYON_NUM_THREADS'])\n"
                   "n = int(os.environ.get('PYTHON_CPU_COUNT', len(os.sched_getaffinity(0))))\n"
                   "print(min(n, len(os.sched_getaffinity(0))))\n",
                   LIST("--cpus", cases[i].cpus));
        const char *w = cases[i].wanted;
        expect_stdout(&a, text_format("%s\n%s\n%s\n%s\n%s\n%s\n", w, w, w, w, w, w));
    }
}

Test(limits, processes_are_counted_per_box)
{
    enum { BOXES = 8 };
    static const char CODE[] = "import threading, time\n"
                               "e = threading.Event()\n"
                               "t = [threading.Thread(target=e.wait) for _ in range(50)]\n"
                               "for x in t: x.start()\n"
                               "time.sleep(0.5)\n"
                               "e.set()\n"
                               "for x in t: x.join()\n"
                               "print('fine')\n";
    struct child children[BOXES];
    for (int i = 0; i < BOXES; i++) {
        struct spawn spec = {.argv = LIST(hutch_path(), "run", "--pids", "64", "--timeout", "100",
                                          "--language", "python", "-"),
                             .input = CODE,
                             .input_len = strlen(CODE),
                             .deadline_ms = 120000};
        spawn_start(&spec, &children[i]);
    }
    for (int i = 0; i < BOXES; i++) {
        _cleanup_output_ struct output o = {0};
        spawn_finish(&children[i], &o);
        cr_expect(o.exit_code == 0 && strcmp(o.out, "fine\n") == 0, "box %d: %d\n%s%s", i,
                  o.exit_code, o.out, o.err);
    }
}

Test(limits, more_processes_than_allowed_are_refused)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "n = 0\n"
                                              "try:\n"
                                              "    for _ in range(100):\n"
                                              "        if os.fork() == 0: time.sleep(60)\n"
                                              "        n += 1\n"
                                              "except BlockingIOError: pass\n"
                                              "print(n)\n"
                                              "os._exit(0)\n",
                                              LIST("--pids", "20"));
    expect(&a, answer_is(&a, "reason", "exit"));
    long made = strtol(answer_text(&a, "stdout"), NULL, 10);
    expect(&a, made >= 15 && made <= 20);
    /* Nobody counts what an rlimit refuses. */
    bool cgroup = answer_is(&a, "receipt.layers.pids", "cgroup");
    expect(&a, cgroup ? answer_int(&a, "usage.pids_denied") > 0
                      : answer_int(&a, "usage.pids_denied") == 0);
}

/* More than the disk holds, so that a full disk is ENOSPC. */
Test(limits, no_file_is_larger_than_the_disk)
{
    _cleanup_answer_ struct answer a =
        run_py("import errno\n"
               "f = open('/work/f', 'wb')\n"
               "f.truncate(4 << 20)\n"
               "try: f.truncate(6 << 20)\n"
               "except OSError as e: print(errno.errorcode[e.errno])\n"
               "try:\n"
               "    with open('/work/g', 'wb') as g: g.write(bytes(5 << 20))\n"
               "except OSError as e: print(errno.errorcode[e.errno])\n",
               LIST("--disk", "4M"));
    expect_stdout(&a, "EFBIG\nENOSPC\n");
    _cleanup_answer_ struct answer killed =
        run_sh("exec truncate -s 6M /work/f", LIST("--disk", "4M"));
    expect_reason(&killed, "signal");
    expect(&killed, answer_int(&killed, "signal") == SIGXFSZ);
}

Test(limits, fork_bomb_ends_at_its_limits)
{
    processes_watch();
    double before = now_ms();
    _cleanup_answer_ struct answer a =
        run_sh("b() { b | b & }; b; sleep 60", LIST("--pids", "64", "--timeout", "2"));
    double took = now_ms() - before;
    expect(&a, answer_is(&a, "reason", "timeout") || answer_is(&a, "reason", "exit") ||
                   answer_is(&a, "reason", "memory"));
    cr_assert_lt(took, 2000 + 3000 * slow());
    expect_nothing_left();
}

Test(limits, three_boxes_of_64M_share_nothing)
{
    static const char CODE[] = EAT("40") "import time\ntime.sleep(0.5)\nprint('fine')";
    struct child children[3];
    for (int i = 0; i < 3; i++) {
        struct spawn spec = {
            .argv = LIST(hutch_path(), "run", "--memory", "64M", "--language", "python", "-"),
            .input = CODE,
            .input_len = strlen(CODE)};
        spawn_start(&spec, &children[i]);
    }
    for (int i = 0; i < 3; i++) {
        _cleanup_output_ struct output o = {0};
        spawn_finish(&children[i], &o);
        cr_expect(o.exit_code == 0 && strcmp(o.out, "fine\n") == 0, "box %d: %d\n%s%s", i,
                  o.exit_code, o.out, o.err);
    }
}

static void lower_files(void *arg)
{
    (void)arg;
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
}

Test(limits, limits_of_the_caller_are_never_raised)
{
    struct spawn base = {.child = lower_files};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn"));
    expect_stdout(&a, "64\n64\n");
}

Test(limits, open_files_are_at_most_1024)
{
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("sh", "-c", "test $(ulimit -Hn) -le 1024 && echo fine"));
    expect_stdout(&a, "fine\n");
}

Test(limits, memory_bomb_and_fork_bomb_at_once_are_gone_in_time)
{
    processes_watch();
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "keep = []\n"
               "while True:\n"
               "    try: os.fork()\n"
               "    except OSError: pass\n"
               "    keep.append(b'x' * (1 << 18))\n",
               LIST("--pids", "32", "--memory", "128M", "--timeout", "10"));
    expect(&a, answer_is(&a, "reason", "memory") || answer_is(&a, "reason", "timeout"));
    expect(&a, answer_double(&a, "duration_ms") < 12000 * slow());
    expect_nothing_left();
}
