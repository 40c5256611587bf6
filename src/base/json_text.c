/*
 * json_text.c - the text side of JSON: strings in and out, UTF-8, base64.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"

static const char REPLACEMENT[] = "\xef\xbf\xbd"; /* U+FFFD */

/* ---- UTF-8 ---- */

struct utf8_step {
    size_t len; /* bytes of the character, or of the broken piece; at least 1 */
    bool valid;
    bool started; /* not valid only because the text ends too early */
};

/* Unicode's table of well-formed sequences: the second byte's range depends on the first. */
static bool utf8_lead(unsigned char lead, size_t *ret_len, unsigned char *ret_low,
                      unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
        *ret_len = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        *ret_len = 3;
        if (lead == 0xe0)
            *ret_low = 0xa0;
        if (lead == 0xed)
            *ret_high = 0x9f; /* surrogates */
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        *ret_len = 4;
        if (lead == 0xf0)
            *ret_low = 0x90;
        if (lead == 0xf4)
            *ret_high = 0x8f;
    } else {
        return false;
    }
    return true;
}

static struct utf8_step utf8_next(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80)
        return (struct utf8_step){.len = 1, .valid = true};
    size_t want;
    unsigned char low, high;
    if (!utf8_lead(bytes[0], &want, &low, &high))
        return (struct utf8_step){.len = 1};
    for (size_t i = 1; i < want; i++) {
        if (i >= len)
            return (struct utf8_step){.len = i, .started = true};
        if (bytes[i] < low || bytes[i] > high)
            return (struct utf8_step){.len = i};
        low = 0x80;
        high = 0xbf;
    }
    return (struct utf8_step){.len = want, .valid = true};
}

bool utf8_valid(const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        struct utf8_step step = utf8_next(text + at, len - at);
        if (!step.valid)
            return false;
        at += step.len;
    }
    return true;
}

size_t utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (size_t back = 1; back <= 3 && back <= max; back++) {
        size_t at = max - back;
        if (((unsigned char)text[at] & 0xc0) == 0x80)
            continue;
        struct utf8_step step = utf8_next(text + at, len - at);
        return (step.valid || step.started) && step.len > back ? at : max;
    }
    return max;
}

/* ---- strings in ---- */

static unsigned hex4(const char *text)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
        value = value << 4 | digit;
    }
    return value;
}

static size_t utf8_encode(unsigned code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* `at` is behind the 'u', `end` behind the string's last byte; returns how much was read. */
static size_t unicode_escape(const char *at, const char *end, char *to, size_t *ret_len,
                             bool *ret_lone)
{
    unsigned code = hex4(at);
    size_t used = 4;
    if (code >= 0xd800 && code <= 0xdfff) {
        bool pair = code < 0xdc00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u';
        unsigned low = pair ? hex4(at + 6) : 0;
        if (low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            used = 10;
        } else {
            code = 0xfffd;
            *ret_lone = true;
        }
    }
    *ret_len = utf8_encode(code, to);
    return used;
}

static char simple_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c; /* '"', '\\', '/' */
    }
}

static int decode(struct json_slice value, char **ret_text, size_t *ret_len, bool *ret_lone)
{
    /* No escape decodes to more bytes than it has, and the quotes make room for the NUL. */
    char *text = malloc(value.len);
    if (!text)
        return -ENOMEM;
    size_t len = 0;
    const char *end = value.text + value.len - 1;
    for (const char *at = value.text + 1; at < end;) {
        if (*at != '\\') {
            text[len++] = *at++;
        } else if (at[1] == 'u') {
            size_t encoded;
            at += 2 + unicode_escape(at + 2, end, text + len, &encoded, ret_lone);
            len += encoded;
        } else {
            text[len++] = simple_escape(at[1]);
            at += 2;
        }
    }
    text[len] = '\0';
    *ret_text = text;
    *ret_len = len;
    return 0;
}

int json_string(struct json_slice value, char **ret_text, size_t *ret_len)
{
    bool lone = false;
    return decode(value, ret_text, ret_len, &lone);
}

int json_string_exact(struct json_slice value, char **ret_text, size_t *ret_len)
{
    bool lone = false;
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = decode(value, &text, &len, &lone);
    if (r < 0 || lone)
        return r < 0 ? r : -EILSEQ;
    *ret_text = take_ptr(text);
    *ret_len = len;
    return 0;
}

