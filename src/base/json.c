/*
 * json.c - reading: yajl checks the grammar, byte offsets cut the values out.
 *
 * yajl is given the whole text in one piece, so within a callback yajl_get_bytes_consumed() is
 * the offset just behind the token. Three things yajl lets through are checked before it: UTF-8
 * in overlong forms or beyond U+10FFFF, vertical tab and form feed as blanks, and NUL.
 */
#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/error.h"

static void cleanup_yajl(yajl_handle *handle)
{
    if (*handle)
        yajl_free(*handle);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static enum json_type type_of(char first)
{
    switch (first) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

/* ---- the check ---- */

struct depth {
    unsigned now, max;
    bool exceeded;
};

static int depth_in(void *ctx)
{
    struct depth *depth = ctx;
    depth->exceeded = depth->now >= depth->max;
    depth->now++;
    return !depth->exceeded;
}

static int depth_out(void *ctx)
{
    struct depth *depth = ctx;
    depth->now--;
    return 1;
}

static const yajl_callbacks CHECK = {
    .yajl_start_map = depth_in,
    .yajl_end_map = depth_out,
    .yajl_start_array = depth_in,
    .yajl_end_array = depth_out,
};

static int check_bytes(const char *text, size_t len, enum hutch_stage stage,
                       struct hutch_error *err)
{
    if (!utf8_valid(text, len))
        return error_set(err, stage, EINVAL, "not JSON: the text is not UTF-8");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 && !is_blank(text[i]))
            return error_set(err, stage, EINVAL, "not JSON: control character 0x%02x at byte %zu",
                             c, i);
    }
    return 0;
}

static int grammar_error(yajl_handle handle, size_t offset, enum hutch_stage stage,
                         struct hutch_error *err)
{
    unsigned char *text = yajl_get_error(handle, 0, NULL, 0);
    int len = text ? (int)strcspn((const char *)text, "\n") : 0;
    int r = error_set(err, stage, EINVAL, "not JSON: %.*s at byte %zu", len,
                      text ? (const char *)text : "", offset);
    if (text)
        yajl_free_error(handle, text);
    return r;
}

static int check_grammar(const char *text, size_t len, unsigned max_depth, enum hutch_stage stage,
                         struct hutch_error *err)
{
    struct depth depth = {.max = max_depth};
    _cleanup_(cleanup_yajl) yajl_handle handle = yajl_alloc(&CHECK, NULL, &depth);
    if (!handle)
        return error_oom(err, stage);
    yajl_status status = yajl_parse(handle, (const unsigned char *)text, len);
    size_t offset = yajl_get_bytes_consumed(handle);
    if (status == yajl_status_ok) {
        status = yajl_complete_parse(handle);
        offset = len;
    }
    if (depth.exceeded)
        return error_set(err, stage, E2BIG,
                         "JSON is nested too deep: more than %u levels at byte %zu", max_depth,
                         offset);
    return status == yajl_status_ok ? 0 : grammar_error(handle, offset, stage, err);
}

int json_parse(const char *text, size_t len, unsigned max_depth, enum hutch_stage stage,
               struct json_slice *ret_value, struct hutch_error *err)
{
    int r = check_bytes(text, len, stage, err);
    if (r < 0)
        return r;
    r = check_grammar(text, len, max_depth, stage, err);
    if (r < 0)
        return r;
    while (is_blank(*text)) {
        text++;
        len--;
    }
    while (is_blank(text[len - 1]))
        len--;
    *ret_value = (struct json_slice){.text = text, .len = len, .type = type_of(*text)};
    return 0;
}

/* ---- walking one container ---- */

struct entry {
    char *key; /* NULL in an array */
    struct json_slice value;
};

struct walk {
    yajl_handle handle;
    const char *text;
    unsigned depth;
    size_t mark;  /* behind the last token of depth 1 */
    size_t start; /* of the value of depth 1 that is open */
    struct entry *entries;
    size_t len, cap;
    char *key;
    bool nul_in_key;
};

static void walk_end(struct walk *walk)
{
    for (size_t i = 0; i < walk->len; i++)
        free(walk->entries[i].key);
    free(walk->entries);
    free(walk->key);
    if (walk->handle)
        yajl_free(walk->handle);
}

/* The first byte of the token that comes after the mark. */
static size_t token_start(const struct walk *walk)
{
    size_t at = walk->mark;
    while (is_blank(walk->text[at]) || walk->text[at] == ',' || walk->text[at] == ':')
        at++;
    return at;
}

static int walk_add(struct walk *walk, size_t start)
{
    if (walk->len == walk->cap) {
        size_t cap = walk->cap ? walk->cap * 2 : 16;
        struct entry *entries = reallocarray(walk->entries, cap, sizeof(*entries));
        if (!entries)
            return 0;
        walk->entries = entries;
        walk->cap = cap;
    }
    walk->mark = yajl_get_bytes_consumed(walk->handle);
    walk->entries[walk->len++] = (struct entry){
        .key = take_ptr(walk->key),
        .value = {walk->text + start, walk->mark - start, type_of(walk->text[start])},
    };
    return 1;
}

