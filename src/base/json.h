/*
 * json.h - JSON read as slices and written to a buffer.
 *
 * A document is checked whole (by yajl: strict grammar, UTF-8) before any part of it is looked
 * at, then its values are handed out as slices of the caller's text. Numbers stay text: nothing
 * here turns a value into a double and back. Bounded in depth without recursing; duplicate
 * member names are an error in objects that are walked.
 */
#ifndef HUTCH_BASE_JSON_H
#define HUTCH_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "hutch.h"

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* One value: exact text, without surrounding blanks. Lives as long as the document's text. */
struct json_slice {
    const char *text;
    size_t len;
    enum json_type type;
};

#define JSON_MAX_DEPTH 512

/* Checks that text is exactly one JSON value (blanks around it allowed) of at most max_depth
 * containers deep, and hands it out. The error's message gives the byte offset. `stage` is the
 * stage that errors carry. */
int json_parse(const char *text, size_t len, unsigned max_depth, enum hutch_stage stage,
               struct json_slice *ret_value, struct hutch_error *err);

/* Calls `member` for each member of a checked object in order; `key` is decoded and
 * NUL-terminated (a key with a NUL in it is refused). Stops at the first negative return. */
typedef int json_member_fn(void *ctx, const char *key, struct json_slice value,
                           struct hutch_error *err);
int json_object_each(struct json_slice object, enum hutch_stage stage, json_member_fn *member,
                     void *ctx, struct hutch_error *err);
/* The same for the elements of a checked array. */
typedef int json_element_fn(void *ctx, size_t index, struct json_slice value,
                            struct hutch_error *err);
int json_array_each(struct json_slice array, enum hutch_stage stage, json_element_fn *element,
                    void *ctx, struct hutch_error *err);

/* Decodes a checked string slice into fresh memory (escapes, surrogate pairs; a lone surrogate
 * becomes U+FFFD); NUL-terminated, ret_len counts embedded NULs too. */
int json_string(struct json_slice value, char **ret_text, size_t *ret_len);
/* The same, but a lone surrogate is -EILSEQ: for text that must not change on its way in. */
int json_string_exact(struct json_slice value, char **ret_text, size_t *ret_len);
/* Decodes a checked string slice of base64, with its padding and nothing else: -EINVAL. */
int json_base64(struct json_slice value, void **ret_data, size_t *ret_len);
bool json_is_true(struct json_slice value);
/* A copy of the slice's raw text, NUL-terminated. */
char *json_raw(struct json_slice value);

/* Writing. Bytes that aren't UTF-8 become U+FFFD; returns true if any did. */
bool json_put_string(struct buf *buf, const char *text, size_t len);
/* `"key":`, with a comma before it unless it is the first thing in its object. */
void json_put_key(struct buf *buf, const char *key);
void json_put_base64(struct buf *buf, const void *data, size_t len); /* with the quotes */
/* True if the bytes are valid UTF-8. */
bool utf8_valid(const char *text, size_t len);
/* The longest prefix of at most `max` bytes that doesn't split a UTF-8 character. Bytes that
 * aren't UTF-8 at all are kept. Looks at up to 3 bytes behind `max`: when the text goes on there,
 * `len` must count at least one of them, or nothing is seen to be cut. */
size_t utf8_cut(const char *text, size_t len, size_t max);

#endif
