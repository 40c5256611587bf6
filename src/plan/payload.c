/* payload.c - see payload.h. */
#include "plan/payload.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

static bool runs_python_code(const struct hutch_request *request)
{
    return request->language == LANGUAGE_PYTHON && request->code;
}

const struct runner_file *payload_files(const struct hutch_request *request, size_t *ret_len)
{
    if (!runs_python_code(request)) {
        *ret_len = 0;
        return NULL;
    }
    if (request->verb == HUTCH_VERB_EXEC) {
        *ret_len = RUNNER_PYTHON_EXEC_LEN;
        return RUNNER_PYTHON_EXEC;
    }
    *ret_len = RUNNER_PYTHON_RUN_LEN;
    return RUNNER_PYTHON_RUN;
}

const char *payload_start(const struct hutch_request *request)
{
    if (!runs_python_code(request))
        return NULL;
    return request->verb == HUTCH_VERB_EXEC ? RUNNER_PYTHON_EXEC_START : RUNNER_PYTHON_RUN_START;
}

static void put_imports(const struct text_list *imports, struct buf *buf)
{
    buf_puts(buf, "[");
    for (size_t i = 0; i < imports->len; i++) {
        buf_puts(buf, i ? "," : "");
        json_put_string(buf, imports->items[i], strlen(imports->items[i]));
    }
    buf_puts(buf, "]");
}

static void put_args(const struct hutch_request *request, bool validate_only, struct buf *buf)
{
    if (validate_only || !request->args_json)
        buf_puts(buf, "{}");
    else
        buf_put(buf, request->args_json, request->args_json_len);
}

int payload_request_json(const struct hutch_request *request, bool validate_only, struct buf *buf,
                         struct hutch_error *err)
{
    /* A check that is only asked for is never waived. */
    bool strict = validate_only || !request->unchecked;

    buf_puts(buf, validate_only ? "{\"mode\":\"validate\"" : "{\"mode\":\"exec\"");
    buf_puts(buf, strict ? ",\"check\":\"strict\"" : ",\"check\":\"none\"");
    buf_puts(buf, ",\"allowed_imports\":");
    put_imports(&request->allowed_imports, buf);
    buf_puts(buf, ",\"code\":");
    if (json_put_string(buf, request->code ? request->code : "", request->code_len))
        return error_request(err, "the code is not UTF-8 text");
    buf_puts(buf, ",\"args\":");
    put_args(request, validate_only, buf);
    buf_puts(buf, "}");
    if (buf->failed)
        return error_set(err, HUTCH_STAGE_PLAN, buf->failed, "no room for the runner's request");
    return 0;
}
