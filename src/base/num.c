/*
 * num.c - strict numbers. Every failure says which field, what was given, and what would do.
 */
#include "base/num.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* So much of a caller's text goes into an error. */
#define SHOWN 60

enum { RANGE_TEXT = 32 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text)
{
    size_t n = 0;
    while (is_digit(text[n]))
        n++;
    return n;
}

/* Saturates at UINT64_MAX, which no range here reaches. */
static uint64_t value_of(const char *text, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return UINT64_MAX;
    }
    return value;
}

struct range {
    char min[RANGE_TEXT], max[RANGE_TEXT];
};

static int not_a_number(const char *field, const char *text, const char *kind,
                        const struct range *range, struct hutch_error *err)
{
    return error_request(err, "%s: '%.*s' is not %s; give %s to %s", field, SHOWN, text, kind,
                         range->min, range->max);
}

static int out_of_range(const char *field, const char *text, const struct range *range,
                        struct hutch_error *err)
{
    return error_request(err, "%s: '%.*s' is out of range; give %s to %s", field, SHOWN, text,
                         range->min, range->max);
}

static struct range count_range(uint64_t min, uint64_t max)
{
    struct range range;
    (void)snprintf(range.min, sizeof(range.min), "%" PRIu64, min);
    (void)snprintf(range.max, sizeof(range.max), "%" PRIu64, max);
    return range;
}

int num_u64(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value,
            struct hutch_error *err)
{
    struct range range = count_range(min, max);
    size_t len = digits(text);
    if (len == 0 || text[len] != '\0')
        return not_a_number(field, text, "a whole number", &range, err);
    uint64_t value = value_of(text, len);
    if (value < min || value > max)
        return out_of_range(field, text, &range, err);
    *ret_value = value;
    return 0;
}

/* Powers of 1024 by suffix; -1 for another character. */
static int suffix_shift(char suffix)
{
    switch (suffix) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    case 't':
    case 'T':
        return 40;
    default:
        return -1;
    }
}

static void bytes_text(uint64_t bytes, char ret_text[RANGE_TEXT])
{
    static const char SUFFIX[] = {'T', 'G', 'M', 'K'};
    for (size_t i = 0; i < sizeof(SUFFIX); i++) {
        int shift = suffix_shift(SUFFIX[i]);
        if (bytes != 0 && bytes % ((uint64_t)1 << shift) == 0) {
            (void)snprintf(ret_text, RANGE_TEXT, "%" PRIu64 "%c", bytes >> shift, SUFFIX[i]);
            return;
        }
    }
    (void)snprintf(ret_text, RANGE_TEXT, "%" PRIu64, bytes);
}

static struct range bytes_range(uint64_t min, uint64_t max)
{
    struct range range;
    bytes_text(min, range.min);
    bytes_text(max, range.max);
    return range;
}

int num_bytes(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes,
              struct hutch_error *err)
{
    struct range range = bytes_range(min, max);
    size_t len = digits(text);
    int shift = 0;
    if (len > 0 && text[len] != '\0' && text[len + 1] == '\0')
        shift = suffix_shift(text[len]);
    if (len == 0 || shift < 0 || (shift == 0 && text[len] != '\0'))
        return not_a_number(field, text, "a size such as 64M (bytes, or K, M, G, T)", &range, err);
    uint64_t value = value_of(text, len);
    if (value > UINT64_MAX >> shift)
        value = UINT64_MAX;
    else
        value <<= shift;
    if (value < min || value > max)
        return out_of_range(field, text, &range, err);
    *ret_bytes = value;
    return 0;
}

/* A decimal in its parts, as offsets into its text. */
struct decimal {
    const char *whole, *fraction;
    size_t whole_len, fraction_len;
    int64_t exponent; /* saturates far beyond what any text can balance */
};

static bool decimal_exponent(const char *text, int64_t *ret_exponent, size_t *ret_len)
{
    size_t at = 1;
    bool minus = text[at] == '-';
    if (text[at] == '-' || text[at] == '+')
        at++;
    size_t len = digits(text + at);
    if (len == 0)
        return false;
    const int64_t most = INT64_C(1) << 60;
    uint64_t value = value_of(text + at, len);
    int64_t exponent = value > (uint64_t)most ? most : (int64_t)value;
    *ret_exponent = minus ? -exponent : exponent;
    *ret_len = at + len;
    return true;
}

static bool decimal_split(const char *text, struct decimal *ret_decimal)
{
    struct decimal d = {.whole = text, .whole_len = digits(text)};
    const char *at = text + d.whole_len;
    if (*at == '.') {
        d.fraction = at + 1;
        d.fraction_len = digits(d.fraction);
        if (d.fraction_len == 0)
            return false;
        at = d.fraction + d.fraction_len;
    }
    if (d.whole_len + d.fraction_len == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        size_t len;
        if (!decimal_exponent(at, &d.exponent, &len))
            return false;
        at += len;
    }
    *ret_decimal = d;
    return *at == '\0';
}

static char decimal_digit(const struct decimal *d, size_t index)
{
    return index < d->whole_len ? d->whole[index] : d->fraction[index - d->whole_len];
}

/* The value in thousandths: rounded down, and whether something was left over. */
static uint64_t decimal_milli(const struct decimal *d, bool *ret_rest)
{
    size_t len = d->whole_len + d->fraction_len, first = 0;
    while (first < len && decimal_digit(d, first) == '0')
        first++;
    *ret_rest = false;
    if (first == len)
        return 0;
    /* How many digits, from the first that isn't 0, stand before the point of value * 1000. */
    int64_t before = (int64_t)d->whole_len - (int64_t)first + d->exponent + 3;
    if (before > 19)
        return UINT64_MAX;
    uint64_t value = 0;
    for (int64_t i = 0; i < before; i++) {
        size_t index = first + (size_t)i;
        value = value * 10 + (index < len ? (uint64_t)(decimal_digit(d, index) - '0') : 0);
    }
    for (size_t i = before > 0 ? first + (size_t)before : first; i < len; i++)
        *ret_rest = *ret_rest || decimal_digit(d, i) != '0';
    return value;
}

static void milli_text(uint64_t milli, char ret_text[RANGE_TEXT])
{
    int len = snprintf(ret_text, RANGE_TEXT, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
    while (len > 0 && ret_text[len - 1] == '0')
        ret_text[--len] = '\0';
    if (len > 0 && ret_text[len - 1] == '.')
        ret_text[len - 1] = '\0';
}

static struct range milli_range(uint64_t min, uint64_t max)
{
    struct range range;
    milli_text(min, range.min);
    milli_text(max, range.max);
    return range;
}

int num_milli(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret_milli,
              struct hutch_error *err)
{
    struct range range = milli_range(min, max);
    struct decimal decimal;
    if (!decimal_split(text, &decimal))
        return not_a_number(field, text, "a number", &range, err);
    bool rest;
    uint64_t value = decimal_milli(&decimal, &rest);
    /* The range is that of the text, not of what rounding makes of it. */
    if (value < min || value > max || (rest && value == max))
        return out_of_range(field, text, &range, err);
    *ret_milli = value + rest;
    return 0;
}
