/*
 * build_run.c - the words of `hutch run` to a request.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/cli.h"

/* One byte over the library's bound for code, so that it is the library that refuses. */
#define CODE_READ_MAX (((size_t)16 << 20) + 1)

void run_words_free(struct run_words *words)
{
    hutch_request_free(words->request);
    free(words->files);
    cleanup_close_fd(&words->stdin_fd);
}

/* ---- options ---- */

static int set_json(void *ctx, const char *value, struct hutch_error *err)
{
    (void)value, (void)err;
    ((struct run_words *)ctx)->json = true;
    return 0;
}

static int set_verbose(void *ctx, const char *value, struct hutch_error *err)
{
    (void)value, (void)err;
    ((struct run_words *)ctx)->verbose = true;
    return 0;
}

static int set_out(void *ctx, const char *value, struct hutch_error *err)
{
    (void)err;
    ((struct run_words *)ctx)->out = value;
    return 0;
}

static int set_stdin(void *ctx, const char *value, struct hutch_error *err)
{
    (void)err;
    ((struct run_words *)ctx)->stdin_path = value;
    return 0;
}

static int add_file(void *ctx, const char *value, struct hutch_error *err)
{
    (void)err;
    struct run_words *words = ctx;
    words->files[words->files_len++] = value; /* there is room for every word */
    return 0;
}

static int set_request(void *ctx, const struct request_option *row, const char *field,
                       const char *value, struct hutch_error *err)
{
    struct run_words *words = ctx;
    _cleanup_free_ char *path = NULL;
    int r = cli_host_path(row->path, value, &path, err);
    return r < 0 ? r : row->set(words->request, field, path, err);
}

static int set_code_path(void *ctx, const char *text, struct hutch_error *err)
{
    struct run_words *words = ctx;
    if (words->code_path)
        return error_request(err,
                             "'%.80s': there is a code file already; what the program gets "
                             "stands after --",
                             text);
    words->code_path = text;
    return 0;
}

static const struct cli_option OPTIONS[] = {
    {"json", 0, NULL, "the result as JSON", set_json},
    {"verbose", 'v', NULL, "layers and usage", set_verbose},
    {"file", 0, "HOST[:NAME]", "input file", add_file},
    {"stdin", 0, "FILE|-", "input (empty)", set_stdin},
    {"out", 0, "DIR", "for produced files", set_out},
};

static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch run [OPTIONS] FILE [-- ARGS...]      a python, javascript or bash file\n"
             "       hutch run [OPTIONS] -- COMMAND [ARGS...]   any command\n",
    .options = OPTIONS,
    .options_len = ARRAY_LEN(OPTIONS),
    .request_verbs = OPTION_RUN,
    .request_option = set_request,
    .positional = set_code_path,
    .dashes = true,
};

int run_words_help(void)
{
    return cli_show_help(&SYNTAX);
}

/* ---- what the words mean together ---- */

static int find_language(struct run_words *words, struct hutch_error *err)
{
    const char *path = words->code_path;
    if (words->request->language != LANGUAGE_NONE)
        return 0;
    if (strcmp(path, "-") == 0)
        return error_request(err, "standard input has no suffix; say --language python, "
                                  "javascript or bash");
    enum language language = language_from_suffix(path);
    if (language == LANGUAGE_COUNT)
        return error_request(err,
                             "'%.200s': its suffix names no language; say --language python, "
                             "javascript or bash",
                             path);
    words->request->language = language;
    return 0;
}

static int check_words(struct run_words *words, struct hutch_error *err)
{
    bool standard = words->stdin_path && strcmp(words->stdin_path, "-") == 0;
    if (!words->code_path && !words->parsed.dashes)
        return error_request(err, "run: give a code file, or -- and a command; see --help");
    if (!words->code_path && !words->parsed.rest[0])
        return error_request(err, "run: there is no command after --");
    if (!words->code_path)
        return 0;
    if (standard && strcmp(words->code_path, "-") == 0)
        return error_request(err, "--stdin: standard input is the code already");
    return find_language(words, err);
}

static int parse_words(int argc, char **argv, struct run_words *words, struct hutch_error *err)
{
    words->files = reallocarray(NULL, (size_t)argc, sizeof(*words->files));
    if (!words->files)
        return error_oom(err, HUTCH_STAGE_LAUNCH);
    int r = hutch_request_new(HUTCH_VERB_RUN, &words->request, err);
    if (r == 0)
        r = cli_parse(&SYNTAX, words, argc, argv, &words->parsed, err);
    if (r == 0 && !words->parsed.help)
        r = check_words(words, err);
    words->usage_error = r < 0;
    return r;
}

/* ---- what the words name ---- */

static int read_code(struct run_words *words, struct hutch_error *err)
{
    _cleanup_buf_ struct buf code = BUF(0);
    int r = cli_read(words->code_path, CODE_READ_MAX, &code, NULL, err);
    const char *language = language_info(words->request->language)->name;
    if (r == 0)
        r = hutch_request_set_code(words->request, language, code.data, code.len, err);
    for (char *const *arg = words->parsed.rest; r == 0 && *arg; arg++)
        r = hutch_request_add_arg(words->request, *arg, err);
    return r;
}

/* "HOST[:NAME]": the last colon counts; a HOST with a colon needs a NAME. */
static int read_file(struct run_words *words, const char *given, struct hutch_error *err)
{
    const char *colon = strrchr(given, ':');
    _cleanup_free_ char *path = colon ? strndup(given, (size_t)(colon - given)) : strdup(given);
    if (!path)
        return error_oom(err, HUTCH_STAGE_LAUNCH);
    const char *slash = strrchr(path, '/');
    const char *name = colon ? colon + 1 : slash ? slash + 1 : path;
    _cleanup_buf_ struct buf data = BUF(0);
    mode_t mode = 0;
    int r = strcmp(path, "-") == 0
                ? error_request(err, "--file: standard input is taken with --stdin -")
                : cli_read(path, words->request->limits.disk_bytes, &data, &mode, err);
    bool executable = mode & (S_IXUSR | S_IXGRP | S_IXOTH);
    return r < 0 ? r
                 : hutch_request_add_file(words->request, name, data.data, data.len,
                                          executable ? 0700 : 0600, err);
}

static int open_stdin(struct run_words *words, struct hutch_error *err)
{
    if (!words->stdin_path)
        return 0;
    if (strcmp(words->stdin_path, "-") == 0)
        return hutch_request_set_stdin_fd(words->request, STDIN_FILENO, err);
    int r = cli_open(words->stdin_path, true, &words->stdin_fd, NULL, err);
    return r < 0 ? r : hutch_request_set_stdin_fd(words->request, words->stdin_fd, err);
}

int run_words_build(int argc, char **argv, struct run_words *words, struct hutch_error *err)
{
    *words = (struct run_words){.stdin_fd = -1};
    int r = parse_words(argc, argv, words, err);
    if (r < 0 || words->parsed.help)
        return r;
    if (words->code_path)
        r = read_code(words, err);
    else
        r = hutch_request_set_command(words->request, (const char *const *)words->parsed.rest, err);
    for (size_t i = 0; r == 0 && i < words->files_len; i++)
        r = read_file(words, words->files[i], err);
    if (r == 0)
        r = open_stdin(words, err);
    const char *collect = words->out ? "names" : words->json ? "data" : "none";
    return r < 0 ? r : hutch_request_set(words->request, "collect", collect, err);
}
