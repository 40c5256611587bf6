/* The result document: the one thing that code in a box can write and the host reads as JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "box/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct document *document, const char *text, size_t size)
{
    struct json_slice again;
    struct hutch_error err;

    if (!document->ok) {
        if (!document->error || document->error[document->error_len])
            abort();
        return;
    }
    if (document->value.text < text || document->value.len > size ||
        document->value.text + document->value.len > text + size)
        abort();
    /* What is spliced into the host's answer is one JSON value, whatever stood around it. */
    if (json_parse(document->value.text, document->value.len, DOCUMENT_MAX_DEPTH,
                   HUTCH_STAGE_RESULT, &again, &err) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hutch_error err;
    struct document document;
    /* A copy of its own, so that a read past the end is seen. */
    char *text = malloc(size ? size : 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (document_parse(text, size, &document, &err) == 0) {
        if (!document_complete(text, size))
            abort();
        check(&document, text, size);
        document_free(&document);
    }
    free(text);
    return 0;
}
