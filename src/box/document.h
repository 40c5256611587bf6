/*
 * document.h - the one result document that a runner writes to its result pipe.
 *
 * It comes from a hostile place: what is read here is bounded data and says nothing about how
 * the program ended. docs/protocol.md has its form.
 */
#ifndef HUTCH_BOX_DOCUMENT_H
#define HUTCH_BOX_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "hutch.h"

#define DOCUMENT_MAX_BYTES (16UL << 20)
/* Of the value; one more is the document's own. */
#define DOCUMENT_MAX_DEPTH 500

enum document_kind {
    DOCUMENT_INVALID,   /* refused by the static check, or not Python at all */
    DOCUMENT_EXCEPTION, /* the code raised */
    DOCUMENT_VALUE,     /* what it returned has no JSON form */
    DOCUMENT_IMPORT,    /* an allowed module is not there */
    DOCUMENT_ARGS,      /* the args can't be Python values unchanged */
};

struct document {
    bool ok;
    struct json_slice value; /* ok: the text as it came, inside the parsed text */
    enum document_kind kind; /* not ok */
    char *error;             /* not ok: decoded, NUL-terminated; may hold NULs */
    size_t error_len;
    char **findings; /* of the static check; may be empty */
    size_t findings_len;
};

void document_free(struct document *document);
#define _cleanup_document_ _cleanup_(document_free)

/* True when a whole line is there: nothing that comes later can make it a document again. */
bool document_complete(const char *text, size_t len);

/* Reads what came through the pipe: exactly one line that is one document. -EPROTO (stage
 * result) says what is wrong with it; -ENOMEM. On failure *ret_document is left untouched; the
 * caller frees it after success, and keeps `text` alive as long as its value is used. */
int document_parse(const char *text, size_t len, struct document *ret_document,
                   struct hutch_error *err);

#endif
