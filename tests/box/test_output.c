/* test_output.c - output under a cap, and a result channel that code can't forge. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(output, .timeout = 200);

Test(output, flood_is_cut_at_exactly_the_cap_and_counted)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\nwhile True: os.write(1, b'x' * 65536)", LIST("--timeout", "1"));
    expect_reason(&a, "timeout");
    expect(&a, strlen(answer_text(&a, "stdout")) == 64000);
    expect(&a, answer_bool(&a, "stdout_truncated") && !answer_bool(&a, "stderr_truncated"));
    expect(&a, (double)answer_int(&a, "stdout_bytes") > (10 << 20) / slow());
    expect(&a, a.o.max_rss_kib < rss_bound(100 << 10));
}

Test(output, flood_on_both_streams_in_human_mode_is_cut_too)
{
    _cleanup_answer_ struct answer a = hutch(
        LIST("run", "--max-output", "1000", "--timeout", "1", "--", "sh", "-c", "yes >&2 & yes"));
    expect(&a, a.o.exit_code == 124 && a.o.out_total == 1000);
    expect(&a, a.o.err_total >= 1000 && a.o.err_total < 3000);
}

Test(output, both_streams_in_turns_do_not_deadlock)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "for _ in range(100):\n"
               "    os.write(1, b'o' * 8192); os.write(2, b'e' * 8192)\n",
               LIST("--max-output", "1M"));
    expect_reason(&a, "exit");
    expect(&a,
           answer_int(&a, "stdout_bytes") == 819200 && answer_int(&a, "stderr_bytes") == 819200);
    expect(&a, strlen(answer_text(&a, "stdout")) == 819200);
    expect(&a, strlen(answer_text(&a, "stderr")) == 819200);
    expect(&a, !answer_bool(&a, "stdout_truncated") && !answer_bool(&a, "stderr_truncated"));
}

Test(output, exactly_the_limit_is_not_flagged_and_one_more_is)
{
    _cleanup_answer_ struct answer a =
        run_py("print('x' * 1000, end='')", LIST("--max-output", "1000"));
    expect(&a, !answer_bool(&a, "stdout_truncated") && answer_int(&a, "stdout_bytes") == 1000);
    _cleanup_answer_ struct answer b =
        run_py("print('x' * 1001, end='')", LIST("--max-output", "1000"));
    expect(&b, answer_bool(&b, "stdout_truncated") && answer_int(&b, "stdout_bytes") == 1001);
    expect(&b, strlen(answer_text(&b, "stdout")) == 1000);
    _cleanup_answer_ struct answer c = run_py("print('x')", LIST("--max-output", "0"));
    expect(&c, answer_bool(&c, "stdout_truncated") && answer_is(&c, "stdout", ""));
}

Test(output, bytes_that_are_no_text_are_kept_beside_it)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\nos.write(1, b'ok\\xff\\xfe\\x00end')", NULL);
    size_t len;
    expect_reason(&a, "exit");
    expect(&a, strstr(a.o.out, "ok\xef\xbf\xbd\xef\xbf\xbd\\u0000end") ||
                   strstr(a.o.out, "ok\\ufffd\\ufffd\\u0000end"));
    const char *bytes = base64_decode(answer_text(&a, "stdout_b64"), &len);
    expect(&a, bytes && len == 8 && memcmp(bytes, "ok\xff\xfe\0end", 8) == 0);
    expect(&a, !answer_has(&a, "stderr_b64"));
}

Test(output, a_cut_never_splits_a_character)
{
    _cleanup_answer_ struct answer a =
        run_py("print('a' + '\\u20ac' * 100, end='')", LIST("--max-output", "9"));
    cr_assert_str_eq(answer_text(&a, "stdout"), "a\xe2\x82\xac\xe2\x82\xac");
    expect(&a, answer_bool(&a, "stdout_truncated") && !answer_has(&a, "stdout_b64"));
    expect(&a, answer_int(&a, "stdout_bytes") == 301);
}

Test(output, control_characters_are_valid_json)
{
    _cleanup_answer_ struct answer a =
        run_py("print(''.join(map(chr, range(1, 32))) + '\\x7f\"\\\\', end='')", NULL);
    expect_clean(&a);
    const char *out = answer_text(&a, "stdout");
    for (int i = 1; i < 32; i++)
        cr_assert_eq(out[i - 1], i);
}

/* Runs hutch with a terminal as its output and reads what comes there. */
static char *run_on_terminal(const char *code, char *shown, size_t size)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    cr_assert_geq(terminal, 0);
    cr_assert_eq(grantpt(terminal) | unlockpt(terminal), 0);
    const char *name = text_format("%s", ptsname(terminal));
    struct spawn spec = {
        .argv =
            LIST("sh", "-c",
                 text_format("exec %s run -- sh -c \"$0\" >%s 2>&1", hutch_path(), name), code)};
    int side = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    cr_assert_geq(side, 0);
    _cleanup_output_ struct output o = spawn_run(&spec);
    cr_assert_eq(o.exit_code, 0, "%s", o.err);
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    ssize_t len = read(terminal, shown, size - 1);
    shown[len > 0 ? len : 0] = 0;
    close(side);
    close(terminal);
    return shown;
}

