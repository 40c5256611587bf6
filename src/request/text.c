/*
 * text.c - copies and lists of the caller's text, and what a text must look like.
 */
#include <string.h>

#include "base/error.h"
#include "request/internal.h"

int text_replace(char **slot, const char *value, struct hutch_error *err)
{
    char *copy = strdup(value);
    if (!copy)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    free(*slot);
    *slot = copy;
    return 0;
}

int text_list_add(struct text_list *list, const char *field, const char *text,
                  struct hutch_error *err)
{
    if (list->len >= LIST_MAX)
        return error_request(err, "%s: more than %u entries", field, LIST_MAX);
    char **items = reallocarray(list->items, list->len + 1, sizeof(*items));
    if (!items)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    list->items = items;
    char *copy = strdup(text);
    if (!copy)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    items[list->len++] = copy;
    return 0;
}

void text_list_free(struct text_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){0};
}

bool text_list_has(const struct text_list *list, const char *text)
{
    for (size_t i = 0; i < list->len; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

int check_arg(const char *field, const char *text, struct hutch_error *err)
{
    if (strlen(text) >= ARG_MAX_BYTES)
        return error_request(err,
                             "%s: longer than the %zu bytes that Linux takes in one string; pass "
                             "it in a file or on standard input",
                             field, ARG_MAX_BYTES - 1);
    return 0;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int check_identifier(const char *field, const char *text, struct hutch_error *err)
{
    size_t len = strlen(text);
    bool good = len >= 1 && len <= 64 && is_alnum(text[0]);
    for (size_t i = 1; good && i < len; i++)
        good = is_alnum(text[i]) || text[i] == '_' || text[i] == '-';
    if (!good)
        return error_request(err,
                             "invalid %s '%.80s': 1 to 64 letters, digits, '_' and '-', the first "
                             "a letter or digit",
                             field, text);
    return 0;
}

/* Letters beyond ASCII are let through: the check in the box normalises and compares them. */
static size_t python_name(const char *text)
{
    size_t len = 0;
    while (is_alnum(text[len]) || text[len] == '_' || ((unsigned char)text[len] & 0x80))
        len++;
    return text[0] >= '0' && text[0] <= '9' ? 0 : len;
}

int check_module(const char *field, const char *text, struct hutch_error *err)
{
    const char *at = text;
    size_t len = python_name(at);
    while (len > 0 && at[len] == '.') {
        at += len + 1;
        len = python_name(at);
    }
    if (len == 0 || at[len] != '\0' || strlen(text) > 255 || !utf8_valid(text, strlen(text)))
        return error_request(err,
                             "%s: '%.80s' is not a module's name; write it like math or "
                             "os.path",
                             field, text);
    return 0;
}

int check_policy_name(const char *field, const char *text, struct hutch_error *err)
{
    size_t len = strlen(text);
    bool good = len >= 1 && len <= 64;
    for (size_t i = 0; good && i < len; i++)
        good = is_alnum(text[i]) || text[i] == '_' || text[i] == '-';
    if (!good)
        return error_request(err,
                             "%s: '%.80s' is neither a profile's name nor a file; give a name of "
                             "`hutch policy list`, or a path with a slash or ending in .json",
                             field, text);
    return 0;
}

int check_env(const char *field, const char *text, struct hutch_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return error_request(err,
                             "%s: '%.80s' has no '='; write NAME=VALUE (nothing is taken "
                             "over from hutch's own environment)",
                             field, text);
    if (equals == text)
        return error_request(err, "%s: '%.80s' has no name before the '='", field, text);
    return check_arg(field, text, err);
}
