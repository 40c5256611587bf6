/*
 * result_json.c - the result as one line of JSON (docs/protocol.md has it member by member).
 *
 * Text of the box goes in as strings or base64, escaped here; the one exception is exec's value,
 * which is JSON text that the supervisor has checked and that must arrive digit for digit.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "box/result.h"

static void put_raw(struct buf *buf, const char *key, const char *raw)
{
    json_put_key(buf, key);
    buf_puts(buf, raw);
}

static void put_bool(struct buf *buf, const char *key, bool value)
{
    put_raw(buf, key, value ? "true" : "false");
}

static void put_u64(struct buf *buf, const char *key, uint64_t value)
{
    json_put_key(buf, key);
    buf_printf(buf, "%" PRIu64, value);
}

static void put_text(struct buf *buf, const char *key, const char *text)
{
    json_put_key(buf, key);
    if (text)
        (void)json_put_string(buf, text, strlen(text));
    else
        buf_puts(buf, "null");
}

/* Milliseconds with as many of three decimals as say something. */
static void put_ms(struct buf *buf, const char *key, uint64_t us)
{
    unsigned part = (unsigned)(us % 1000);
    json_put_key(buf, key);
    buf_printf(buf, "%" PRIu64, us / 1000);
    if (part == 0)
        return;
    int digits = 3;
    for (; part % 10 == 0; part /= 10)
        digits--;
    buf_printf(buf, ".%0*u", digits, part);
}

/* Bytes as text, and as base64 beside it where the text can't be faithful. */
static void put_bytes(struct buf *buf, const char *key, const char *key_b64, const char *data,
                      size_t len)
{
    json_put_key(buf, key);
    if (json_put_string(buf, data, len)) {
        json_put_key(buf, key_b64);
        json_put_base64(buf, data, len);
    }
}

/* ---- streams ---- */

static bool truncated(const struct hutch_result *result, const struct stream *stream)
{
    return stream->total > (stream->passed_on ? result->limits.max_output_bytes : stream->kept.len);
}

static void put_stream(struct buf *buf, const char *key, const char *key_b64,
                       const struct stream *stream)
{
    bool empty = stream->passed_on || stream->kept.len == 0;
    put_bytes(buf, key, key_b64, empty ? "" : stream->kept.data, empty ? 0 : stream->kept.len);
}

static void put_streams(struct buf *buf, const struct hutch_result *result)
{
    const struct stream *out = &result->out, *err = &result->err;
    put_stream(buf, "stdout", "stdout_b64", out);
    put_stream(buf, "stderr", "stderr_b64", err);
    put_bool(buf, "stdout_truncated", truncated(result, out));
    put_bool(buf, "stderr_truncated", truncated(result, err));
    put_u64(buf, "stdout_bytes", out->total);
    put_u64(buf, "stderr_bytes", err->total);
}

/* ---- files ---- */

static void put_file(struct buf *buf, const struct collected_file *file, bool omit_data)
{
    buf_puts(buf, "{");
    put_bytes(buf, "name", "name_b64", file->name, file->name_len);
    put_u64(buf, "size", file->size);
    if (!omit_data) {
        json_put_key(buf, "data");
        json_put_base64(buf, file->data, file->data_len);
    }
    put_bool(buf, "truncated", file->data_len < file->size);
    buf_puts(buf, "}");
}

static void put_files(struct buf *buf, const struct hutch_result *result)
{
    const struct collected *files = &result->files;
    json_put_key(buf, "files");
    buf_puts(buf, "[");
    for (size_t i = 0; i < files->files_len; i++) {
        if (i > 0)
            buf_puts(buf, ",");
        put_file(buf, &files->files[i], result->omit_file_data);
    }
    buf_puts(buf, "]");
    json_put_key(buf, "files_skipped");
    buf_puts(buf, "[");
    for (size_t i = 0; i < files->skipped_len; i++) {
        buf_puts(buf, i > 0 ? ",{" : "{");
        put_bytes(buf, "name", "name_b64", files->skipped[i].name, files->skipped[i].name_len);
        put_text(buf, "why", files->skipped[i].why);
        buf_puts(buf, "}");
    }
    buf_puts(buf, "]");
    put_bool(buf, "files_cut", files->cut);
}

/* ---- the rest ---- */

static void put_usage(struct buf *buf, const struct usage *usage)
{
    json_put_key(buf, "usage");
    buf_puts(buf, "{");
    put_ms(buf, "wall_ms", usage->wall_us);
    put_ms(buf, "cpu_ms", usage->cpu_us);
    put_u64(buf, "memory_peak_bytes", usage->memory_peak_bytes);
    put_u64(buf, "memory_limit_bytes", usage->memory_limit_bytes);
    put_u64(buf, "pids_peak", usage->pids_peak);
    put_u64(buf, "pids_denied", usage->pids_denied);
    put_text(buf, "source", usage->sampled ? "sampled" : "cgroup");
    buf_puts(buf, "}");
}

/* Where no box was built there is nothing to have used and nothing to vouch for. */
static void put_usage_and_receipt(struct buf *buf, const struct hutch_result *result)
{
    if (!result->has_receipt) {
        put_raw(buf, "usage", "null");
        put_raw(buf, "receipt", "null");
        return;
    }
    put_usage(buf, &result->usage);
    json_put_key(buf, "receipt");
    receipt_put_json(buf, &result->receipt);
}

static void put_duration(struct buf *buf, const struct hutch_result *result)
{
    put_ms(buf, "duration_ms", result->duration_us ? result->duration_us : result->usage.wall_us);
}

/* The one line stays one: a line end in checked JSON text can only be a blank between values. */
static void put_value(struct buf *buf, const char *value, size_t len)
{
    size_t start = buf->len;
    buf_put(buf, value, len);
    for (size_t i = start; i < buf->len; i++) {
        if (buf->data[i] == '\n' || buf->data[i] == '\r')
            buf->data[i] = ' ';
    }
}

static void put_exec(struct buf *buf, const struct hutch_result *result)
{
    bool ok = hutch_result_ok(result) != 0;
    put_bool(buf, "success", ok);
    json_put_key(buf, "output");
    if (ok)
        put_value(buf, result->value, result->value_len);
    else
        buf_puts(buf, "null");
    put_text(buf, "error", result->error);
    put_streams(buf, result);
    put_duration(buf, result);
    put_text(buf, "reason", reason_name(result->reason));
    put_usage_and_receipt(buf, result);
}

static void put_int_if(struct buf *buf, const char *key, bool known, int value)
{
    json_put_key(buf, key);
    if (known)
        buf_printf(buf, "%d", value);
    else
        buf_puts(buf, "null");
}

static void put_run(struct buf *buf, const struct hutch_result *result)
{
    put_bool(buf, "ok", hutch_result_ok(result) != 0);
    put_text(buf, "reason", reason_name(result->reason));
    put_int_if(buf, "exit_code", result->reason == REASON_EXIT, result->exit_code);
    put_int_if(buf, "signal", result->reason == REASON_SIGNAL, result->signal);
    put_bool(buf, "timed_out", result->reason == REASON_TIMEOUT);
    put_text(buf, "error", result->error);
    put_streams(buf, result);
    put_files(buf, result);
    put_duration(buf, result);
    put_usage_and_receipt(buf, result);
}

void result_put_json(struct buf *buf, const struct hutch_result *result)
{
    buf_puts(buf, "{");
    if (result->verb == HUTCH_VERB_EXEC)
        put_exec(buf, result);
    else
        put_run(buf, result);
    buf_puts(buf, "}");
}
