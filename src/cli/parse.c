/*
 * parse.c - the words of a command line against the tables of options, and the help made of the
 * same tables.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

/* One option, whichever table it stands in. */
struct found {
    const struct cli_option *own;
    const struct request_option *request;
};

static bool taken(const struct cli_syntax *syntax, const struct request_option *row)
{
    return row->help && (row->verbs & syntax->request_verbs);
}

static struct found find_name(const struct cli_syntax *syntax, const char *name)
{
    struct found found = {0};
    for (size_t i = 0; i < syntax->options_len; i++) {
        if (strcmp(syntax->options[i].name, name) == 0)
            found.own = &syntax->options[i];
    }
    if (found.own || !syntax->request_verbs)
        return found;
    found.request = request_option_find(name);
    if (found.request && !taken(syntax, found.request))
        found.request = NULL;
    return found;
}

static struct found find_letter(const struct cli_syntax *syntax, char letter)
{
    struct found found = {0};
    for (size_t i = 0; i < syntax->options_len; i++) {
        if (syntax->options[i].letter == letter)
            found.own = &syntax->options[i];
    }
    return found;
}

static int apply(const struct cli_syntax *syntax, void *ctx, struct found found, const char *field,
                 const char *value, struct hutch_error *err)
{
    if (found.own)
        return found.own->set(ctx, value, err);
    return syntax->request_option(ctx, found.request, field, value ? value : "1", err);
}

static int unknown(const char *word, struct hutch_error *err)
{
    return error_request(err, "%.80s: there is no such option here; see --help", word);
}

/* "--name", "--name=VALUE" or "--name" "VALUE"; *at is moved behind what was used. */
static int take_long(const struct cli_syntax *syntax, void *ctx, char **argv, int *at,
                     struct hutch_error *err)
{
    const char *word = argv[(*at)++];
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    _cleanup_free_ char *field = strndup(word, len);
    if (!field)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    struct found found = find_name(syntax, field + 2);
    if (!found.own && !found.request)
        return unknown(field, err);
    bool takes = found.own ? found.own->value != NULL : found.request->value != NULL;
    if (!takes && equals)
        return error_request(err, "%s: it takes no value", field);
    const char *value = equals ? equals + 1 : NULL;
    if (takes && !equals) {
        value = argv[*at];
        if (!value)
            return error_request(err, "%s: its value is missing", field);
        (*at)++;
    }
    return apply(syntax, ctx, found, field, value, err);
}

static int take_short(const struct cli_syntax *syntax, void *ctx, const char *word,
                      struct hutch_error *err)
{
    struct found found = word[2] == '\0' ? find_letter(syntax, word[1]) : (struct found){0};
    if (!found.own || found.own->value)
        return unknown(word, err);
    return found.own->set(ctx, NULL, err);
}

static int take_positional(const struct cli_syntax *syntax, void *ctx, const char *word,
                           struct hutch_error *err)
{
    if (syntax->positional)
        return syntax->positional(ctx, word, err);
    return error_request(err, "'%.80s': nothing is expected here; see --help", word);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int cli_parse(const struct cli_syntax *syntax, void *ctx, int argc, char **argv,
              struct cli_parsed *ret_parsed, struct hutch_error *err)
{
    *ret_parsed = (struct cli_parsed){.rest = argv + argc};
    for (int at = 1; at < argc;) {
        const char *word = argv[at];
        int r;
        if (strcmp(word, "--") == 0 && syntax->dashes) {
            ret_parsed->dashes = true;
            ret_parsed->rest = argv + at + 1;
            return 0;
        }
        if (is_help(word)) {
            ret_parsed->help = true;
            return 0;
        }
        if (strncmp(word, "--", 2) == 0) {
            r = take_long(syntax, ctx, argv, &at, err);
        } else {
            at++;
            r = word[0] == '-' && word[1] != '\0' ? take_short(syntax, ctx, word, err)
                                                  : take_positional(syntax, ctx, word, err);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- help: two entries share a line where both fit ---- */

enum { COLUMN = 40, NAME_WIDTH = 18 };

struct help {
    struct buf text;
    char left[128]; /* an entry that waits for one to its right, or "" */
};

static void help_free(struct help *help)
{
    buf_free(&help->text);
}

static void help_flush(struct help *help)
{
    if (help->left[0])
        buf_printf(&help->text, "%s\n", help->left);
    help->left[0] = '\0';
}

static void help_entry(struct help *help, char letter, const char *name, const char *value,
                       const char *what)
{
    char dash[8] = "", option[64], entry[128];
    if (letter)
        (void)snprintf(dash, sizeof(dash), "-%c, ", letter);
    int width = snprintf(option, sizeof(option), "%s--%s%s%s", dash, name, value ? " " : "",
                         value ? value : "");
    int len = snprintf(entry, sizeof(entry), "  %-*s%s%s", NAME_WIDTH, option,
                       width > NAME_WIDTH ? "  " : " ", what);
    if (len >= COLUMN) {
        help_flush(help);
        buf_printf(&help->text, "%s\n", entry);
    } else if (help->left[0]) {
        buf_printf(&help->text, "%-*s%s\n", COLUMN, help->left, entry);
        help->left[0] = '\0';
    } else {
        memcpy(help->left, entry, sizeof(entry));
    }
}

int cli_show_help(const struct cli_syntax *syntax)
{
    _cleanup_(help_free) struct help help = {.text = BUF(0)};
    buf_puts(&help.text, syntax->usage);
    for (size_t i = 0; i < syntax->options_len; i++) {
        const struct cli_option *row = &syntax->options[i];
        help_entry(&help, row->letter, row->name, row->value, row->help);
    }
    for (size_t i = 0; i < REQUEST_OPTIONS_LEN && syntax->request_verbs; i++) {
        const struct request_option *row = &REQUEST_OPTIONS[i];
        bool exec = syntax->request_verbs == OPTION_EXEC && row->help_exec;
        if (taken(syntax, row))
            help_entry(&help, 0, row->name, row->value, exec ? row->help_exec : row->help);
    }
    help_flush(&help);
    return cli_print(help.text.data, help.text.len);
}

/* ---- paths ---- */

static bool needs_directory(enum option_path kind, const char *value)
{
    size_t len = strlen(value);
    if (kind == OPTION_PATH_NONE || len == 0 || value[0] == '/')
        return false;
    if (kind == OPTION_PATH_ALWAYS)
        return value[0] != ':';
    return strchr(value, '/') || (len > 5 && strcmp(value + len - 5, ".json") == 0);
}

int cli_host_path(enum option_path kind, const char *value, char **ret_value,
                  struct hutch_error *err)
{
    char here[PATH_MAX] = "";
    bool relative = needs_directory(kind, value);
    if (relative && !getcwd(here, sizeof(here)))
        return error_set(err, HUTCH_STAGE_REQUEST, errno,
                         "'%.80s': the current directory can't be named; give an absolute path",
                         value);
    char *path;
    if (asprintf(&path, "%s%s%s", here, relative ? "/" : "", value) < 0)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    *ret_value = path;
    return 0;
}