/* ---- base64 ---- */

static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
    const char *at = c ? strchr(BASE64, c) : NULL;
    return at ? (int)(at - BASE64) : -1;
}

/* Four digits to up to three bytes; how many, or -EINVAL. Bits behind the last byte must be 0. */
static int base64_group(const char *in, bool last, unsigned char out[3])
{
    int pad = !last || in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
    unsigned bits = 0;
    for (int i = 0; i < 4; i++) {
        int digit = i >= 4 - pad ? 0 : base64_digit(in[i]);
        if (digit < 0)
            return -EINVAL;
        bits = bits << 6 | (unsigned)digit;
    }
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 8);
    out[2] = (unsigned char)bits;
    bool rest = (pad > 0 && out[2] != 0) || (pad > 1 && out[1] != 0);
    return rest ? -EINVAL : 3 - pad;
}

int json_base64(struct json_slice value, void **ret_data, size_t *ret_len)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = json_string(value, &text, &len); /* a writer may escape '/' */
    if (r < 0)
        return r;
    if (len % 4 != 0)
        return -EINVAL;
    size_t used = 0; /* decoded in place: the output never catches up with the input */
    for (size_t i = 0; i < len; i += 4) {
        unsigned char out[3];
        r = base64_group(text + i, i + 4 == len, out);
        if (r < 0)
            return r;
        memcpy(text + used, out, (size_t)r);
        used += (size_t)r;
    }
    text[used] = '\0';
    *ret_data = take_ptr(text);
    *ret_len = used;
    return 0;
}

/* ---- writing ---- */

/* DEL and U+0080..U+009F too: a terminal that shows the JSON obeys some of them. */
static const char *escape_of(const char *text, char ret_text[8])
{
    unsigned char c = (unsigned char)text[0];
    if (c == 0xc2 && (unsigned char)text[1] < 0xa0)
        c = (unsigned char)text[1];
    else if (c >= 0x80)
        return NULL;
    static const char HEX[] = "0123456789abcdef";
    static const char SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof(SHORT); i += 2) {
        if ((unsigned char)SHORT[i] == c) {
            ret_text[0] = '\\';
            ret_text[1] = SHORT[i + 1];
            ret_text[2] = '\0';
            return ret_text;
        }
    }
    if (c >= 0x20 && c < 0x7f)
        return NULL;
    memcpy(ret_text, "\\u0000", 7);
    ret_text[4] = HEX[c >> 4];
    ret_text[5] = HEX[c & 15];
    return ret_text;
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

bool json_put_string(struct buf *buf, const char *text, size_t len)
{
    bool replaced = false;
    size_t plain = 0, at = 0; /* plain: start of what is copied as it is */
    buf_puts(buf, "\"");
    while (at < len) {
        if (is_plain(text[at])) {
            at++;
            continue;
        }
        char escape[8];
        struct utf8_step step = utf8_next(text + at, len - at);
        const char *instead = step.valid ? escape_of(text + at, escape) : REPLACEMENT;
        if (instead) {
            buf_put(buf, text + plain, at - plain);
            buf_puts(buf, instead);
            plain = at + step.len;
            replaced = replaced || !step.valid;
        }
        at += step.len;
    }
    buf_put(buf, text + plain, at - plain);
    buf_puts(buf, "\"");
    return replaced;
}

void json_put_key(struct buf *buf, const char *key)
{
    char last = buf->len ? buf->data[buf->len - 1] : '{';
    if (last != '{' && last != '[')
        buf_puts(buf, ",");
    (void)json_put_string(buf, key, strlen(key));
    buf_puts(buf, ":");
}

void json_put_base64(struct buf *buf, const void *data, size_t len)
{
    const unsigned char *in = data;
    char *out = len > SIZE_MAX / 4 ? NULL : buf_reserve(buf, (len + 2) / 3 * 4 + 2);
    if (!out) {
        if (!buf->failed)
            buf->failed = -E2BIG;
        return;
    }
    char *start = out;
    *out++ = '"';
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned group = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
                         (left > 2 ? in[i + 2] : 0);
        *out++ = BASE64[group >> 18];
        *out++ = BASE64[group >> 12 & 63];
        *out++ = left > 1 ? BASE64[group >> 6 & 63] : '=';
        *out++ = left > 2 ? BASE64[group & 63] : '=';
    }
    *out++ = '"';
    buf->len += (size_t)(out - start);
}
