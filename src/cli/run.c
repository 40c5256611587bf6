/*
 * run.c - hutch run: output is passed on as it comes, or everything comes as one JSON line.
 */
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

static void cleanup_run(struct hutch_run **run)
{
    hutch_run_leave(*run); /* we exit next */
}

static void cleanup_result(struct hutch_result **result)
{
    hutch_result_free(*result);
}

/* A failure of the program itself needs no words of ours: its status says it. */
static bool is_programs_own(const char *reason)
{
    return strcmp(reason, "exit") == 0 || strcmp(reason, "signal") == 0;
}

/* With --json the error stands there; what hutch could not do is said in both forms. */
static void show_error(const struct hutch_result *result, bool json)
{
    const char *reason = hutch_result_reason(result), *error = hutch_result_error(result);
    bool ours = strcmp(reason, "request") == 0 || strcmp(reason, "setup") == 0;
    if (error && (ours || (!json && !is_programs_own(reason))))
        cli_message("%s", error);
}

static int show(const struct run_words *words, const struct hutch_result *result, int out_dir,
                int signal)
{
    struct hutch_error err;
    int status = signal ? 128 + signal : hutch_result_exit_status(result);
    int written = out_dir >= 0 ? out_write(out_dir, result, &err) : 0;
    size_t len;
    const char *text = words->json ? hutch_result_json(result, &len) : NULL;
    if (words->json && cli_print_line(text, len) != CLI_OK)
        status = CLI_FAILED;
    if (!words->json)
        summary_cuts(result);
    if (out_dir >= 0)
        summary_files(result);
    if (!signal)
        show_error(result, words->json);
    if (words->verbose)
        summary_receipt(result);
    return written < 0 ? cli_failed(&err) : status;
}

/* What fails before there is a result. */
static int failed(const struct run_words *words, const struct hutch_error *err)
{
    return words->json ? cli_failed_json(HUTCH_VERB_RUN, err) : cli_failed(err);
}

/* From the start to the result; *ret_signal is what ended us, or 0. */
static int drive(const struct run_words *words, struct hutch_run **ret_run,
                 struct hutch_result **ret_result, int *ret_signal, struct hutch_error *err)
{
    _cleanup_close_ int signals = drive_signals();
    struct terminal terminal = {.fds = {-1, -1}};
    int r = words->json ? 0 : terminal_start(&terminal, err);
    if (r == 0 && !words->json)
        r = hutch_request_set_output_fds(words->request, terminal.fds[0], terminal.fds[1], err);
    if (r == 0)
        r = hutch_run_start(words->request, ret_run, err);
    if (r == 0)
        r = drive_run(*ret_run, signals, !words->json, ret_signal, err);
    if (r == 0)
        r = hutch_run_finish(*ret_run, ret_result, err);
    terminal_finish(&terminal);
    return r;
}

int cli_run(int argc, char **argv)
{
    _cleanup_run_words_ struct run_words words;
    struct hutch_error err;
    int r = run_words_build(argc, argv, &words, &err);
    if (r < 0)
        return words.usage_error ? cli_failed(&err) : failed(&words, &err);
    if (words.parsed.help)
        return run_words_help();
    _cleanup_close_ int out_dir = -1;
    if (words.out && out_open(words.out, &out_dir, &err) < 0)
        return failed(&words, &err);
    _cleanup_(cleanup_run) struct hutch_run *run = NULL;
    _cleanup_(cleanup_result) struct hutch_result *result = NULL;
    int signal = 0;
    r = drive(&words, &run, &result, &signal, &err);
    return r < 0 ? failed(&words, &err) : show(&words, result, out_dir, signal);
}
