#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* vsnprintf cuts at a byte. If the text was cut, steps back over a started UTF-8 character. */
static void cut_at_character(char *message, size_t len)
{
    size_t lead = len;
    while (lead > 0 && len - lead < 3 && ((unsigned char)message[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    unsigned char byte = (unsigned char)message[lead - 1];
    size_t want = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (len - (lead - 1) < want)
        message[lead - 1] = '\0';
}

__attribute__((format(printf, 4, 0))) static void fill(struct hutch_error *err,
                                                       enum hutch_stage stage, int code,
                                                       const char *format, va_list args)
{
    err->code = code;
    err->stage = (int)stage;
    int len = vsnprintf(err->message, sizeof(err->message), format, args);
    if (len < 0)
        err->message[0] = '\0';
    else if ((size_t)len >= sizeof(err->message))
        cut_at_character(err->message, sizeof(err->message) - 1);
}

static int negative(int code)
{
    if (code == 0)
        return -EIO; /* a caller's slip must not turn a failure into a success */
    return code > 0 ? -code : code;
}

int error_set(struct hutch_error *err, enum hutch_stage stage, int code, const char *format, ...)
{
    code = negative(code);
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, stage, code, format, args);
        va_end(args);
    }
    return code;
}

/* Not strerror(): its text follows the caller's locale. */
const char *error_text(int code)
{
    const char *text = strerrordesc_np(code > 0 ? code : -code);
    return text ? text : "unknown error";
}

int error_errno(struct hutch_error *err, enum hutch_stage stage, int code, const char *format, ...)
{
    code = negative(code);
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    fill(err, stage, code, format, args);
    va_end(args);
    size_t len = strlen(err->message);
    if (len < sizeof(err->message) - 1)
        (void)snprintf(err->message + len, sizeof(err->message) - len, ": %s", error_text(code));
    return code;
}

int error_oom(struct hutch_error *err, enum hutch_stage stage)
{
    return error_set(err, stage, ENOMEM, "out of memory");
}