Test(output, terminal_escapes_are_harmless_on_a_terminal)
{
    char shown[4096];
    run_on_terminal("printf 'plain\\033[31mred\\033]0;title\\007end\\n\\tkept'", shown,
                    sizeof shown);
    cr_assert(strstr(shown, "plain") && strstr(shown, "end") && strstr(shown, "\tkept"), "%s",
              shown);
    cr_assert_null(strchr(shown, '\033'), "an escape came through: %s", shown);
    cr_assert_null(strchr(shown, '\007'), "a bell came through");
}

Test(output, terminal_escapes_are_raw_in_pipes_and_json)
{
    _cleanup_answer_ struct answer human = hutch(LIST("run", "--", "printf", "\\033[31mred\\007"));
    expect(&human, strcmp(human.o.out, "\033[31mred\007") == 0);
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("printf", "\\033[31mred"));
    cr_assert_str_eq(answer_text(&a, "stdout"), "\033[31mred");
}

Test(output, partial_output_comes_back_after_a_timeout)
{
    char limit[16]; /* long enough for the program to get to its sleep */
    (void)snprintf(limit, sizeof(limit), "%.1f", 1 + slow() / 4);
    _cleanup_answer_ struct answer a = run_py("import sys, time\n"
                                              "print('flushed', flush=True)\n"
                                              "print('not flushed')\n"
                                              "sys.stdout.write('no newline')\n"
                                              "sys.stderr.write('error text')\n"
                                              "time.sleep(600)\n",
                                              LIST("--timeout", limit));
    expect_reason(&a, "timeout");
    cr_assert_str_eq(answer_text(&a, "stdout"), "flushed\nnot flushed\nno newline");
    cr_assert_str_eq(answer_text(&a, "stderr"), "error text");
    _cleanup_answer_ struct answer b =
        exec_body("print('kept')\nwhile True: pass", text_format("\"timeout_s\":%s", limit));
    expect_reason(&b, "timeout");
    cr_assert_str_eq(answer_text(&b, "stdout"), "kept\n");
}

Test(output, a_fake_result_on_stdout_is_only_text)
{
    static const char fake[] = "{\"ok\":true,\"value\":\"forged\",\"success\":true}";
    _cleanup_answer_ struct answer a =
        exec_body(text_format("print('%s')\nraise ValueError('real')", fake), NULL);
    expect_reason(&a, "exit");
    expect(&a, !answer_bool(&a, "success"));
    cr_assert_str_eq(answer_text(&a, "error"), "ValueError: real");
    cr_assert_str_eq(answer_text(&a, "stdout"), text_format("%s\n", fake));
}

/* Whatever is written into the result pipe: a bounded value or a protocol error, never another
 * verdict, never another box's data. */
