/* test_exec.c - hutch exec: JSON args in, a JSON value out, and every way in which it fails. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(exec, .timeout = 120);

static const char *raw_output(const struct answer *a)
{
    const char *at = strstr(a->o.out, "\"output\":");
    cr_assert_not_null(at, "%s", answer_show(a));
    return at + strlen("\"output\":") + (at[strlen("\"output\":")] == ' ');
}

static void expect_failure(const struct answer *a, const char *reason, const char *word)
{
    expect_reason(a, reason);
    expect(a, !answer_bool(a, "success") && answer_is_null(a, "output"));
    cr_assert(strstr(answer_text(a, "error"), word), "'%s' is not in the error\n%s", word,
              answer_show(a));
}

Test(exec, answers_one_line_with_the_value)
{
    _cleanup_answer_ struct answer a =
        exec_request("{\"code\":\"return args[\\\"x\\\"]+1\",\"args\":{\"x\":41}}", NULL);
    expect_clean(&a);
    expect(&a, strcmp(answer_number(&a, "output"), "42") == 0);
    expect(&a, answer_is_null(&a, "error") && answer_is(&a, "stdout", ""));
    expect(&a, answer_double(&a, "duration_ms") > 0);
    expect(&a, answer_is(&a, "receipt.layers.seccomp", "on"));
    expect(&a, answer_has(&a, "usage.memory_peak_bytes"));
    expect(&a, strchr(a.o.out, '\n') == a.o.out + a.o.out_len - 1);
}

Test(exec, reads_the_request_from_a_file_or_a_pipe)
{
    static const char request[] = "{\"code\": \"return 'x'\"}";
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *file = file_new(dir.path, "request.json", request, 0644);
    _cleanup_answer_ struct answer a = hutch(LIST("exec", file));
    expect(&a, answer_is(&a, "output", "x"));
    struct spawn base = {.input = request, .input_len = strlen(request)};
    _cleanup_answer_ struct answer b = hutch_with(&base, LIST("exec"));
    expect(&b, answer_is(&b, "output", "x"));
}

Test(exec, big_integers_come_through_digit_for_digit_both_ways)
{
    static const char request[] =
        "{\"code\":\"return [args['n'], args['n'] + 1, 2**53+1, 2**64, -(2**200), args['f'], "
        "0.1]\","
        "\"args\":{\"n\":1180591620717411303424,\"f\":1e400000000000000000000}}";
    static const char good[] = "{\"code\":\"return [args['n'], args['n'] + 1, 2**53+1, 2**64, "
                               "-(2**200), args['f'], 0.1]\","
                               "\"args\":{\"n\":1180591620717411303424,\"f\":1.5}}";
    _cleanup_answer_ struct answer a = exec_request(good, NULL);
    expect_clean(&a);
    static const char *const wanted[] = {
        "1180591620717411303424",
        "1180591620717411303425",
        "9007199254740993",
        "18446744073709551616",
        "-1606938044258990275541962092341162602522202993782792835301376",
        "1.5",
        "0.1"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_expect_str_eq(answer_number(&a, text_format("output.%zu", i)), wanted[i]);
    /* A float that Python reads as infinity can't come back as a number. */
    _cleanup_answer_ struct answer b = exec_request(request, NULL);
    expect(&b, !answer_bool(&b, "success"));
}

Test(exec, integers_of_ten_thousand_digits_come_through)
{
    char digits[10001];
    memset(digits, '7', 10000);
    digits[10000] = 0;
    _cleanup_answer_ struct answer a = exec_request(
        text_format("{\"code\":\"return args['n']\",\"args\":{\"n\":%s}}", digits), NULL);
    expect_clean(&a);
    cr_assert_str_eq(answer_number(&a, "output"), digits);
}

