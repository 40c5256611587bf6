/*
 * result.c - the result as an object: made by the supervisor, finished once, then only read
 * through hutch.h.
 */
#include "box/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

static const char *const REASONS[REASON_COUNT] = {
    [REASON_EXIT] = "exit",         [REASON_SIGNAL] = "signal",
    [REASON_TIMEOUT] = "timeout",   [REASON_CPU_TIME] = "cpu_time",
    [REASON_MEMORY] = "memory",     [REASON_OUTPUT] = "output",
    [REASON_SYSCALL] = "syscall",   [REASON_NO_RESULT] = "no_result",
    [REASON_PROTOCOL] = "protocol", [REASON_INVALID] = "invalid",
    [REASON_REQUEST] = "request",   [REASON_SETUP] = "setup",
};

const char *reason_name(enum reason reason)
{
    return (unsigned)reason < REASON_COUNT ? REASONS[reason] : "setup";
}

struct hutch_result *result_new(const struct hutch_request *request)
{
    struct hutch_result *result = calloc(1, sizeof(*result));
    if (!result)
        return NULL;
    if (request) {
        result->verb = request->verb;
        result->limits = request->limits;
        result->omit_file_data = request->omit_file_data;
        result->usage.memory_limit_bytes = request->limits.memory_bytes;
    }
    return result;
}

void hutch_result_free(struct hutch_result *result)
{
    if (!result)
        return;
    buf_free(&result->out.kept);
    buf_free(&result->err.kept);
    collected_free(&result->files);
    free(result->error);
    free(result->value);
    free(result->json);
    free(result);
}

/* ---- what failed, in words ---- */

__attribute__((format(printf, 2, 3))) static void set_error(struct hutch_result *result,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    free(result->error);
    result->error = len < 0 ? NULL : text;
}

void result_fail(struct hutch_result *result, enum reason reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    result->reason = reason;
    free(result->error);
    result->error = len < 0 ? NULL : text;
}

/* 5.00s as everyone expects it; the third decimal only where it says something. */
static void describe_time(struct hutch_result *result, const char *what, uint64_t ms)
{
    unsigned long long s = ms / 1000, part = ms % 1000;
    if (part % 10 == 0)
        set_error(result, "%s after %llu.%02llus", what, s, part / 10);
    else
        set_error(result, "%s after %llu.%03llus", what, s, part);
}

static void describe_memory(struct hutch_result *result)
{
    unsigned long long bytes = result->usage.memory_limit_bytes;
    if (bytes % (1ULL << 20) == 0)
        set_error(result, "memory limit of %llu MiB reached", bytes >> 20);
    else
        set_error(result, "memory limit of %llu bytes reached", bytes);
}

static void describe_signal(struct hutch_result *result)
{
    const char *name = sigabbrev_np(result->signal);
    if (name)
        set_error(result, "killed by signal %d (SIG%s)", result->signal, name);
    else
        set_error(result, "killed by signal %d", result->signal);
}

/* A program that ends with a status of its own has nothing to explain; a function that returned
 * no value has. */
static void describe_exit(struct hutch_result *result)
{
    if (result->verb == HUTCH_VERB_EXEC && !result->value)
        set_error(result, "the code failed");
}

void result_describe(struct hutch_result *result)
{
    if (result->error)
        return;
    switch (result->reason) {
    case REASON_EXIT:
        describe_exit(result);
        break;
    case REASON_SIGNAL:
        describe_signal(result);
        break;
    case REASON_TIMEOUT:
        describe_time(result, "sandbox execution timed out", result->limits.timeout_ms);
        break;
    case REASON_CPU_TIME:
        describe_time(result, "CPU time limit reached", result->limits.cpu_time_ms);
        break;
    case REASON_MEMORY:
        describe_memory(result);
        break;
    case REASON_OUTPUT:
        set_error(result, "output limit of %llu bytes a stream reached",
                  (unsigned long long)result->limits.max_output_bytes);
        break;
    case REASON_SYSCALL:
        set_error(result, "killed by the system call filter (SIGSYS)");
        break;
    case REASON_NO_RESULT:
        set_error(result, "the code ended without a result");
        break;
    case REASON_PROTOCOL:
        set_error(result, "the code left a malformed result");
        break;
    case REASON_INVALID:
        set_error(result, "the static check refused the code");
        break;
    case REASON_REQUEST:
        set_error(result, "bad request");
        break;
    case REASON_SETUP:
    case REASON_COUNT:
        set_error(result, "the box could not be built");
        break;
    }
}

