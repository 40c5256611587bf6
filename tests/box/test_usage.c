/* test_usage.c - what is refused before anything runs: wrong options, numbers, requests. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(usage, .timeout = 120);

struct number {
    const char *option, *value;
};

static void expect_number_refused(const struct number *cases)
{
    for (; cases->option; cases++) {
        _cleanup_answer_ struct answer a =
            hutch(LIST("run", cases->option, cases->value, "--", "true"));
        cr_expect_eq(a.o.exit_code, 2, "%s '%s'\n%s", cases->option, cases->value, answer_show(&a));
        cr_expect(strstr(a.o.err, cases->option + 2), "%s '%s' is not named\n%s", cases->option,
                  cases->value, answer_show(&a));
        cr_expect_eq(a.o.out_total, 0);
    }
}

Test(usage, numbers_that_are_none_are_refused_by_name)
{
    static const char *const options[] = {"--timeout", "--cpu-time", "--memory",    "--cpus",
                                          "--pids",    "--disk",     "--max-output"};
    static const char *const values[] = {"",    " 5",  "5 ",  "+5",   "-5",    "5x",   "0x10",
                                         "nan", "inf", "1,5", "1..5", "5.5.5", "five", "١"};
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            expect_number_refused((struct number[]){{options[o], values[v]}, {NULL, NULL}});
}

Test(usage, numbers_out_of_range_are_refused_by_name)
{
    static const struct number cases[] = {
        {"--timeout", "0"},
        {"--timeout", "86400.1"},
        {"--timeout", "99999999999999999999"},
        {"--cpu-time", "0"},
        {"--cpu-time", "86401"},
        {"--memory", "0"},
        {"--memory", "512K"},
        {"--memory", "1048575"},
        {"--memory", "1025G"},
        {"--memory", "2T"},
        {"--memory", "18446744073709551616"},
        {"--memory", "17179869184G"},
        {"--cpus", "0"},
        {"--cpus", "0.005"},
        {"--cpus", "1024.5"},
        {"--pids", "0"},
        {"--pids", "1.5"},
        {"--pids", "32769"},
        {"--pids", "4294967297"},
        {"--disk", "0"},
        {"--disk", "63K"},
        {"--disk", "1025G"},
        {"--max-output", "1025M"},
        {"--max-output", "18446744073709551615"},
        {NULL, NULL},
    };
    expect_number_refused(cases);
}

Test(usage, numbers_at_the_edges_are_taken)
{
    static const struct number cases[] = {
        {"--timeout", "86400"}, {"--cpu-time", "86400"}, {"--memory", "1T"},
        {"--memory", "64m"},    {"--cpus", "0.01"},      {"--cpus", "1024"},
        {"--pids", "32768"},    {"--disk", "64K"},       {"--disk", "1T"},
        {"--max-output", "0"},  {"--max-output", "1G"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a =
            hutch(LIST("plan", "run", cases[i].option, cases[i].value, "--", "true"));
        cr_expect_eq(a.o.exit_code, 0, "%s %s\n%s", cases[i].option, cases[i].value,
                     answer_show(&a));
    }
}

Test(usage, wrong_command_lines_exit_2_with_one_line)
{
    const struct {
        const char *const *args;
        const char *word;
    } cases[] = {
        {LIST("run", "--no-such-option", "--", "true"), "--no-such-option"},
        {LIST("run", "--timeout"), "--timeout"},
        {LIST("run"), "run"},
        {LIST("run", "--"), "command"},
        {LIST("no-such-verb"), "no-such-verb"},
        {LIST("run", "--network", "host", "--", "true"), "network"},
        {LIST("run", "--require", "no_such_layer", "--", "true"), "no_such_layer"},
        {LIST("run", "--allow-missing", "no_such_layer", "--", "true"), "no_such_layer"},
        {LIST("run", "--allow-missing", "root", "--", "true"), "root"},
        {LIST("run", "--allow-missing", "caps", "--", "true"), "caps"},
        {LIST("run", "--allow-missing", "seccomp", "--", "true"), "seccomp"},
        {LIST("run", "--language", "perl", "-"), "perl"},
        {LIST("run", "--policy", "no-such-policy", "--", "true"), "no-such-policy"},
        {LIST("run", "--rootfs", "debian-12", "--", "true"), "debian-12"},
        {LIST("run", "--ro-bind", "/usr", "--", "true"), "--ro-bind"},
        {LIST("run", "--ro-bind", "usr:/x", "--", "true"), "usr"},
        {LIST("run", "--bind", "/tmp:x", "--", "true"), "--bind"},
        {LIST("policy"), "policy"},
        {LIST("policy", "show", "no-such"), "no-such"},
        {LIST("plan"), "plan"},
        {LIST("plan", "validate"), "validate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer a = hutch(cases[i].args);
        expect(&a, a.o.exit_code == 2 && a.o.out_total == 0);
        expect(&a, strstr(a.o.err, cases[i].word));
    }
}

Test(usage, no_verb_shows_how_to_use_it)
{
    _cleanup_answer_ struct answer a = hutch((const char *const[]){NULL});
    expect(&a, a.o.exit_code == 2 && strstr(a.o.err, "run") && strstr(a.o.err, "exec"));
    _cleanup_answer_ struct answer b = hutch(LIST("--help"));
    expect(&b, b.o.exit_code == 0 && strstr(b.o.out, "run") && strstr(b.o.out, "exec"));
    _cleanup_answer_ struct answer c = hutch(LIST("run", "--help"));
    expect(&c, c.o.exit_code == 0 && strstr(c.o.out, "--timeout") && strstr(c.o.out, "--ro-bind"));
}

Test(usage, option_and_value_may_be_one_word)
{
    _cleanup_answer_ struct answer a =
        hutch(LIST("run", "--json", "--timeout=0.3", "--", "sleep", "60"));
    expect_reason(&a, "timeout");
}

Test(usage, host_paths_that_do_not_exist_are_bad_requests)
{
    const char *const *const cases[] = {
        LIST("/no/such/file.py"),
        LIST("--file", "/no/such/input", "--", "true"),
        LIST("--stdin", "/no/such/input", "--", "true"),
        LIST("--ro-bind", "/no/such/dir:/x", "--", "true"),
        LIST("--bind", "/no/such/dir:/x", "--", "true"),
        LIST("--rootfs", "/no/such/root", "--", "true"),
        LIST("--policy", "/no/such/policy.json", "--", "true"),
        LIST("--python", "/no/such/python", "--language", "python", "/dev/null"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        _cleanup_answer_ struct answer human = hutch(join(LIST("run"), cases[i]));
        expect_refused(&human, 2, "/no/such");
        _cleanup_answer_ struct answer a = hutch(join(LIST("run", "--json"), cases[i]));
        expect_reason(&a, "request");
        expect(&a, strstr(answer_text(&a, "error"), "/no/such"));
    }
}

Test(usage, nul_in_a_code_file_is_refused)
{
    static const char code[] = "print(1)\n\0print(2)\n";
    static const char *const names[] = {"c.py", "c.js", "c.sh"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    for (size_t i = 0; i < 3; i++) {
        const char *path = file_new_bytes(dir.path, names[i], code, sizeof code - 1, 0644);
        _cleanup_answer_ struct answer human = hutch(LIST("run", path));
        expect_refused(&human, 2, "NUL");
        _cleanup_answer_ struct answer a = hutch(LIST("run", "--json", path));
        expect_reason(&a, "request");
    }
    struct spawn base = {.input = code, .input_len = sizeof code - 1};
    _cleanup_answer_ struct answer pipe =
        hutch_with(&base, LIST("run", "--json", "--language", "python", "-"));
    expect_reason(&pipe, "request");
}

Test(usage, a_directory_or_a_device_is_no_code_file)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    _cleanup_answer_ struct answer a = hutch(LIST("run", "--language", "python", dir.path));
    expect_refused(&a, 2, dir.path);
    const char *fifo = path_in(dir.path, "fifo.py");
    cr_assert_eq(mkfifo(fifo, 0644), 0);
    struct spawn base = {.deadline_ms = 10000};
    _cleanup_answer_ struct answer b = hutch_with(&base, LIST("run", fifo));
    expect_refused(&b, 2, fifo);
}