Test(exec, values_come_back_as_the_code_made_them)
{
    static const struct {
        const char *code, *wanted;
    } cases[] = {
        {"return None", "null"},
        {"return True", "true"},
        {"return [1, 2.0, 'x', None, {'a': []}]", "[1,2.0,\"x\",null,{\"a\":[]}]"},
        {"return (1, 2)", "[1,2]"},
        {"return 1e22", "1e+22"},
        {"return -0.0", "-0.0"},
        {"return {'b': 1, 'a': 2}", "{\"b\":1,\"a\":2}"},
        {"return chr(0x1f600)", "\"\\ud83d\\ude00\""},
        {"return ''", "\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = exec_body(cases[i].code, NULL);
        expect_clean(&a);
        char squeezed[256], *to = squeezed;
        for (const char *at = raw_output(&a); *at && to < squeezed + 200; at++)
            if (*at != ' ')
                *to++ = *at;
        *to = 0;
        bool same =
            strncmp(squeezed, cases[i].wanted, strlen(cases[i].wanted)) == 0 ||
            (strstr(cases[i].code, "chr") && strncmp(squeezed, "\"\xf0\x9f\x98\x80\"", 6) == 0);
        cr_expect(same, "%s: %s, wanted %s", cases[i].code, squeezed, cases[i].wanted);
    }
}

Test(exec, what_json_lacks_is_an_error_that_names_the_place)
{
    static const struct {
        const char *code, *place;
    } cases[] = {
        {"return {'a': [1, 2, 3, float('nan')]}", "$.a[3]"},
        {"return [float('inf')]", "$[0]"},
        {"return -float('inf')", "$"},
        {"return {'a': {'b': {1, 2}}}", "$.a.b"},
        {"return {'x': b'bytes'}", "$.x"},
        {"return {'x': 1j}", "$.x"},
        {"return {'k': {1: 'a', '1': 'b'}}", "$.k"},
        {"a = []\na.append(a)\nreturn a", "$[0]"},
        {"d = {}\nd['me'] = d\nreturn d", "$.me"},
        {"return {'f': len}", "$.f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = exec_body(cases[i].code, NULL);
        expect(&a, answer_is(&a, "reason", "exit") || answer_is(&a, "reason", "no_result"));
        expect(&a, !answer_bool(&a, "success") && answer_is_null(&a, "output"));
        cr_expect(strstr(answer_text(&a, "error"), cases[i].place), "%s\n%s", cases[i].code,
                  answer_show(&a));
    }
}

Test(exec, deep_values_are_an_error_and_500_levels_are_not)
{
    _cleanup_answer_ struct answer good =
        exec_body("a = 1\nfor i in range(500):\n    a = [a]\nreturn a", NULL);
    expect_clean(&good);
    _cleanup_answer_ struct answer deep =
        exec_body("a = 1\nfor i in range(501):\n    a = [a]\nreturn a", NULL);
    expect(&deep, !answer_bool(&deep, "success"));
    _cleanup_answer_ struct answer very =
        exec_body("a = 1\nfor i in range(200000):\n    a = [a]\nreturn a", NULL);
    expect(&very, !answer_bool(&very, "success"));
}

Test(exec, args_of_hostile_depth_are_a_bad_request)
{
    static const char head[] = "{\"code\":\"return 1\",\"args\":{\"x\":", tail[] = "}}";
    size_t depth = 200000;
    char *request = malloc(sizeof(head) + 2 * depth + sizeof(tail)), *at = request;
    memcpy(at, head, sizeof(head) - 1);
    at += sizeof(head) - 1;
    memset(at, '[', depth);
    memset(at + depth, ']', depth);
    memcpy(at + 2 * depth, tail, sizeof(tail));
    _cleanup_answer_ struct answer a = exec_request(request, NULL);
    expect_reason(&a, "request");
    free(request);
}

Test(exec, exception_reads_type_and_text)
{
    _cleanup_answer_ struct answer a =
        exec_body("print('seen')\nraise ValueError('wrong ' + str(1))", NULL);
    expect_failure(&a, "exit", "ValueError: wrong 1");
    cr_assert_str_eq(answer_text(&a, "error"), "ValueError: wrong 1");
    cr_assert_str_eq(answer_text(&a, "stdout"), "seen\n");
}

Test(exec, no_return_is_null)
{
    _cleanup_answer_ struct answer a = exec_body("x = 1", NULL);
    expect_clean(&a);
    expect(&a, answer_is_null(&a, "output"));
}

Test(exec, ending_without_a_result_says_so)
{
    _cleanup_answer_ struct answer a = exec_body("os._exit(0)", "\"allowed_imports\":[\"os\"]");
    expect_failure(&a, "no_result", "");
    _cleanup_answer_ struct answer b =
        exec_body("import os\nos.kill(os.getpid(), 9)", "\"check\":\"none\"");
    expect(&b, !answer_bool(&b, "success"));
    expect(&b, answer_is(&b, "reason", "signal") || answer_is(&b, "reason", "syscall") ||
                   answer_is(&b, "reason", "exit"));
}

Test(exec, static_check_refuses_with_every_finding)
{
    _cleanup_answer_ struct answer a =
        exec_body("import os\nx = eval('1')\nreturn ().__class__", NULL);
    expect_failure(&a, "invalid", "line 1: import 'os' not in allowed_imports (empty) (Import)");
    expect_failure(&a, "invalid", "line 2: call to forbidden name 'eval' (Call)");
    expect_failure(&a, "invalid", "line 3: access to forbidden attribute '__class__' (Attribute)");
}

Test(exec, syntax_error_is_a_finding)
{
    _cleanup_answer_ struct answer a = exec_body("return (", NULL);
    expect_failure(&a, "invalid", "syntax error");
}

Test(exec, allowed_imports_are_bound_and_others_blocked)
{
    _cleanup_answer_ struct answer a = exec_body(
        "import math\nfrom json import dumps\nreturn [math.sqrt(16), dumps([1]), json.loads('2')]",
        "\"allowed_imports\":[\"math\",\"json\"]");
    expect_clean(&a);
    cr_assert_str_eq(answer_number(&a, "output.0"), "4.0");
    _cleanup_answer_ struct answer b =
        exec_body("return 1", "\"allowed_imports\":[\"no_such_module_at_all\"]");
    expect_failure(&b, "exit", "allowed import 'no_such_module_at_all' not available");
}

Test(exec, numpy_works_where_it_is_allowed)
{
    _cleanup_answer_ struct answer a =
        exec_body("a = numpy.arange(6.0).reshape(2, 3)\nreturn (a @ a.T).tolist()",
                  "\"allowed_imports\":[\"numpy\"],\"timeout_s\":30,\"memory_mb\":512");
    expect_clean(&a);
    cr_assert_str_eq(answer_number(&a, "output.1.1"), "50.0");
}

Test(exec, check_none_gives_full_builtins_and_any_import)
{
    _cleanup_answer_ struct answer a =
        exec_body("import os\nclass C:\n    x = 5\nreturn [C().x, getattr(os, 'sep'), eval('1+1')]",
                  "\"check\":\"none\"");
    expect_clean(&a);
    expect(&a, answer_is(&a, "output.1", "/") && answer_int(&a, "output.2") == 2);
}

Test(exec, timeout_and_memory_are_the_requests_own)
{
    _cleanup_answer_ struct answer a = exec_body("while True:\n    pass", "\"timeout_s\":0.5");
    expect_failure(&a, "timeout", "sandbox execution timed out after 0.50s");
    expect(&a, answer_double(&a, "duration_ms") >= 500);
    _cleanup_answer_ struct answer b = exec_body("x = []\nwhile True:\n    x.append('y' * 1000000)",
                                                 "\"memory_mb\":64,\"timeout_s\":30");
    expect(&b, answer_is(&b, "reason", "memory") ||
                   (answer_is(&b, "reason", "exit") && strstr(b.o.out, "MemoryError")));
    expect(&b, !answer_bool(&b, "success"));
}

Test(exec, options_can_only_lower_what_the_request_asks)
{
    static const char request[] =
        "{\"code\":\"while True: pass\",\"timeout_s\":0.5,\"memory_mb\":64}";
    _cleanup_answer_ struct answer a = exec_request(request, LIST("--timeout", "50"));
    expect_failure(&a, "timeout", "0.50s");
    _cleanup_answer_ struct answer b = exec_request(request, LIST("--timeout", "0.25"));
    expect_failure(&b, "timeout", "0.25s");
    _cleanup_answer_ struct answer c =
        exec_request("{\"code\":\"return 1\",\"memory_mb\":64}", LIST("--memory", "1G"));
    expect(&c, answer_int(&c, "usage.memory_limit_bytes") == 64 << 20);
}

Test(exec, bad_requests_are_named)
{
    static const struct {
        const char *request, *word;
    } cases[] = {
        {"", ""},
        {"nonsense", ""},
        {"[]", "object"},
        {"{}", "code"},
        {"{\"code\":1}", "code"},
        {"{\"code\":\"return 1\"} x", ""},
        {"{\"code\":\"return 1\",\"code\":\"return 2\"}", "code"},
        {"{\"code\":\"return 1\",\"bogus_member\":1}", "bogus_member"},
        {"{\"code\":\"return 1\",\"limits\":{\"bogus_limit\":1}}", "bogus_limit"},
        {"{\"code\":\"return 1\",\"args\":[]}", "args"},
        {"{\"code\":\"return 1\",\"allowed_imports\":\"os\"}", "allowed_imports"},
        {"{\"code\":\"return 1\",\"allowed_imports\":[1]}", "allowed_imports"},
        {"{\"code\":\"return 1\",\"timeout_s\":0}", "timeout_s"},
        {"{\"code\":\"return 1\",\"timeout_s\":\"5\"}", "timeout_s"},
        {"{\"code\":\"return 1\",\"timeout_s\":-1}", "timeout_s"},
        {"{\"code\":\"return 1\",\"timeout_s\":1e99}", "timeout_s"},
        {"{\"code\":\"return 1\",\"memory_mb\":0}", "memory_mb"},
        {"{\"code\":\"return 1\",\"memory_mb\":1.5}", "memory_mb"},
        {"{\"code\":\"return 1\",\"memory_mb\":17592186044417}", "memory_mb"},
        {"{\"code\":\"return 1\",\"check\":\"maybe\"}", "check"},
        {"{\"code\":\"return 1\",\"agent_id\":\"../x\"}", "agent_id"},
        {"{\"code\":\"return 1\",\"policy\":\"no-such-policy\"}", "no-such-policy"},
        {"{\"code\":\"return 1\\u0000\"}", "NUL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = exec_request(cases[i].request, NULL);
        cr_expect_eq(a.o.exit_code, 2, "%s\n%s", cases[i].request, answer_show(&a));
        expect_failure(&a, "request", cases[i].word);
    }
}

Test(exec, agent_id_and_dependencies_are_taken_and_said_to_do_nothing)
{
    _cleanup_answer_ struct answer a =
        exec_body("return 1", "\"agent_id\":\"agent-1\",\"dependencies\":[\"requests>=2\"]");
    expect_clean(&a);
    expect(&a, strstr(a.o.out, "dependencies"));
}

Test(exec, ends_with_the_value_whatever_else_still_runs)
{
    processes_watch();
    _cleanup_answer_ struct answer a =
        exec_body("import threading, time\n"
                  "threading.Thread(target=time.sleep, args=(600,)).start()\n"
                  "import atexit\natexit.register(time.sleep, 600)\n"
                  "return 'value'",
                  "\"check\":\"none\",\"timeout_s\":60");
    expect_clean(&a);
    expect(&a, answer_is(&a, "output", "value"));
    expect(&a, a.o.ms < 20000 * slow());
    expect_nothing_left();
}

Test(exec, output_before_the_value_is_kept_and_flushed)
{
    _cleanup_answer_ struct answer a = exec_body("print('a', end='')\nreturn 1", NULL);
    expect_stdout(&a, "a");
}

Test(exec, empty_request_file_that_does_not_exist)
{
    _cleanup_answer_ struct answer a = hutch(LIST("exec", "/no/such/request.json"));
    expect(&a, a.o.exit_code == 2);
}
