#include "base/json.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct hutch_error err;

static int parse(const char *text, struct json_slice *ret)
{
    return json_parse(text, strlen(text), JSON_MAX_DEPTH, HUTCH_STAGE_REQUEST, ret, &err);
}

#define SLICE_IS(slice, want)                                                                      \
    cr_assert((slice).len == strlen(want) && memcmp((slice).text, want, (slice).len) == 0,         \
              "'%.*s' is not '%s'", (int)(slice).len, (slice).text, want)

Test(json, hands_out_the_value_without_blanks)
{
    struct json_slice v;
    static const struct {
        const char *text, *value;
        enum json_type type;
    } CASES[] = {
        {" \t\r\n{ \"a\" : 1 } \n", "{ \"a\" : 1 }", JSON_OBJECT},
        {"[1 ,2]", "[1 ,2]", JSON_ARRAY},
        {" 12 ", "12", JSON_NUMBER},
        {"-0.5E+3", "-0.5E+3", JSON_NUMBER},
        {"\"x\"", "\"x\"", JSON_STRING},
        {"true", "true", JSON_BOOL},
        {"false", "false", JSON_BOOL},
        {"null\n", "null", JSON_NULL},
        {"18446744073709551616000000000000000000", "18446744073709551616000000000000000000",
         JSON_NUMBER},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        cr_assert_eq(parse(CASES[i].text, &v), 0, "%s: %s", CASES[i].text, err.message);
        SLICE_IS(v, CASES[i].value);
        cr_assert_eq(v.type, CASES[i].type);
    }
}

Test(json, refuses_what_is_not_json)
{
    static const char *const BAD[] = {
        "",
        "  ",
        "1 2",
        "{} x",
        "{}{}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "- 1",
        "1e",
        "0x1",
        "NaN",
        "nan",
        "Infinity",
        "tru",
        "True",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "[1",
        "]",
        "{\"a\"",
        "{\"a\":}",
        "/**/1",
        "1//x",
        "\"a\nb\"",
        "\v1",
        "1\f",
        "\xef\xbb\xbf"
        "1",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xff\"",
        "\"\xc3",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "[1 2]",
        "\"\\",
    };
    struct json_slice v = {.text = "untouched"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        cr_assert_eq(parse(BAD[i], &v), -EINVAL, "case %zu: %s", i, BAD[i]);
        cr_assert(strstr(err.message, "not JSON"), "%s", err.message);
        cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    }
    cr_assert_str_eq(v.text, "untouched");
}

Test(json, nul_is_not_json)
{
    struct json_slice v;
    cr_assert_eq(json_parse("1\0", 2, 8, HUTCH_STAGE_RESULT, &v, &err), -EINVAL);
    cr_assert_eq(err.stage, HUTCH_STAGE_RESULT);
    cr_assert_eq(json_parse("\"a\0b\"", 5, 8, HUTCH_STAGE_RESULT, &v, &err), -EINVAL);
    cr_assert(strstr(err.message, "at byte 2"), "%s", err.message);
}

Test(json, error_gives_the_offset)
{
    struct json_slice v;
    cr_assert_eq(parse("{\"a\":nope}", &v), -EINVAL);
    cr_assert(strstr(err.message, "at byte 6"), "%s", err.message);
    cr_assert_eq(parse("[1", &v), -EINVAL);
    cr_assert(strstr(err.message, "at byte 2"), "%s", err.message);
}

static char *nested(size_t depth, char open, char close)
{
    char *text = malloc(2 * depth + 1);
    memset(text, open, depth);
    memset(text + depth, close, depth);
    text[2 * depth] = '\0';
    return text;
}

Test(json, depth_is_bounded)
{
    struct json_slice v;
    _cleanup_free_ char *most = nested(JSON_MAX_DEPTH, '[', ']');
    _cleanup_free_ char *more = nested(JSON_MAX_DEPTH + 1, '[', ']');
    _cleanup_free_ char *hostile = nested(1000000, '[', ']');
    cr_assert_eq(parse(most, &v), 0);
    cr_assert_eq(parse(more, &v), -E2BIG);
    cr_assert_eq(parse(hostile, &v), -E2BIG);
    cr_assert(strstr(err.message, "too deep"));
    cr_assert_eq(json_parse("1", 1, 0, HUTCH_STAGE_REQUEST, &v, &err), 0);
    cr_assert_eq(json_parse("[]", 2, 0, HUTCH_STAGE_REQUEST, &v, &err), -E2BIG);
}

struct seen {
    struct buf log;
    size_t stop_at;
};

static int member(void *ctx, const char *key, struct json_slice value, struct hutch_error *e)
{
    (void)e;
    struct seen *seen = ctx;
    buf_printf(&seen->log, "%s=%.*s;", key, (int)value.len, value.text);
    return seen->stop_at && --seen->stop_at == 0 ? -EDOM : 0;
}

