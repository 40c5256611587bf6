#include <string.h>

#include "base/json.h"
#include "cli/cli.h"

static int set_json(void *ctx, const char *value, struct hutch_error *err)
{
    (void)value, (void)err;
    *(bool *)ctx = true;
    return 0;
}

static const struct cli_option OPTIONS[] = {
    {"json", 0, NULL, "as JSON", set_json},
};
static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch version [--json]\n",
    .options = OPTIONS,
    .options_len = ARRAY_LEN(OPTIONS),
};

int cli_version(int argc, char **argv)
{
    bool json = false;
    struct cli_parsed parsed;
    struct hutch_error err;
    if (cli_parse(&SYNTAX, &json, argc, argv, &parsed, &err) < 0)
        return cli_failed(&err);
    if (parsed.help)
        return cli_show_help(&SYNTAX);
    _cleanup_buf_ struct buf text = BUF(0);
    if (json) {
        buf_puts(&text, "{");
        json_put_key(&text, "version");
        (void)json_put_string(&text, hutch_version(), strlen(hutch_version()));
        buf_puts(&text, "}");
    } else {
        buf_printf(&text, "hutch %s", hutch_version());
    }
    return cli_print_line(text.data, text.len);
}
