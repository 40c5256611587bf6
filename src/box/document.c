/* document.c - see document.h. */
#include "box/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_FINDINGS 1000

static const char *const KINDS[] = {
    [DOCUMENT_INVALID] = "invalid", [DOCUMENT_EXCEPTION] = "exception", [DOCUMENT_VALUE] = "value",
    [DOCUMENT_IMPORT] = "import",   [DOCUMENT_ARGS] = "args",
};

enum member {
    MEMBER_OK = 1U << 0,
    MEMBER_VALUE = 1U << 1,
    MEMBER_KIND = 1U << 2,
    MEMBER_ERROR = 1U << 3,
    MEMBER_FINDINGS = 1U << 4,
};

struct reading {
    struct document document;
    unsigned members;
};

static void reading_free(struct reading *reading)
{
    document_free(&reading->document);
}

void document_free(struct document *document)
{
    for (size_t i = 0; i < document->findings_len; i++)
        free(document->findings[i]);
    free(document->findings);
    free(document->error);
    *document = (struct document){0};
}

static int broken(struct hutch_error *err, const char *what)
{
    return error_set(err, HUTCH_STAGE_RESULT, EPROTO, "malformed result document: %s", what);
}

static int read_text(struct json_slice value, const char *what, char **ret_text, size_t *ret_len,
                     struct hutch_error *err)
{
    if (value.type != JSON_STRING)
        return broken(err, what);
    int rc = json_string(value, ret_text, ret_len);
    return rc < 0 ? error_oom(err, HUTCH_STAGE_RESULT) : 0;
}

static int read_kind(struct document *document, struct json_slice value, struct hutch_error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    int rc = read_text(value, "kind is not text", &text, &len, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        if (len == strlen(KINDS[i]) && memcmp(text, KINDS[i], len) == 0) {
            document->kind = (enum document_kind)i;
            return 0;
        }
    return broken(err, "unknown kind");
}

static int read_finding(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    struct document *document = ctx;
    size_t len = 0;
    if (index >= MAX_FINDINGS)
        return broken(err, "too many findings");
    int rc = read_text(value, "a finding is not text", &document->findings[index], &len, err);
    if (rc == 0)
        document->findings_len = index + 1;
    return rc;
}

static int read_findings(struct document *document, struct json_slice value,
                         struct hutch_error *err)
{
    if (value.type != JSON_ARRAY)
        return broken(err, "findings is not a list");
    document->findings = calloc(MAX_FINDINGS, sizeof(*document->findings));
    if (!document->findings)
        return error_oom(err, HUTCH_STAGE_RESULT);
    return json_array_each(value, HUTCH_STAGE_RESULT, read_finding, document, err);
}

static int read_member(void *ctx, const char *key, struct json_slice value,
                       struct hutch_error *err)
{
    struct reading *reading = ctx;
    struct document *document = &reading->document;

    if (strcmp(key, "ok") == 0) {
        if (value.type != JSON_BOOL)
            return broken(err, "ok is not true or false");
        document->ok = json_is_true(value);
        reading->members |= MEMBER_OK;
        return 0;
    }
    if (strcmp(key, "value") == 0) {
        document->value = value;
        reading->members |= MEMBER_VALUE;
        return 0;
    }
    if (strcmp(key, "kind") == 0) {
        reading->members |= MEMBER_KIND;
        return read_kind(document, value, err);
    }
    if (strcmp(key, "error") == 0) {
        reading->members |= MEMBER_ERROR;
        return read_text(value, "error is not text", &document->error, &document->error_len, err);
    }
    if (strcmp(key, "findings") == 0) {
        reading->members |= MEMBER_FINDINGS;
        return read_findings(document, value, err);
    }
    return broken(err, "unknown member");
}

bool document_complete(const char *text, size_t len)
{
    return len && memchr(text, '\n', len);
}

/* The line without its end. The runner writes ASCII only, so anything else isn't from it. */
static int check_line(const char *text, size_t len, size_t *ret_len, struct hutch_error *err)
{
    const char *end = len ? memchr(text, '\n', len) : NULL;
    if (len > DOCUMENT_MAX_BYTES)
        return broken(err, "longer than 16 MiB");
    if (!end)
        return broken(err, "it is cut off");
    if (end + 1 != text + len)
        return broken(err, "more than one line");
    for (const char *c = text; c < end; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            return broken(err, "a byte that is not printable ASCII");
    *ret_len = (size_t)(end - text);
    return 0;
}

int document_parse(const char *text, size_t len, struct document *ret_document,
                   struct hutch_error *err)
{
    _cleanup_(reading_free) struct reading reading = {0};
    struct hutch_error cause = {0};
    struct json_slice whole;
    size_t line_len = 0;

    int rc = check_line(text, len, &line_len, err);
    if (rc < 0)
        return rc;
    rc = json_parse(text, line_len, DOCUMENT_MAX_DEPTH + 1, HUTCH_STAGE_RESULT, &whole, &cause);
    if (rc == 0 && whole.type != JSON_OBJECT)
        return broken(err, "it is not an object");
    if (rc == 0)
        rc = json_object_each(whole, HUTCH_STAGE_RESULT, read_member, &reading, &cause);
    if (rc == -ENOMEM)
        return error_oom(err, HUTCH_STAGE_RESULT);
    if (rc < 0)
        return cause.code == -EPROTO ? error_set(err, HUTCH_STAGE_RESULT, EPROTO, "%s", cause.message)
                                     : broken(err, cause.message);

    unsigned wanted = MEMBER_OK | (reading.document.ok ? MEMBER_VALUE : MEMBER_KIND | MEMBER_ERROR);
    if ((reading.members & ~(unsigned)(reading.document.ok ? 0 : MEMBER_FINDINGS)) != wanted)
        return broken(err, "its members are not those of a result");
    *ret_document = reading.document;
    reading.document = (struct document){0};
    return 0;
}