static int element(void *ctx, size_t index, struct json_slice value, struct hutch_error *e)
{
    (void)e;
    struct seen *seen = ctx;
    buf_printf(&seen->log, "%zu=%.*s/%d;", index, (int)value.len, value.text, (int)value.type);
    return seen->stop_at && --seen->stop_at == 0 ? -EDOM : 0;
}

static int walk_text(const char *text, struct seen *seen)
{
    struct json_slice v;
    cr_assert_eq(parse(text, &v), 0, "%s", err.message);
    int r = v.type == JSON_OBJECT ? json_object_each(v, HUTCH_STAGE_REQUEST, member, seen, &err)
                                  : json_array_each(v, HUTCH_STAGE_REQUEST, element, seen, &err);
    buf_put(&seen->log, "", 1);
    return r;
}

#define WALKS(text, want)                                                                          \
    do {                                                                                           \
        struct seen seen = {0};                                                                    \
        cr_assert_eq(walk_text(text, &seen), 0, "%s", err.message);                                \
        cr_assert_str_eq(seen.log.data, want);                                                     \
        buf_free(&seen.log);                                                                       \
    } while (0)

Test(json, walks_an_object_in_order)
{
    WALKS("{}", "");
    WALKS(" { \"b\" : 1.0 , \"a\":[1,{\"c\":2}],\"d\":{\"a\":[]}, \"e\":\"x\\\"}\" }",
          "b=1.0;a=[1,{\"c\":2}];d={\"a\":[]};e=\"x\\\"}\";");
    WALKS("{\"n\":null,\"t\":true,\"f\":false,\"s\":\"\",\"m\":-1e5}",
          "n=null;t=true;f=false;s=\"\";m=-1e5;");
    WALKS("{\"a\\u0042\\n\":[{}]}", "aB\n=[{}];");
    WALKS("{\"\":0}", "=0;");
    WALKS("{\"\\ud800\":0}", "\xef\xbf\xbd=0;");
    /* Only the walked object's own names count. */
    WALKS("{\"a\":{\"x\":1,\"x\":2}}", "a={\"x\":1,\"x\":2};");
}

Test(json, walks_an_array)
{
    WALKS("[]", "");
    WALKS("[1, \"a,b\\u005d\" ,[2,3] , {\"k\":[]},true,null]",
          "0=1/2;1=\"a,b\\u005d\"/3;2=[2,3]/4;3={\"k\":[]}/5;4=true/1;5=null/0;");
}

Test(json, duplicate_names_are_refused_before_any_member_is_seen)
{
    struct seen seen = {0};
    cr_assert_eq(walk_text("{\"a\":1,\"b\":2,\"\\u0061\":3}", &seen), -EINVAL);
    cr_assert(strstr(err.message, "'a' is there twice"), "%s", err.message);
    cr_assert_str_eq(seen.log.data, "");
    buf_free(&seen.log);
}

Test(json, nul_in_a_name_is_refused)
{
    struct seen seen = {0};
    cr_assert_eq(walk_text("{\"a\\u0000b\":1}", &seen), -EINVAL);
    cr_assert(strstr(err.message, "NUL"), "%s", err.message);
    buf_free(&seen.log);
}

Test(json, walk_stops_at_the_first_error)
{
    struct seen seen = {.stop_at = 2};
    cr_assert_eq(walk_text("{\"a\":1,\"b\":2,\"c\":3}", &seen), -EDOM);
    cr_assert_str_eq(seen.log.data, "a=1;b=2;");
    buf_free(&seen.log);
    seen = (struct seen){.stop_at = 1};
    cr_assert_eq(walk_text("[1,2]", &seen), -EDOM);
    cr_assert_str_eq(seen.log.data, "0=1/2;");
    buf_free(&seen.log);
}

static void decodes(const char *text, const char *want, size_t want_len)
{
    struct json_slice v;
    cr_assert_eq(parse(text, &v), 0, "%s", err.message);
    _cleanup_free_ char *decoded = NULL;
    size_t len;
    cr_assert_eq(json_string(v, &decoded, &len), 0);
    cr_assert_eq(len, want_len, "%s: %zu", text, len);
    cr_assert_arr_eq(decoded, want, want_len + 1);
}

Test(json, decodes_strings)
{
    decodes("\"\"", "", 0);
    decodes("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    decodes("\"\\u00e9\\u20AC\"", "\xc3\xa9\xe2\x82\xac", 5);
    decodes("\"\\uD83D\\uDC07\"", "\xf0\x9f\x90\x87", 4);
    decodes("\"a\\u0000b\"", "a\0b", 3);
    decodes("\"\xc3\xa9\"", "\xc3\xa9", 2);
}

Test(json, lone_surrogates_become_the_replacement_character)
{
    decodes("\"\\ud800\"", "\xef\xbf\xbd", 3);
    decodes("\"\\udc00x\"", "\xef\xbf\xbdx", 4);
    decodes("\"\\ud800\\u0041\"",
            "\xef\xbf\xbd"
            "A",
            4);
    decodes("\"\\ud800\\ud83d\\udc07\"", "\xef\xbf\xbd\xf0\x9f\x90\x87", 7);
    decodes("\"\\ud800\\n\"", "\xef\xbf\xbd\n", 4);
}

