/*
 * exec.c - hutch exec: one JSON document in, one line of JSON out, whatever happens.
 */
#include <string.h>

#include "cli/cli.h"

static void cleanup_run(struct hutch_run **run)
{
    hutch_run_leave(*run); /* we exit next */
}

static void cleanup_result(struct hutch_result **result)
{
    hutch_result_free(*result);
}

/* What the caller or we did wrong; a failure of the code stands in the JSON alone. */
static void show_error(const struct hutch_result *result)
{
    const char *reason = hutch_result_reason(result), *error = hutch_result_error(result);
    if (error && (strcmp(reason, "request") == 0 || strcmp(reason, "setup") == 0))
        cli_message("%s", error);
}

static int show(const struct hutch_result *result, bool verbose, int signal)
{
    size_t len;
    const char *text = hutch_result_json(result, &len);
    int printed = cli_print_line(text, len);
    if (!signal)
        show_error(result);
    if (verbose)
        summary_receipt(result);
    if (printed != CLI_OK)
        return printed;
    return signal ? 128 + signal : hutch_result_exit_status(result);
}

int cli_exec(int argc, char **argv)
{
    _cleanup_exec_words_ struct exec_words words;
    _cleanup_(cleanup_run) struct hutch_run *run = NULL;
    _cleanup_(cleanup_result) struct hutch_result *result = NULL;
    struct hutch_error err;
    int signal = 0;
    int r = exec_words_build(argc, argv, &words, &err);
    if (r == 0 && words.parsed.help)
        return exec_words_help();
    _cleanup_close_ int signals = r == 0 ? drive_signals() : -1;
    if (r == 0)
        r = hutch_run_start(words.request, &run, &err);
    if (r == 0)
        r = drive_run(run, signals, false, &signal, &err);
    if (r == 0)
        r = hutch_run_finish(run, &result, &err);
    /* The answer is out before the box is gone: `run` is freed behind it. */
    return r < 0 ? cli_failed_json(HUTCH_VERB_EXEC, &err) : show(result, words.verbose, signal);
}
