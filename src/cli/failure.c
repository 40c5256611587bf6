/*
 * failure.c - a result for what failed before the library could make one. Its members are those
 * of every result (docs/protocol.md), so that a reader needs no second form.
 */
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"

static const char STREAMS[] = "\"stdout\":\"\",\"stderr\":\"\",\"stdout_truncated\":false,"
                              "\"stderr_truncated\":false,\"stdout_bytes\":0,\"stderr_bytes\":0";

static void put_error(struct buf *buf, const char *error)
{
    json_put_key(buf, "error");
    (void)json_put_string(buf, error, strlen(error));
}

static void put_exec(struct buf *buf, const char *reason, const char *error)
{
    buf_puts(buf, "{\"success\":false,\"output\":null");
    put_error(buf, error);
    buf_printf(buf, ",%s,\"duration_ms\":0,\"reason\":\"%s\",\"usage\":null,\"receipt\":null}",
               STREAMS, reason);
}

static void put_run(struct buf *buf, const char *reason, const char *error)
{
    buf_printf(buf,
               "{\"ok\":false,\"reason\":\"%s\",\"exit_code\":null,\"signal\":null,"
               "\"timed_out\":false",
               reason);
    put_error(buf, error);
    buf_printf(buf,
               ",%s,\"files\":[],\"files_skipped\":[],\"files_cut\":false,"
               "\"duration_ms\":0,\"usage\":null,\"receipt\":null}",
               STREAMS);
}

int cli_failed_json(enum hutch_verb verb, const struct hutch_error *err)
{
    const char *reason = err->stage == HUTCH_STAGE_REQUEST ? "request" : "setup";
    _cleanup_buf_ struct buf text = BUF(0);
    if (verb == HUTCH_VERB_EXEC)
        put_exec(&text, reason, err->message);
    else
        put_run(&text, reason, err->message);
    int printed = cli_print_line(text.failed ? NULL : text.data, text.len);
    int status = cli_failed(err);
    return printed == CLI_OK ? status : printed;
}