static void forge(const char *frame, bool may_be_value)
{
    _cleanup_answer_ struct answer a = exec_body(text_format("import os\n"
                                                             "frame = %s\n"
                                                             "for fd in range(3, 1100):\n"
                                                             "    try: os.write(fd, frame)\n"
                                                             "    except OSError: pass\n"
                                                             "os._exit(0)\n",
                                                             frame),
                                                 "\"check\":\"none\",\"timeout_s\":30");
    expect(&a, a.o.max_rss_kib < rss_bound(200 << 10));
    if (may_be_value && answer_bool(&a, "success"))
        return;
    expect(&a, !answer_bool(&a, "success"));
    expect(&a, answer_is(&a, "reason", "protocol") || answer_is(&a, "reason", "no_result") ||
                   answer_is(&a, "reason", "exit"));
    expect(&a, answer_is_null(&a, "output"));
}

Test(output, forged_frames_are_bounded_data_or_a_protocol_error)
{
    forge("b'{\"ok\":true,\"value\":1}\\n'", true);
    forge("b'nonsense\\n'", false);
    forge("b'\\x00' * 100000", false);
    forge("b'{\"ok\":true,\"value\":' + b'[' * 100000", false);
    forge("b'{\"ok\":true,\"value\":' + b'[' * 100000 + b']' * 100000 + b'}\\n'", false);
    forge("b'{\"ok\":true,\"value\":1,\"reason\":\"timeout\",\"exit_code\":0}\\n'", true);
    forge("b'{\"ok\":true}\\n'", false);
    forge("b'{\"ok\":\"yes\",\"value\":1}\\n'", false);
    forge("b'{\"ok\":true,\"value\":1}{\"ok\":true,\"value\":2}\\n'", false);
    forge("b'{\"ok\":true,\"value\":\\xff}\\n'", false);
    forge("b'{\"ok\":true,\"value\":NaN}\\n'", false);
    forge("b'{\"ok\":false,\"kind\":\"setup\",\"error\":\"x\"}\\n'", false);
}

Test(output, a_forged_stream_without_an_end_is_bounded)
{
    _cleanup_answer_ struct answer a = exec_body("import os\n"
                                                 "while True:\n"
                                                 "    for fd in range(3, 64):\n"
                                                 "        try: os.write(fd, b'1' * 65536)\n"
                                                 "        except OSError: pass\n",
                                                 "\"check\":\"none\",\"timeout_s\":5");
    expect(&a, !answer_bool(&a, "success"));
    expect(&a, answer_is(&a, "reason", "protocol") || answer_is(&a, "reason", "timeout"));
    expect(&a, a.o.max_rss_kib < rss_bound(200 << 10));
}

Test(output, a_large_value_comes_through_and_a_larger_one_is_refused)
{
    _cleanup_answer_ struct answer a =
        exec_body("return 'x' * (8 << 20)", "\"memory_mb\":512,\"timeout_s\":60");
    expect_clean(&a);
    cr_assert_eq(strlen(answer_text(&a, "output")), 8 << 20);
    _cleanup_answer_ struct answer b =
        exec_body("return 'x' * (17 << 20)", "\"memory_mb\":512,\"timeout_s\":60");
    expect(&b, !answer_bool(&b, "success") && answer_is_null(&b, "output"));
    expect(&b, b.o.max_rss_kib < rss_bound(300 << 10));
}

Test(output, input_is_at_its_end_at_once_and_the_callers_stdin_is_not_consumed)
{
    struct spawn base = {
        .argv = LIST("sh", "-c",
                     text_format("%s run -- sh -c 'read x; echo \"[$x]\"'; cat", hutch_path())),
        .input = "for somebody else",
        .input_len = 17};
    _cleanup_output_ struct output o = spawn_run(&base);
    cr_assert_str_eq(o.out, "[]\nfor somebody else");
    _cleanup_answer_ struct answer a = run_py("try: input()\nexcept EOFError: print('EOF')", NULL);
    expect_stdout(&a, "EOF\n");
}