static int walk_scalar(struct walk *walk)
{
    return walk->depth == 1 ? walk_add(walk, token_start(walk)) : 1;
}

static int walk_null(void *ctx)
{
    return walk_scalar(ctx);
}

static int walk_bool(void *ctx, int value)
{
    (void)value;
    return walk_scalar(ctx);
}

static int walk_number(void *ctx, const char *text, size_t len)
{
    (void)text, (void)len;
    return walk_scalar(ctx);
}

static int walk_string(void *ctx, const unsigned char *text, size_t len)
{
    (void)text, (void)len;
    return walk_scalar(ctx);
}

static int walk_key(void *ctx, const unsigned char *text, size_t len)
{
    (void)text, (void)len;
    struct walk *walk = ctx;
    if (walk->depth != 1)
        return 1;
    size_t start = token_start(walk), decoded_len;
    walk->mark = yajl_get_bytes_consumed(walk->handle);
    /* Not yajl's own decoding, which maps every lone surrogate to '?'. */
    struct json_slice raw = {walk->text + start, walk->mark - start, JSON_STRING};
    if (json_string(raw, &walk->key, &decoded_len) < 0)
        return 0;
    walk->nul_in_key = strlen(walk->key) != decoded_len;
    return !walk->nul_in_key;
}

static int walk_in(void *ctx)
{
    struct walk *walk = ctx;
    if (walk->depth == 0)
        walk->mark = yajl_get_bytes_consumed(walk->handle);
    else if (walk->depth == 1)
        walk->start = token_start(walk);
    walk->depth++;
    return 1;
}

static int walk_out(void *ctx)
{
    struct walk *walk = ctx;
    walk->depth--;
    return walk->depth == 1 ? walk_add(walk, walk->start) : 1;
}

static const yajl_callbacks WALK = {
    .yajl_null = walk_null,
    .yajl_boolean = walk_bool,
    .yajl_number = walk_number,
    .yajl_string = walk_string,
    .yajl_start_map = walk_in,
    .yajl_map_key = walk_key,
    .yajl_end_map = walk_out,
    .yajl_start_array = walk_in,
    .yajl_end_array = walk_out,
};

static int walk_all(struct walk *walk, struct json_slice container, enum hutch_stage stage,
                    struct hutch_error *err)
{
    walk->text = container.text;
    walk->handle = yajl_alloc(&WALK, NULL, walk);
    if (!walk->handle)
        return error_oom(err, stage);
    yajl_status status =
        yajl_parse(walk->handle, (const unsigned char *)container.text, container.len);
    if (walk->nul_in_key)
        return error_set(err, stage, EINVAL, "a JSON member's name has a NUL in it");
    /* The text was checked before: what is left is memory. */
    return status == yajl_status_ok ? 0 : error_oom(err, stage);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int refuse_duplicates(const struct walk *walk, enum hutch_stage stage,
                             struct hutch_error *err)
{
    if (walk->len < 2)
        return 0;
    _cleanup_free_ const char **keys = reallocarray(NULL, walk->len, sizeof(*keys));
    if (!keys)
        return error_oom(err, stage);
    for (size_t i = 0; i < walk->len; i++)
        keys[i] = walk->entries[i].key;
    qsort(keys, walk->len, sizeof(*keys), by_key);
    for (size_t i = 1; i < walk->len; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0)
            return error_set(err, stage, EINVAL, "the JSON member '%.100s' is there twice",
                             keys[i]);
    }
    return 0;
}

int json_object_each(struct json_slice object, enum hutch_stage stage, json_member_fn *member,
                     void *ctx, struct hutch_error *err)
{
    _cleanup_(walk_end) struct walk state = {0};
    int r = walk_all(&state, object, stage, err);
    if (r == 0)
        r = refuse_duplicates(&state, stage, err);
    for (size_t i = 0; r >= 0 && i < state.len; i++)
        r = member(ctx, state.entries[i].key, state.entries[i].value, err);
    return r < 0 ? r : 0;
}

int json_array_each(struct json_slice array, enum hutch_stage stage, json_element_fn *element,
                    void *ctx, struct hutch_error *err)
{
    _cleanup_(walk_end) struct walk state = {0};
    int r = walk_all(&state, array, stage, err);
    for (size_t i = 0; r >= 0 && i < state.len; i++)
        r = element(ctx, i, state.entries[i].value, err);
    return r < 0 ? r : 0;
}

bool json_is_true(struct json_slice value)
{
    return value.type == JSON_BOOL && value.text[0] == 't';
}

char *json_raw(struct json_slice value)
{
    return strndup(value.text, value.len);
}
