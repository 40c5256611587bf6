/* test_verbs.c - validate, plan, doctor, policy, version. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(validate, .timeout = 120);
TestSuite(plan, .timeout = 120);
TestSuite(doctor, .timeout = 120);
TestSuite(policy, .timeout = 120);
TestSuite(version, .timeout = 120);

static struct answer validate(const char *code, const char *const *options)
{
    struct spawn base = {.input = code, .input_len = strlen(code)};
    return hutch_with(&base, join(join(LIST("validate"), options), LIST("-")));
}

Test(validate, silent_when_nothing_is_found)
{
    _cleanup_answer_ struct answer a = validate("x = 1\nreturn x", NULL);
    expect(&a, a.o.exit_code == 0 && a.o.out_total == 0 && a.o.err_total == 0);
}

Test(validate, one_line_a_finding)
{
    _cleanup_answer_ struct answer a =
        validate("import os\ny = 'ok'\nopen('x')\nreturn y.__dict__", NULL);
    expect(&a, a.o.exit_code == 1);
    size_t lines = 0;
    for (const char *at = a.o.out; *at; at++)
        lines += *at == '\n';
    expect(&a, lines == 3);
    expect(&a, strstr(a.o.out, "line 1: import 'os' not in allowed_imports (empty) (Import)"));
    expect(&a, strstr(a.o.out, "line 3: call to forbidden name 'open' (Call)"));
}

Test(validate, allowed_imports_come_from_options)
{
    _cleanup_answer_ struct answer a = validate(
        "import os, json\nreturn 1", LIST("--allow-import", "os", "--allow-import", "json"));
    expect(&a, a.o.exit_code == 0);
    _cleanup_answer_ struct answer b =
        validate("import os\nreturn 1", LIST("--allow-import", "json"));
    expect(&b, b.o.exit_code == 1 && strstr(b.o.out, "json"));
}

Test(validate, unreadable_is_2)
{
    _cleanup_answer_ struct answer a = hutch(LIST("validate", "/no/such/file.py"));
    expect_refused(&a, 2, "/no/such/file.py");
}

Test(validate, source_that_crashes_parsers_is_only_a_finding)
{
    size_t depth = 100000;
    char *code = malloc(depth + 1);
    memset(code, '(', depth);
    code[depth] = 0;
    _cleanup_answer_ struct answer a = validate(code, NULL);
    expect(&a, a.o.exit_code == 1);
    for (size_t i = 0; i < depth; i++)
        code[i] = '-';
    code[depth - 1] = '1';
    _cleanup_answer_ struct answer b = validate(code, NULL);
    expect(&b, b.o.exit_code == 1 || b.o.exit_code == 0);
    expect(&b, b.o.signal == 0);
    free(code);
}

Test(plan, is_json_and_runs_nothing)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *out = path_in(dir.path, "out");
    _cleanup_answer_ struct answer a = hutch(LIST("plan", "run", "--memory", "100M", "--out", out,
                                                  "--", "sh", "-c", "echo ran >/work/x"));
    expect(&a, a.json && a.o.exit_code == 0 && a.o.err_total == 0);
    expect(&a, !path_exists(out));
    expect(&a, strstr(a.o.out, "echo ran"));
}

Test(plan, exec_reads_a_request)
{
    static const char request[] = "{\"code\":\"return 1\",\"memory_mb\":77}";
    struct spawn base = {.input = request, .input_len = strlen(request)};
    _cleanup_answer_ struct answer a = hutch_with(&base, LIST("plan", "exec", "-"));
    expect(&a, a.json && a.o.exit_code == 0);
    expect(&a, strstr(a.o.out, "/run/hutch/python") && strstr(a.o.out, "80740352"));
}

Test(plan, is_the_same_every_time)
{
    _cleanup_answer_ struct answer a = hutch(LIST("plan", "run", "--", "true"));
    _cleanup_answer_ struct answer b = hutch(LIST("plan", "run", "--", "true"));
    expect(&a, a.json && a.o.exit_code == 0);
    expect(&b, b.json && b.o.exit_code == 0);
}

Test(doctor, says_that_it_can_run_here)
{
    _cleanup_answer_ struct answer a = hutch(LIST("doctor", "--json"));
    expect(&a, a.json && a.o.exit_code == 0);
    expect(&a, answer_bool(&a, "can_run"));
    expect(&a, answer_is(&a, "layers.seccomp", "on") && answer_is(&a, "layers.root", "on"));
    for (size_t i = 0; i < answer_len(&a, "blockers"); i++) {
        expect(&a, *answer_text(&a, text_format("blockers.%zu.cause", i)));
        expect(&a, *answer_text(&a, text_format("blockers.%zu.remedy", i)));
    }
}

Test(doctor, human_form_ends_the_same_way)
{
    _cleanup_answer_ struct answer a = hutch(LIST("doctor"));
    expect(&a, a.o.exit_code == 0 && strstr(a.o.out, "seccomp"));
}

Test(doctor, names_the_missing_cgroup_where_there_is_none)
{
    _cleanup_answer_ struct answer run = run_command(NULL, LIST("true"));
    _cleanup_answer_ struct answer a = hutch(LIST("doctor", "--json"));
    expect(&a, a.json != NULL);
    bool has_cgroup = answer_is(&run, "receipt.layers.memory", "cgroup");
    bool named = strstr(a.o.out, "cgroup") && answer_len(&a, "warnings") > 0;
    expect(&a, has_cgroup || named);
}

Test(policy, list_has_the_shipped_profiles)
{
    _cleanup_answer_ struct answer a = hutch(LIST("policy", "list"));
    expect(&a, a.o.exit_code == 0);
    static const char *const names[] = {"tool", "python", "node", "default"};
    for (size_t i = 0; i < 4; i++)
        expect(&a, strstr(a.o.out, names[i]));
}

static long count_of(const char *name)
{
    _cleanup_answer_ struct answer a = hutch(LIST("policy", "count", name));
    char *end;
    long total = strtol(a.o.out, &end, 10);
    expect(&a, a.o.exit_code == 0 && end > a.o.out && *end == '\n');
    int lines = 0;
    for (const char *at = end + 1; *at; at++)
        lines += *at == '\n';
    expect(&a, lines == 3 && strstr(a.o.out, "x32") && strstr(a.o.out, "i386"));
    return total;
}

Test(policy, counts_are_within_their_bounds)
{
    static const struct {
        const char *name;
        long least, most;
    } bounds[] = {{"tool", 20, 60}, {"python", 50, 110}, {"node", 50, 200}, {"default", 80, 200}};
    for (size_t i = 0; i < 4; i++) {
        long count = count_of(bounds[i].name);
        cr_expect(count >= bounds[i].least && count <= bounds[i].most, "%s: %ld calls",
                  bounds[i].name, count);
    }
}

Test(policy, show_prints_a_profile_that_check_takes)
{
    static const char *const names[] = {"python", "node", "default"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    for (size_t i = 0; i < 3; i++) {
        _cleanup_answer_ struct answer a = hutch(LIST("policy", "show", names[i]));
        expect(&a, a.json && answer_has(&a, "defaultAction") && answer_len(&a, "syscalls") > 0);
        const char *path = file_new(dir.path, "p.json", a.o.out, 0644);
        _cleanup_answer_ struct answer b = hutch(LIST("policy", "check", path));
        expect(&b, b.o.exit_code == 0);
    }
    _cleanup_answer_ struct answer tool = hutch(LIST("policy", "show", "tool"));
    expect(&tool, tool.json && answer_len(&tool, "syscalls") > 0);
}

Test(policy, check_names_what_is_wrong)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"nonsense", "json"},
        {"{\"defaultAction\":\"SCMP_ACT_WHATEVER\",\"syscalls\":[]}", "SCMP_ACT_WHATEVER"},
        {"{\"syscalls\":[]}", "defaultAction"},
        {"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"read\"],"
         "\"action\":\"SCMP_ACT_MAYBE\"}]}",
         "SCMP_ACT_MAYBE"},
    };
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = file_new(dir.path, "bad.json", cases[i].text, 0644);
        _cleanup_answer_ struct answer a = hutch(LIST("policy", "check", path));
        expect(&a, a.o.exit_code != 0 && a.o.signal == 0);
        expect(&a, strcasestr(a.o.err, cases[i].word) || strcasestr(a.o.out, cases[i].word));
    }
}

Test(version, is_printed_in_both_forms)
{
    _cleanup_answer_ struct answer a = hutch(LIST("version"));
    expect(&a, a.o.exit_code == 0 && strstr(a.o.out, "0.1.0"));
    _cleanup_answer_ struct answer b = hutch(LIST("version", "--json"));
    expect(&b, b.json && answer_is(&b, "version", "0.1.0"));
}
