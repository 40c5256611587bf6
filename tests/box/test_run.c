/* test_run.c - hutch run: what goes in, what comes out, and the exit statuses. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(run, .timeout = 120);

Test(run, python_script)
{
    _cleanup_answer_ struct answer a = run_py("import sys\nprint(6 * 7, sys.argv)", NULL);
    expect_stdout(&a, "42 ['/work/main.py']\n");
}

Test(run, javascript_script)
{
    _cleanup_answer_ struct answer a = run_js("console.log([1, 2].map(x => x * 21))", NULL);
    expect_stdout(&a, "[ 21, 42 ]\n");
}

Test(run, bash_script)
{
    _cleanup_answer_ struct answer a = run_sh("x=(a b); echo ${x[1]} $0", NULL);
    expect_stdout(&a, "b /work/main.sh\n");
}

Test(run, command_with_both_streams_and_its_status)
{
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("sh", "-c", "echo out; echo err >&2; exit 3"));
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 3);
    expect(&a, answer_is(&a, "stdout", "out\n") && answer_is(&a, "stderr", "err\n"));
    expect(&a, answer_int(&a, "stdout_bytes") == 4 && answer_int(&a, "stderr_bytes") == 4);
}

Test(run, language_by_suffix_and_arguments_after_dashes)
{
    static const struct {
        const char *name, *code;
    } cases[] = {
        {"a.py", "import sys; print(sys.argv[1:])"},
        {"a.js", "console.log(JSON.stringify(process.argv.slice(2)))"},
        {"a.sh", "printf '%s|' \"$@\""},
    };
    static const char *const wanted[] = {"['--json', 'x y', '']\n", "[\"--json\",\"x y\",\"\"]\n",
                                         "--json|x y||"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    for (size_t i = 0; i < 3; i++) {
        const char *path = file_new(dir.path, cases[i].name, cases[i].code, 0644);
        _cleanup_answer_ struct answer a =
            hutch(LIST("run", "--json", path, "--", "--json", "x y", ""));
        expect_stdout(&a, wanted[i]);
    }
}

Test(run, suffix_that_says_nothing_needs_language)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *path = file_new(dir.path, "code.txt", "print(1)", 0644);
    _cleanup_answer_ struct answer refused = hutch(LIST("run", path));
    expect_refused(&refused, 2, "--language");
    _cleanup_answer_ struct answer a = hutch(LIST("run", "--language", "python", path));
    expect(&a, a.o.exit_code == 0 && strcmp(a.o.out, "1\n") == 0);
}

Test(run, stdin_is_empty_unless_given)
{
    static const char CODE[] = "import sys; print(repr(sys.stdin.read()))";
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *code = file_new(dir.path, "code.py", CODE, 0644);
    const char *input = file_new(dir.path, "input", "from a file", 0600);
    struct spawn base = {.input = "from a pipe", .input_len = 11};

    _cleanup_answer_ struct answer none = hutch_with(&base, LIST("run", "--json", code));
    expect_stdout(&none, "''\n");
    _cleanup_answer_ struct answer file = hutch(LIST("run", "--json", "--stdin", input, code));
    expect_stdout(&file, "'from a file'\n");
    _cleanup_answer_ struct answer pipe =
        hutch_with(&base, LIST("run", "--json", "--stdin", "-", code));
    expect_stdout(&pipe, "'from a pipe'\n");
}

Test(run, large_stdin_goes_through)
{
    size_t len = 8 << 20;
    char *data = malloc(len);
    cr_assert_not_null(data);
    memset(data, 'x', len);
    struct spawn base = {.input = data, .input_len = len};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--stdin", "-", "--", "wc", "-c"));
    expect_stdout(&a, "8388608\n");
}

Test(run, program_that_never_reads_its_stdin_does_not_stop_hutch)
{
    size_t len = 4 << 20;
    char *data = calloc(len, 1);
    struct spawn base = {.input = data, .input_len = len};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--stdin", "-", "--", "true"));
    expect_stdout(&a, "");
}

Test(run, environment_is_built_not_inherited)
{
    struct spawn base = {.env = LIST("SECRET=canary", "PATH=/usr/bin:/bin",
                                     "LD_PRELOAD=", "PYTHONPATH=/nowhere", "HOME=/root")};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--env", "A=1", "--env", "B=x=y", "--env", "A=2",
                               "--", "env"));
    expect_clean(&a);
    const char *out = answer_text(&a, "stdout");
    expect(&a, strstr(out, "A=2\n") && !strstr(out, "A=1\n") && strstr(out, "B=x=y\n"));
    expect(&a, strstr(out, "HOME=/tmp\n") && strstr(out, "PATH="));
    expect(&a, !strstr(out, "canary") && !strstr(out, "PYTHONPATH") && !strstr(out, "LD_PRELOAD"));
}

Test(run, environment_that_names_nothing_is_refused)
{
    _cleanup_answer_ struct answer a = hutch(LIST("run", "--env", "novalue", "--", "true"));
    expect_refused(&a, 2, "--env");
    _cleanup_answer_ struct answer b = hutch(LIST("run", "--env", "=x", "--", "true"));
    expect_refused(&b, 2, "--env");
}

Test(run, input_files_keep_their_execute_bit)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *tool = file_new(dir.path, "tool", "#!/bin/sh\necho tool $1\n", 0755);
    const char *data = file_new(dir.path, "data", "some data", 0600);
    _cleanup_answer_ struct answer a = run_command(
        LIST("--file", tool, "--file", text_format("%s:sub/dir/renamed.txt", data)),
        LIST("sh", "-c",
             "./tool x; cat sub/dir/renamed.txt; test ! -x sub/dir/renamed.txt && echo :plain"));
    expect_stdout(&a, "tool x\nsome data:plain\n");
    expect(&a, answer_len(&a, "files") == 0);
}

Test(run, input_files_may_be_written)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *data = file_new(dir.path, "data", "abc", 0400);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--file", data), LIST("sh", "-c", "echo more >>data"));
    expect_clean(&a);
    cr_assert_str_eq(answer_file(&a, "data", NULL), "abcmore\n");
    cr_assert_str_eq(file_text(data), "abc");
}

Test(run, input_names_that_leave_work_are_refused)
{
    static const char *const names[] = {"../x", "/x",       "a/../../x", "..",
                                        ".",    "a//../..", "sub/",      "main.py"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *data = file_new(dir.path, "data", "abc", 0644);
    const char *code = file_new(dir.path, "code.py", "print(1)", 0644);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        _cleanup_answer_ struct answer a =
            hutch(LIST("run", "--file", text_format("%s:%s", data, names[i]), code));
        expect_refused(&a, 2, "file");
    }
}

Test(run, input_files_that_clash_are_refused)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *data = file_new(dir.path, "data", "abc", 0644);
    _cleanup_answer_ struct answer same =
        hutch(LIST("run", "--file", text_format("%s:a", data), "--file", text_format("%s:a", data),
                   "--", "true"));
    expect_refused(&same, 2, "a");
    _cleanup_answer_ struct answer below =
        hutch(LIST("run", "--file", text_format("%s:a", data), "--file",
                   text_format("%s:a/b", data), "--", "true"));
    expect_refused(&below, 2, "a");
}

Test(run, produced_files_come_back)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "os.makedirs('sub/deep')\n"
               "open('out.csv', 'w').write('a,b\\n1,2\\n')\n"
               "open('sub/deep/bin', 'wb').write(bytes(range(256)))\n"
               "open('empty', 'w')\n"
               "open('/tmp/not-this', 'w').write('x')\n",
               NULL);
    size_t len;
    expect_clean(&a);
    expect(&a, answer_len(&a, "files") == 3 && answer_len(&a, "files_skipped") == 0);
    cr_assert_str_eq(answer_file(&a, "out.csv", NULL), "a,b\n1,2\n");
    const char *data = answer_file(&a, "sub/deep/bin", &len);
    expect(&a, data && len == 256);
    for (int i = 0; i < 256; i++)
        cr_assert_eq((unsigned char)data[i], i);
    cr_assert_str_eq(answer_file(&a, "empty", NULL), "");
    int at = answer_find(&a, "files", "out.csv");
    expect(&a, answer_int(&a, text_format("files.%d.size", at)) == 8);
    expect(&a, !answer_bool(&a, text_format("files.%d.truncated", at)));
}

Test(run, out_gets_the_files_and_json_leaves_their_data_out)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *out = path_in(dir.path, "new/out");
    cr_assert_eq(mkdir(path_in(dir.path, "new"), 0755), 0);
    _cleanup_answer_ struct answer a = run_command(
        LIST("--out", out), LIST("sh", "-c", "mkdir d; echo x >d/a; echo y >b; ln -s b c"));
    expect_clean(&a);
    cr_assert_str_eq(file_text(path_in(out, "d/a")), "x\n");
    cr_assert_str_eq(file_text(path_in(out, "b")), "y\n");
    expect(&a, !path_exists(path_in(out, "c")));
    int at = answer_find(&a, "files", "b");
    expect(&a, at >= 0 && !answer_has(&a, text_format("files.%d.data", at)));
    expect(&a, answer_int(&a, text_format("files.%d.size", at)) == 2);
}

Test(run, out_is_never_written_through_a_link)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *out = path_in(dir.path, "out"), *away = path_in(dir.path, "away");
    cr_assert_eq(mkdir(out, 0755) | mkdir(away, 0755), 0);
    const char *victim = file_new(away, "victim", "untouched", 0644);
    cr_assert_eq(symlink(away, path_in(out, "d")), 0);
    cr_assert_eq(symlink(victim, path_in(out, "f")), 0);
    _cleanup_answer_ struct answer a = hutch(
        LIST("run", "--out", out, "--", "sh", "-c", "mkdir d; echo evil >d/new; echo evil >f"));
    cr_assert_str_eq(file_text(victim), "untouched");
    expect(&a, !path_exists(path_in(away, "new")));
    const char *link = path_in(dir.path, "link");
    cr_assert_eq(symlink(away, link), 0);
    _cleanup_answer_ struct answer b =
        hutch(LIST("run", "--out", link, "--", "sh", "-c", "echo evil >new"));
    expect(&b, !path_exists(path_in(away, "new")));
    expect(&b, b.o.exit_code != 0);
}

Test(run, workdir_is_where_the_program_starts)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("pwd"));
    expect_stdout(&a, "/work\n");
    _cleanup_answer_ struct answer b = run_command(LIST("--workdir", "/tmp"), LIST("pwd"));
    expect_stdout(&b, "/tmp\n");
    _cleanup_answer_ struct answer c = run_command(LIST("--workdir", "/nowhere"), LIST("pwd"));
    expect(&c, !answer_bool(&c, "ok") && strstr(c.o.err, "/nowhere"));
    _cleanup_answer_ struct answer d = hutch(LIST("run", "--workdir", "relative", "--", "pwd"));
    expect_refused(&d, 2, "--workdir");
}

Test(run, human_mode_passes_output_on)
{
    _cleanup_answer_ struct answer a =
        hutch(LIST("run", "--", "sh", "-c", "printf 'a\\0b\\377'; printf err >&2; exit 7"));
    expect(&a, a.o.exit_code == 7);
    expect(&a, a.o.out_len == 4 && memcmp(a.o.out, "a\0b\377", 4) == 0);
    expect(&a, strcmp(a.o.err, "err") == 0);
}

Test(run, human_mode_passes_output_on_while_the_program_runs)
{
    struct spawn spec = {.argv = LIST(hutch_path(), "run", "--timeout", "60", "--", "sh", "-c",
                                      "echo ready; sleep 50")};
    struct child child;
    struct output o;
    spawn_start(&spec, &child);
    cr_assert(spawn_await(&child, "ready\n", 20000), "nothing came while the program ran");
    spawn_kill(&child, SIGTERM);
    spawn_finish(&child, &o);
    cr_assert_eq(o.exit_code, 128 + SIGTERM, "%d %d %s", o.exit_code, o.signal, o.err);
}

Test(run, human_mode_says_when_it_cut)
{
    _cleanup_answer_ struct answer a =
        hutch(LIST("run", "--max-output", "10", "--", "sh", "-c", "echo 123456789012345"));
    expect(&a, a.o.exit_code == 0 && strcmp(a.o.out, "1234567890") == 0);
    expect(&a, strchr(a.o.err, '\n') && strstr(a.o.err, "16"));
}

Test(run, exit_statuses_of_the_program_and_ours)
{
    static const struct {
        const char *code;
        int status;
    } cases[] = {{"exit 0", 0},       {"exit 1", 1},        {"exit 255", 255},
                 {"kill -9 $$", 137}, {"kill -15 $$", 143}, {"kill -SEGV $$", 139}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = hutch(LIST("run", "--", "sh", "-c", cases[i].code));
        expect(&a, a.o.exit_code == cases[i].status);
    }
    _cleanup_answer_ struct answer none = hutch(LIST("run", "--", "no-such-command"));
    expect_refused(&none, 127, "no-such-command");
    _cleanup_answer_ struct answer path = hutch(LIST("run", "--", "/no/such/command"));
    expect_refused(&path, 127, "/no/such/command");
    _cleanup_answer_ struct answer plain = hutch(LIST("run", "--", "/etc/passwd"));
    expect_refused(&plain, 126, "/etc/passwd");
    _cleanup_answer_ struct answer late =
        hutch(LIST("run", "--timeout", "0.3", "--", "sleep", "60"));
    expect_refused(&late, 124, "0.30");
}

Test(run, command_not_found_in_json)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("no-such-command"));
    expect(&a, a.o.exit_code == 127);
    expect(&a, a.json && !answer_bool(&a, "ok"));
}

static void ends_by(int sig)
{
    struct spawn spec = {.argv = LIST(hutch_path(), "run", "--timeout", "60", "--", "sh", "-c",
                                      "trap '' INT TERM; echo ready; while :; do sleep 1; done")};
    struct child child;
    struct output o;
    processes_watch();
    spawn_start(&spec, &child);
    cr_assert(spawn_await(&child, "ready\n", 20000));
    spawn_kill(&child, sig);
    spawn_finish(&child, &o);
    cr_assert_eq(o.exit_code, 128 + sig, "exit %d signal %d %s", o.exit_code, o.signal, o.err);
    expect_nothing_left();
}

Test(run, sigint_ends_the_box_then_hutch)
{
    ends_by(SIGINT);
}
Test(run, sigterm_ends_the_box_then_hutch)
{
    ends_by(SIGTERM);
}

Test(run, receipt_names_every_layer)
{
    static const char *const on[] = {"user_ns", "pid_ns", "mount_ns", "net_ns",       "ipc_ns",
                                     "uts_ns",  "root",   "caps",     "no_new_privs", "seccomp"};
    static const char *const present[] = {"cgroup_ns", "time_ns", "landlock", "cgroup",
                                          "memory",    "pids",    "cpu"};
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    expect_clean(&a);
    expect(&a, answer_is(&a, "receipt.backend", "namespace"));
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        expect(&a, answer_is(&a, text_format("receipt.layers.%s", on[i]), "on"));
    for (size_t i = 0; i < sizeof present / sizeof present[0]; i++)
        expect(&a, answer_has(&a, text_format("receipt.layers.%s", present[i])));
    for (size_t i = 0; i < answer_len(&a, "receipt.missing"); i++) {
        const char *layer = answer_text(&a, text_format("receipt.missing.%zu.layer", i));
        expect(&a, *answer_text(&a, text_format("receipt.missing.%zu.cause", i)));
        expect(&a, !answer_is(&a, text_format("receipt.layers.%s", layer), "on"));
    }
}

Test(run, usage_is_plausible)
{
    _cleanup_answer_ struct answer a = run_py("x = bytearray(40 << 20)\n"
                                              "import time\n"
                                              "e = time.process_time() + 0.2\n"
                                              "while time.process_time() < e: pass\n",
                                              LIST("--memory", "200M"));
    expect_clean(&a);
    expect(&a, answer_double(&a, "usage.cpu_ms") >= 200);
    expect(&a, answer_double(&a, "usage.wall_ms") >= 200);
    expect(&a, answer_double(&a, "duration_ms") >= 200);
    expect(&a, answer_int(&a, "usage.memory_limit_bytes") == 200 << 20);
    expect(&a, answer_int(&a, "usage.memory_peak_bytes") >= 40 << 20);
    expect(&a, answer_int(&a, "usage.memory_peak_bytes") <= 200 << 20);
    expect(&a, answer_int(&a, "usage.pids_peak") >= 1 && answer_int(&a, "usage.pids_denied") == 0);
    expect(&a, answer_is(&a, "usage.source", "cgroup") || answer_is(&a, "usage.source", "sampled"));
}

Test(run, verbose_tells_more_on_stderr_and_changes_nothing_else)
{
    _cleanup_answer_ struct answer a = hutch(LIST("run", "-v", "--", "echo", "out"));
    expect(&a, a.o.exit_code == 0 && strcmp(a.o.out, "out\n") == 0);
    expect(&a, strstr(a.o.err, "seccomp") && strstr(a.o.err, "memory"));
}
