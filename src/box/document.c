/*
 * document.c - see document.h.
 *
 * A value is most of its document and may be hostile in any way, so it is checked where it
 * stands and never taken apart: the runner's fixed text around it is compared byte for byte. Only
 * a failure is walked, and a failure is short.
 */
#include "box/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_FAILURE (2U << 20)
#define MAX_FINDINGS 200

static const char *const KINDS[] = {
    [DOCUMENT_INVALID] = "invalid", [DOCUMENT_EXCEPTION] = "exception", [DOCUMENT_VALUE] = "value",
    [DOCUMENT_IMPORT] = "import",   [DOCUMENT_ARGS] = "args",
};

static const char VALUE_HEAD[] = "{\"ok\":true,\"value\":";

enum member {
    MEMBER_OK = 1U << 0,
    MEMBER_KIND = 1U << 1,
    MEMBER_ERROR = 1U << 2,
    MEMBER_FINDINGS = 1U << 3,
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

static int read_member(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    struct reading *reading = ctx;
    struct document *document = &reading->document;

    if (strcmp(key, "ok") == 0) {
        reading->members |= MEMBER_OK;
        return value.type == JSON_BOOL && !json_is_true(value) ? 0 : broken(err, "ok and no value");
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

/* Errors of the JSON reader name the trouble; all of them are the document's fault. */
static int refused(int rc, const struct hutch_error *cause, struct hutch_error *err)
{
    if (rc == -ENOMEM)
        return error_oom(err, HUTCH_STAGE_RESULT);
    if (rc == -EPROTO)
        return error_set(err, HUTCH_STAGE_RESULT, EPROTO, "%s", cause->message);
    return broken(err, cause->message);
}

static int parse_value(const char *text, size_t len, struct document *ret_document,
                       struct hutch_error *err)
{
    struct hutch_error cause = {0};
    struct json_slice value;
    size_t head = sizeof(VALUE_HEAD) - 1;

    if (text[len - 1] != '}')
        return broken(err, "no end after the value");
    int rc = json_parse(text + head, len - head - 1, DOCUMENT_MAX_DEPTH, HUTCH_STAGE_RESULT, &value,
                        &cause);
    if (rc < 0)
        return refused(rc, &cause, err);
    *ret_document = (struct document){.ok = true, .value = value};
    return 0;
}

static int parse_failure(const char *text, size_t len, struct document *ret_document,
                         struct hutch_error *err)
{
    _cleanup_(reading_free) struct reading reading = {0};
    struct hutch_error cause = {0};
    struct json_slice whole;

    if (len > MAX_FAILURE)
        return broken(err, "a failure longer than 2 MiB");
    int rc = json_parse(text, len, 2, HUTCH_STAGE_RESULT, &whole, &cause);
    if (rc == 0 && whole.type != JSON_OBJECT)
        return broken(err, "it is not an object");
    if (rc == 0)
        rc = json_object_each(whole, HUTCH_STAGE_RESULT, read_member, &reading, &cause);
    if (rc < 0)
        return refused(rc, &cause, err);
    if ((reading.members & ~(unsigned)MEMBER_FINDINGS) != (MEMBER_OK | MEMBER_KIND | MEMBER_ERROR))
        return broken(err, "a member is missing");
    *ret_document = reading.document;
    reading.document = (struct document){0};
    return 0;
}

int document_parse(const char *text, size_t len, struct document *ret_document,
                   struct hutch_error *err)
{
    size_t line_len = 0, head = sizeof(VALUE_HEAD) - 1;
    int rc = check_line(text, len, &line_len, err);
    if (rc < 0)
        return rc;
    if (line_len > head && memcmp(text, VALUE_HEAD, head) == 0)
        return parse_value(text, line_len, ret_document, err);
    return parse_failure(text, line_len, ret_document, err);
}
