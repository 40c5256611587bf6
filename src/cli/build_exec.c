/*
 * build_exec.c - the words of `hutch exec` and its JSON document to a request.
 */
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

#define DOCUMENT_READ_MAX ((size_t)256 << 20)

struct exec_option {
    const char *name;
    char *value;
};

void exec_words_free(struct exec_words *words)
{
    for (size_t i = 0; i < words->options_len; i++)
        free(words->options[i].value);
    free(words->options);
    hutch_request_free(words->scratch);
    hutch_request_free(words->request);
}

static int set_verbose(void *ctx, const char *value, struct hutch_error *err)
{
    (void)value, (void)err;
    ((struct exec_words *)ctx)->verbose = true;
    return 0;
}

static int add_option(void *ctx, const struct request_option *row, const char *field,
                      const char *value, struct hutch_error *err)
{
    struct exec_words *words = ctx;
    _cleanup_free_ char *path = NULL;
    int r = cli_host_path(row->path, value, &path, err);
    if (r == 0)
        r = row->set(words->scratch, field, path, err);
    if (r == 0)
        words->options[words->options_len++] = (struct exec_option){row->name, take_ptr(path)};
    return r;
}

static int set_path(void *ctx, const char *text, struct hutch_error *err)
{
    struct exec_words *words = ctx;
    if (words->path)
        return error_request(err, "'%.80s': there is one request document only", text);
    words->path = text;
    return 0;
}

static const struct cli_option OPTIONS[] = {
    {"verbose", 'v', NULL, "layers and usage", set_verbose},
};

static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch exec [OPTIONS] [FILE|-]\n"
             "The request is a JSON document, the result one line of JSON: hutch(1).\n"
             "Limits can only be lowered here; without one in the request the default counts.\n",
    .options = OPTIONS,
    .options_len = ARRAY_LEN(OPTIONS),
    .request_verbs = OPTION_EXEC,
    .request_option = add_option,
    .positional = set_path,
};

int exec_words_help(void)
{
    return cli_show_help(&SYNTAX);
}

static int parse_words(int argc, char **argv, struct exec_words *words, struct hutch_error *err)
{
    words->options = reallocarray(NULL, (size_t)argc, sizeof(*words->options));
    if (!words->options)
        return error_oom(err, HUTCH_STAGE_LAUNCH);
    int r = hutch_request_new(HUTCH_VERB_EXEC, &words->scratch, err);
    return r < 0 ? r : cli_parse(&SYNTAX, words, argc, argv, &words->parsed, err);
}

int exec_words_build(int argc, char **argv, struct exec_words *words, struct hutch_error *err)
{
    *words = (struct exec_words){0};
    int r = parse_words(argc, argv, words, err);
    if (r < 0 || words->parsed.help)
        return r;
    _cleanup_buf_ struct buf document = BUF(0);
    r = cli_read(words->path ? words->path : "-", DOCUMENT_READ_MAX, &document, NULL, err);
    if (r == 0)
        r = hutch_request_from_json(HUTCH_VERB_EXEC, document.data ? document.data : "",
                                    document.len, &words->request, err);
    for (size_t i = 0; r == 0 && i < words->options_len; i++)
        r = request_set_lowering(words->request, words->options[i].name, words->options[i].value,
                                 err);
    return r;
}