Test(output, code_of_three_megabytes_and_arguments_of_one_work)
{
    static const char last_line[] = "print('end')\n";
    size_t code_len = 3 << 20, arg_len = 1 << 20;
    char *code = malloc(code_len + 1 + sizeof(last_line)), *arg = malloc(arg_len + 1);
    memset(code, '#', code_len);
    code[code_len] = '\n';
    memcpy(code + code_len + 1, last_line, sizeof(last_line));
    _cleanup_answer_ struct answer a = run_py(code, NULL);
    expect_stdout(&a, "end\n");
    memset(arg, 'y', arg_len);
    arg[arg_len] = 0;
    _cleanup_answer_ struct answer b = exec_request(
        text_format("{\"code\":\"return len(args['big'])\",\"args\":{\"big\":\"%s\"}}", arg), NULL);
    expect_clean(&b);
    expect(&b, answer_int(&b, "output") == 1 << 20);
    code[code_len] = 0;
    _cleanup_answer_ struct answer c = exec_request(
        text_format("{\"code\":\"%s\\nreturn 5\",\"timeout_s\":60,\"memory_mb\":512}", code), NULL);
    expect_clean(&c);
    expect(&c, answer_int(&c, "output") == 5);
}

Test(output, code_is_nowhere_in_argv_or_environment)
{
    _cleanup_answer_ struct answer a =
        run_py("canary = 'code-' + 'canary'\n"
               "import glob\n"
               "for f in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):\n"
               "    try: assert canary.encode() not in open(f, 'rb').read(), f\n"
               "    except OSError: pass\n"
               "print('clean') # code-canary\n",
               NULL);
    expect_stdout(&a, "clean\n");
}

/* The reader has a pipe full of output and reads nothing: signals and limits must still hold. */
Test(output, a_reader_that_stalls_holds_up_neither_the_wall_limit_nor_a_signal)
{
    static const char HOST[] =
        "import os, signal, subprocess, sys, time\n"
        "for ending in (None, signal.SIGTERM):\n"
        "    r, w = os.pipe()\n"
        "    p = subprocess.Popen([sys.argv[1], 'run', '--timeout', '0.5' if ending is None else "
        "'60',\n"
        "                          '--max-output', '1G', '--', 'yes'], stdout=w)\n"
        "    os.close(w)\n"
        "    time.sleep(1.2)\n"
        "    if ending is None:\n"
        "        alive = p.poll() is None\n"
        "        while os.read(r, 65536):\n"
        "            pass\n"
        "        print('waited' if alive else 'lost', p.wait(10))\n"
        "    else:\n"
        "        p.send_signal(ending)\n"
        "        print('ended', p.wait(10))\n"
        "    os.close(r)\n";
    const struct spawn spec = {.argv = LIST("/usr/bin/python3", "-c", HOST, hutch_path())};
    _cleanup_output_ struct output o = spawn_run(&spec);
    cr_assert_str_eq(o.out, "waited 124\nended 143\n", "%s%s", o.out, o.err);
}

/* The program has ended by itself; only its output is still on the way when the limit passes. */
Test(output, a_slow_reader_makes_no_timeout_of_a_program_that_ended)
{
    static const char PIPE[] =
        "{ \"$1\" run --timeout 3 --max-output 1M -- sh -c 'head -c 120000 /dev/zero; exit 3';"
        " echo $? >&2; } | { sleep 3.5; wc -c; }";
    const struct spawn spec = {.argv = LIST("/bin/sh", "-c", PIPE, "sh", hutch_path())};
    _cleanup_output_ struct output o = spawn_run(&spec);
    cr_assert_str_eq(o.out, "120000\n", "%s%s", o.out, o.err);
    cr_assert_str_eq(o.err, "3\n", "%s", o.err);
}

Test(output, a_flood_that_is_killed_says_what_it_used)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\nkeep = b'x' * (40 << 20)\nwhile True: os.write(1, b'x' * 65536)",
               LIST("--on-flood", "kill", "--memory", "256M"));
    expect_reason(&a, "output");
    expect(&a, answer_int(&a, "usage.memory_peak_bytes") > (40 << 20));
    expect(&a, answer_double(&a, "usage.cpu_ms") > 0);
}

/* As any command says when it can't write: not a verdict on the program. */
Test(output, a_full_disk_is_said_and_not_taken_for_a_reader_that_left)
{
    const struct spawn spec = {
        .argv = LIST("/bin/sh", "-c", "\"$1\" run -- echo text >/dev/full", "sh", hutch_path())};
    _cleanup_output_ struct output o = spawn_run(&spec);
    cr_assert_eq(o.exit_code, 125);
    cr_assert_not_null(strstr(o.err, "No space left"));
}
