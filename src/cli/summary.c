/*
 * summary.c - lines for a human about a result. They are read off its JSON: what the command
 * says on stderr is what a program would have read.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"

/* ---- looking into the JSON ---- */

struct lookup {
    const char *key;
    struct json_slice value;
    bool found;
};

static int on_member(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    (void)err;
    struct lookup *lookup = ctx;
    if (strcmp(key, lookup->key) == 0) {
        lookup->value = value;
        lookup->found = true;
    }
    return 0;
}

static bool get(struct json_slice object, const char *key, struct json_slice *ret_value)
{
    struct lookup lookup = {.key = key};
    if (object.type == JSON_OBJECT)
        (void)json_object_each(object, HUTCH_STAGE_RESULT, on_member, &lookup, NULL);
    if (lookup.found)
        *ret_value = lookup.value;
    return lookup.found;
}

/* Text of a string, or the raw text of anything else; "" if it isn't there. Caller frees. */
static char *get_text(struct json_slice object, const char *key)
{
    struct json_slice value;
    char *text = NULL;
    size_t len;
    if (!get(object, key, &value))
        return strdup("");
    if (value.type != JSON_STRING)
        return json_raw(value);
    return json_string(value, &text, &len) < 0 ? NULL : text;
}

static bool document(const struct hutch_result *result, struct json_slice *ret_document)
{
    size_t len;
    const char *text = hutch_result_json(result, &len);
    return text &&
           json_parse(text, len, JSON_MAX_DEPTH + 8, HUTCH_STAGE_RESULT, ret_document, NULL) == 0;
}

/* ---- streams ---- */

static void summary_cut(struct json_slice result, const char *stream)
{
    char key[32];
    struct json_slice truncated;
    (void)snprintf(key, sizeof(key), "%s_truncated", stream);
    if (!get(result, key, &truncated) || !json_is_true(truncated))
        return;
    (void)snprintf(key, sizeof(key), "%s_bytes", stream);
    _cleanup_free_ char *total = get_text(result, key);
    cli_message("%s was cut: the program wrote %s bytes; --max-output lets more through", stream,
                total ? total : "more");
}

void summary_cuts(const struct hutch_result *result)
{
    struct json_slice json;
    if (!document(result, &json))
        return;
    summary_cut(json, "stdout");
    summary_cut(json, "stderr");
}

/* ---- files ---- */

struct tally {
    const char *flag; /* count only elements where this member is true; NULL: all */
    size_t count;
    char *first, *why;
};

static int on_element(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    (void)index, (void)err;
    struct tally *tally = ctx;
    struct json_slice flag;
    if (tally->flag && !(get(value, tally->flag, &flag) && json_is_true(flag)))
        return 0;
    if (tally->count++ == 0) {
        tally->first = get_text(value, "name");
        tally->why = get_text(value, "why");
    }
    return 0;
}

static void tally_free(struct tally *tally)
{
    free(tally->first);
    free(tally->why);
}

static void count(struct json_slice result, const char *key, struct tally *tally)
{
    struct json_slice list;
    if (get(result, key, &list) && list.type == JSON_ARRAY)
        (void)json_array_each(list, HUTCH_STAGE_RESULT, on_element, tally, NULL);
}

void summary_files(const struct hutch_result *result)
{
    struct json_slice json, cut;
    if (!document(result, &json))
        return;
    _cleanup_(tally_free) struct tally partial = {.flag = "truncated"};
    count(json, "files", &partial);
    if (partial.count > 0)
        cli_message("%zu produced files were too large and are cut, the first is '%.200s'",
                    partial.count, partial.first ? partial.first : "");
    _cleanup_(tally_free) struct tally skipped = {0};
    count(json, "files_skipped", &skipped);
    if (skipped.count > 0)
        cli_message("%zu produced entries were left out, the first is '%.200s' (%s)", skipped.count,
                    skipped.first ? skipped.first : "", skipped.why ? skipped.why : "");
    if (get(json, "files_cut", &cut) && json_is_true(cut))
        cli_message("there were more produced files than are taken");
}

/* ---- receipt and usage ---- */

static int on_layer(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    (void)err;
    char *text;
    size_t len;
    if (value.type == JSON_STRING && json_string(value, &text, &len) == 0) {
        buf_printf(ctx, " %s=%s", key, text);
        free(text);
    } else {
        buf_printf(ctx, " %s=%.*s", key, (int)value.len, value.text);
    }
    return 0;
}

static void list_members(struct json_slice object, const char *key, const char *title)
{
    struct json_slice members;
    _cleanup_buf_ struct buf line = BUF(4096);
    if (!get(object, key, &members) || members.type != JSON_OBJECT)
        return;
    (void)json_object_each(members, HUTCH_STAGE_RESULT, on_layer, &line, NULL);
    buf_put(&line, "", 1);
    if (!line.failed)
        cli_message("%s:%s", title, line.data);
}

/* Layers that are missing for one cause share a line. */
struct missing {
    struct buf layers;
    char *cause;
};

static void missing_show(struct missing *missing)
{
    buf_put(&missing->layers, "", 1);
    if (missing->cause && !missing->layers.failed)
        cli_message("missing%s: %s", missing->layers.data, missing->cause);
    buf_free(&missing->layers);
    free(missing->cause);
    missing->cause = NULL;
}

static int on_missing(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    (void)index, (void)err;
    struct missing *missing = ctx;
    _cleanup_free_ char *layer = get_text(value, "layer");
    _cleanup_free_ char *cause = get_text(value, "cause");
    if (!layer || !cause)
        return 0;
    if (missing->cause && strcmp(missing->cause, cause) != 0)
        missing_show(missing);
    if (!missing->cause)
        missing->cause = take_ptr(cause);
    buf_printf(&missing->layers, " %s", layer);
    return 0;
}

void summary_receipt(const struct hutch_result *result)
{
    struct json_slice json, receipt, missing;
    if (!document(result, &json))
        return;
    list_members(json, "usage", "usage");
    if (!get(json, "receipt", &receipt) || receipt.type != JSON_OBJECT)
        return;
    list_members(receipt, "layers", "layers");
    struct missing state = {.layers = BUF(4096)};
    if (get(receipt, "missing", &missing) && missing.type == JSON_ARRAY)
        (void)json_array_each(missing, HUTCH_STAGE_RESULT, on_missing, &state, NULL);
    missing_show(&state);
}
