/*
 * validate.c - hutch validate: the static check alone, one finding a line.
 */
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

#define CODE_READ_MAX (((size_t)16 << 20) + 1)

struct words {
    struct hutch_request *request;
    const char *path;
};

static void words_free(struct words *words)
{
    hutch_request_free(words->request);
}

static void cleanup_result(struct hutch_result **result)
{
    hutch_result_free(*result);
}

static int allow_import(void *ctx, const char *value, struct hutch_error *err)
{
    return hutch_request_allow_import(((struct words *)ctx)->request, value, err);
}

static int set_python(void *ctx, const char *value, struct hutch_error *err)
{
    _cleanup_free_ char *path = NULL;
    int r = cli_host_path(OPTION_PATH_IF_PATH, value, &path, err);
    return r < 0 ? r : hutch_request_set(((struct words *)ctx)->request, "python", path, err);
}

static int set_path(void *ctx, const char *text, struct hutch_error *err)
{
    struct words *words = ctx;
    if (words->path)
        return error_request(err, "'%.80s': one file is checked at a time", text);
    words->path = text;
    return 0;
}

static const struct cli_option OPTIONS[] = {
    {"allow-import", 0, "MODULE", "may be imported; once for each module", allow_import},
    {"python", 0, "PATH", "interpreter whose syntax counts", set_python},
};

static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch validate [--allow-import MODULE]... [FILE|-]\n"
             "FILE is the body of a function, as exec takes it. Silent when nothing is found.\n",
    .options = OPTIONS,
    .options_len = ARRAY_LEN(OPTIONS),
    .positional = set_path,
};

/* "line 3: ...; line 5: ...": the length of the first finding. */
static size_t finding_len(const char *text)
{
    for (const char *end = strstr(text, "; line "); end; end = strstr(end + 1, "; line ")) {
        const char *number = end + strlen("; line ");
        size_t digits = strspn(number, "0123456789");
        if (digits > 0 && number[digits] == ':')
            return (size_t)(end - text);
    }
    return strlen(text);
}

static void put_finding(struct buf *out, const char *text, size_t len)
{
    _cleanup_buf_ struct buf line = BUF(0);
    buf_put(&line, text, len);
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '\n' || line.data[i] == '\r')
            line.data[i] = ' ';
    }
    (void)terminal_clean(out, line.data ? line.data : "", line.len, true);
    buf_puts(out, "\n");
}

static int show_findings(const char *text)
{
    _cleanup_buf_ struct buf out = BUF(0);
    while (*text) {
        size_t len = finding_len(text);
        put_finding(&out, text, len);
        text += len;
        text += *text ? strlen("; ") : 0;
    }
    int printed = cli_print(out.failed ? NULL : out.data, out.len);
    return printed == CLI_OK ? CLI_NEGATIVE : printed;
}

static int show(const struct hutch_result *result)
{
    const char *reason = hutch_result_reason(result), *error = hutch_result_error(result);
    if (hutch_result_ok(result))
        return CLI_OK;
    if (!error || error[0] == '\0')
        error = "the check did not come to an end";
    if (strcmp(reason, "request") == 0 || strcmp(reason, "setup") == 0) {
        cli_message("%s", error);
        return hutch_result_exit_status(result);
    }
    /* Also when the check itself was ended by a limit: what was not checked is not accepted. */
    return show_findings(error);
}

static int build(int argc, char **argv, struct words *words, struct cli_parsed *ret_parsed,
                 struct hutch_error *err)
{
    int r = hutch_request_new(HUTCH_VERB_EXEC, &words->request, err);
    if (r == 0)
        r = cli_parse(&SYNTAX, words, argc, argv, ret_parsed, err);
    if (r < 0 || ret_parsed->help)
        return r;
    _cleanup_buf_ struct buf code = BUF(0);
    r = cli_read(words->path ? words->path : "-", CODE_READ_MAX, &code, NULL, err);
    return r < 0 ? r : hutch_request_set_code(words->request, NULL, code.data, code.len, err);
}

int cli_validate(int argc, char **argv)
{
    _cleanup_(words_free) struct words words = {0};
    _cleanup_(cleanup_result) struct hutch_result *result = NULL;
    struct cli_parsed parsed;
    struct hutch_error err;
    int r = build(argc, argv, &words, &parsed, &err);
    if (r == 0 && parsed.help)
        return cli_show_help(&SYNTAX);
    if (r == 0)
        r = hutch_validate(words.request, &result, &err);
    return r < 0 ? cli_failed(&err) : show(result);
}