/* ---- the end ---- */

/* Ends a stream with a NUL that doesn't count. When it was cut, its last character may be
 * incomplete; which bytes followed isn't known, so one that continues any character stands in for
 * them (behind e0 and f0 not every one does). */
static void end_stream(struct stream *stream)
{
    struct buf *kept = &stream->kept;
    if (!kept->data)
        return;
    char *end = kept->data + kept->len; /* a buf always has this one byte more */
    if (kept->len > 0 && stream->total > kept->len) {
        unsigned char last = (unsigned char)end[-1];
        *end = last == 0xe0 || last == 0xf0 ? (char)0xa0 : (char)0x80;
        kept->len = utf8_cut(kept->data, kept->len + 1, kept->len);
    }
    kept->data[kept->len] = '\0';
}

static int run_status(const struct hutch_result *result)
{
    switch (result->reason) {
    case REASON_EXIT:
        return result->exit_code & 0xff;
    case REASON_SIGNAL:
        return 128 + result->signal;
    case REASON_TIMEOUT:
    case REASON_CPU_TIME:
        return 124;
    case REASON_MEMORY:
    case REASON_OUTPUT:
        return 137;
    case REASON_SYSCALL:
        return 159;
    case REASON_REQUEST:
        return 2;
    case REASON_INVALID:
        return 1;
    default:
        if (result->exec_error == 0)
            return 125;
        return result->exec_error == ENOENT || result->exec_error == ENOTDIR ? 127 : 126;
    }
}

static int exec_status(const struct hutch_result *result)
{
    if (hutch_result_ok(result))
        return 0;
    if (result->reason == REASON_REQUEST)
        return 2;
    return result->reason == REASON_SETUP ? 125 : 1;
}

int result_finish(struct hutch_result *result, struct hutch_error *err)
{
    end_stream(&result->out);
    end_stream(&result->err);
    result_describe(result);
    result->exit_status =
        result->verb == HUTCH_VERB_EXEC ? exec_status(result) : run_status(result);
    _cleanup_buf_ struct buf buf = BUF(0);
    result_put_json(&buf, result);
    int r = buf.failed;
    char *json = buf_take(&buf, &result->json_len);
    if (!json)
        return error_errno(err, HUTCH_STAGE_RESULT, r ? r : -ENOMEM, "write the result as JSON");
    free(result->json);
    result->json = json;
    return 0;
}

/* ---- hutch.h ---- */

const char *hutch_result_json(const struct hutch_result *result, size_t *ret_len)
{
    if (ret_len)
        *ret_len = result->json_len;
    return result->json;
}

const char *hutch_result_reason(const struct hutch_result *result)
{
    return reason_name(result->reason);
}

int hutch_result_exit_status(const struct hutch_result *result)
{
    return result->exit_status;
}

int hutch_result_ok(const struct hutch_result *result)
{
    if (result->reason != REASON_EXIT)
        return 0;
    return result->verb == HUTCH_VERB_EXEC ? result->value != NULL : result->exit_code == 0;
}

const void *hutch_result_stream(const struct hutch_result *result, int stream, size_t *ret_len)
{
    if (stream != 1 && stream != 2)
        return NULL;
    const struct buf *kept = stream == 1 ? &result->out.kept : &result->err.kept;
    if (ret_len)
        *ret_len = kept->len;
    return kept->data ? kept->data : "";
}

const char *hutch_result_output(const struct hutch_result *result, size_t *ret_len)
{
    if (ret_len && result->value)
        *ret_len = result->value_len;
    return result->value;
}

const char *hutch_result_error(const struct hutch_result *result)
{
    return result->error;
}

size_t hutch_result_file_count(const struct hutch_result *result)
{
    return result->files.files_len;
}

int hutch_result_file(const struct hutch_result *result, size_t index, const char **ret_name,
                      const void **ret_data, size_t *ret_len)
{
    if (index >= result->files.files_len)
        return -EINVAL;
    const struct collected_file *file = &result->files.files[index];
    if (ret_name)
        *ret_name = file->name;
    if (ret_data)
        *ret_data = file->data;
    if (ret_len)
        *ret_len = file->data_len;
    return 0;
}
