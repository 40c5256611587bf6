/*
 * receipt.c - the layers as they really were. A layer that nobody put on record is off: the
 * receipt can be too modest by a mistake of ours, never too proud.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "box/result.h"

void receipt_on(struct receipt *receipt, enum layer layer, const char *how)
{
    receipt->layers[layer].how = how;
    receipt->layers[layer].cause[0] = '\0';
}

void receipt_missing(struct receipt *receipt, enum layer layer, const char *how, const char *format,
                     ...)
{
    struct receipt_layer *entry = &receipt->layers[layer];
    entry->how = how;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(entry->cause, sizeof(entry->cause), format, args);
    va_end(args);
}

void receipt_note(struct receipt *receipt, const char *format, ...)
{
    if (receipt->notes_len == ARRAY_LEN(receipt->notes))
        return;
    char *note = receipt->notes[receipt->notes_len];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(note, sizeof(receipt->notes[0]), format, args);
    va_end(args);
    for (size_t i = 0; i < receipt->notes_len; i++) {
        if (strcmp(receipt->notes[i], note) == 0)
            return;
    }
    receipt->notes_len++;
}

static const char *how_of(const struct receipt_layer *layer)
{
    return layer->how ? layer->how : "off";
}

static const char *cause_of(const struct receipt_layer *layer)
{
    if (layer->cause[0])
        return layer->cause;
    return strcmp(how_of(layer), "off") == 0 ? "it was not set up" : NULL;
}

static void put_text(struct buf *buf, const char *key, const char *text)
{
    json_put_key(buf, key);
    (void)json_put_string(buf, text, strlen(text));
}

static void put_missing(struct buf *buf, const struct receipt *receipt)
{
    bool first = true;
    json_put_key(buf, "missing");
    buf_puts(buf, "[");
    for (int i = 0; i < LAYER_COUNT; i++) {
        const char *cause = cause_of(&receipt->layers[i]);
        if (!cause)
            continue;
        buf_puts(buf, first ? "{" : ",{");
        first = false;
        put_text(buf, "layer", layer_name((enum layer)i));
        put_text(buf, "cause", cause);
        buf_puts(buf, "}");
    }
    buf_puts(buf, "]");
}

static void put_notes(struct buf *buf, const struct receipt *receipt)
{
    json_put_key(buf, "notes");
    buf_puts(buf, "[");
    for (size_t i = 0; i < receipt->notes_len; i++) {
        if (i > 0)
            buf_puts(buf, ",");
        (void)json_put_string(buf, receipt->notes[i], strlen(receipt->notes[i]));
    }
    buf_puts(buf, "]");
}

void receipt_put_json(struct buf *buf, const struct receipt *receipt)
{
    buf_puts(buf, "{");
    put_text(buf, "backend", "namespace");
    json_put_key(buf, "layers");
    buf_puts(buf, "{");
    for (int i = 0; i < LAYER_COUNT; i++)
        put_text(buf, layer_name((enum layer)i), how_of(&receipt->layers[i]));
    buf_puts(buf, "}");
    put_missing(buf, receipt);
    put_notes(buf, receipt);
    buf_puts(buf, "}");
}