Test(json, small_readers)
{
    struct json_slice v;
    cr_assert_eq(parse(" true ", &v), 0);
    cr_assert(json_is_true(v));
    cr_assert_eq(parse("false", &v), 0);
    cr_assert_not(json_is_true(v));
    cr_assert_eq(parse("\"true\"", &v), 0);
    cr_assert_not(json_is_true(v));
    cr_assert_eq(parse(" 1.50 ", &v), 0);
    _cleanup_free_ char *raw = json_raw(v);
    cr_assert_str_eq(raw, "1.50");
}

static void writes(const char *text, size_t len, const char *want, bool want_replaced)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    bool replaced = json_put_string(&buf, text, len);
    buf_put(&buf, "", 1);
    cr_assert_str_eq(buf.data, want);
    cr_assert_eq(replaced, want_replaced);
    struct json_slice v;
    cr_assert_eq(parse(buf.data, &v), 0, "%s", err.message);
}

Test(json, writes_strings)
{
    writes("", 0, "\"\"", false);
    writes("a\"\\/\b\f\n\r\t\0\x1f\x7f", 12, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\"",
           false);
    writes("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", 8, "\"\\u0080\\u009b\\u009f\xc2\xa0\"", false);
    writes("\xc3\xa9\xf0\x9f\x90\x87", 6, "\"\xc3\xa9\xf0\x9f\x90\x87\"", false);
}

Test(json, broken_utf8_is_replaced_piece_by_piece)
{
    writes("ok\xff\xfe\0end", 8, "\"ok\xef\xbf\xbd\xef\xbf\xbd\\u0000end\"", true);
    writes("\xc3", 1, "\"\xef\xbf\xbd\"", true);
    writes("\xf0\x9f\x90x", 4, "\"\xef\xbf\xbdx\"", true);
    writes("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", true);
    writes("\xe2\x82\xc3\xa9", 4, "\"\xef\xbf\xbd\xc3\xa9\"", true);
}

Test(json, keys_get_their_commas)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    buf_puts(&buf, "{");
    json_put_key(&buf, "a");
    json_put_string(&buf, "{", 1);
    json_put_key(&buf, "b");
    buf_puts(&buf, "[{");
    json_put_key(&buf, "c\"");
    buf_puts(&buf, "1}]}");
    buf_put(&buf, "", 1);
    cr_assert_str_eq(buf.data, "{\"a\":\"{\",\"b\":[{\"c\\\"\":1}]}");
}

static void base64_is(const char *data, size_t len, const char *want)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    json_put_base64(&buf, data, len);
    buf_put(&buf, "", 1);
    cr_assert_str_eq(buf.data, want);
}

Test(json, base64)
{
    base64_is("", 0, "\"\"");
    base64_is("f", 1, "\"Zg==\"");
    base64_is("fo", 2, "\"Zm8=\"");
    base64_is("foo", 3, "\"Zm9v\"");
    base64_is("foob", 4, "\"Zm9vYg==\"");
    base64_is("\xff\xff\xfe\x00", 4, "\"///+AA==\"");
}

Test(json, base64_keeps_the_bound)
{
    _cleanup_buf_ struct buf buf = BUF(5);
    json_put_base64(&buf, "foo", 3);
    cr_assert_eq(buf.failed, -E2BIG);
    cr_assert_eq(buf.len, 0);
}

Test(json, utf8_check_is_strict)
{
    static const char *const GOOD[] = {"",
                                       "a",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        cr_assert(utf8_valid(GOOD[i], strlen(GOOD[i])), "case %zu", i);
    static const char *const BAD[] = {
        "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xc3",         "\xe2\x82",         "\xf0\x9f\x90",     "a\xff"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        cr_assert_not(utf8_valid(BAD[i], strlen(BAD[i])), "case %zu", i);
}

Test(json, cut_never_splits_a_character)
{
    const char *text = "a\xf0\x9f\x90\x87z"; /* 6 bytes */
    static const size_t WANT[] = {0, 1, 1, 1, 1, 5, 6, 6};
    for (size_t max = 0; max < ARRAY_LEN(WANT); max++)
        cr_assert_eq(utf8_cut(text, 6, max), WANT[max], "max %zu", max);
    /* One byte behind the cut is enough to see it. */
    cr_assert_eq(utf8_cut(text, 3, 2), 1);
    cr_assert_eq(utf8_cut("\xc3\xa9", 2, 1), 0);
}

Test(json, cut_keeps_what_is_not_utf8)
{
    cr_assert_eq(utf8_cut("\xff\xff\xff\xff", 4, 2), 2);
    cr_assert_eq(utf8_cut("\x80\x80\x80\x80\x80", 5, 4), 4);
    cr_assert_eq(utf8_cut("a\xe2zzz", 5, 2), 2);
    cr_assert_eq(utf8_cut("a\xe2\x82zz", 5, 3), 3);
}
