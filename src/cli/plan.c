/*
 * plan.c - hutch plan: what run or exec would do with the same words, as JSON. Nothing is run,
 * made or written.
 */
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch plan run|exec ...\n"
             "Takes the words of `hutch run` and `hutch exec` and prints the plan as JSON.\n",
};

static int show(const struct hutch_request *request)
{
    struct hutch_error err;
    _cleanup_free_ char *json = NULL;
    size_t len = 0;
    if (hutch_plan(request, &json, &len, &err) < 0)
        return cli_failed(&err);
    return cli_print_line(json, len);
}

static int plan_run(int argc, char **argv)
{
    _cleanup_run_words_ struct run_words words;
    struct hutch_error err;
    if (run_words_build(argc, argv, &words, &err) < 0)
        return cli_failed(&err);
    return words.parsed.help ? run_words_help() : show(words.request);
}

static int plan_exec(int argc, char **argv)
{
    _cleanup_exec_words_ struct exec_words words;
    struct hutch_error err;
    if (exec_words_build(argc, argv, &words, &err) < 0)
        return cli_failed(&err);
    return words.parsed.help ? exec_words_help() : show(words.request);
}

int cli_plan(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "run") == 0)
        return plan_run(argc - 1, argv + 1);
    if (strcmp(verb, "exec") == 0)
        return plan_exec(argc - 1, argv + 1);
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
        return cli_show_help(&SYNTAX);
    if (*verb)
        cli_message("plan: there is a plan for run and exec, not for '%.80s'", verb);
    else
        cli_message("plan: say `hutch plan run ...` or `hutch plan exec ...`");
    return CLI_USAGE;
}
