#include "box/document.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct hutch_error err;

static int parse(const char *text, struct document *ret)
{
    return document_parse(text, strlen(text), ret, &err);
}

/* `count` times `piece`, with `head` before and `tail` after it. */
static char *repeated(const char *head, const char *piece, size_t count, const char *tail)
{
    size_t piece_len = strlen(piece), head_len = strlen(head), tail_len = strlen(tail);
    char *text = malloc(head_len + piece_len * count + tail_len + 1);
    cr_assert_not_null(text);
    memcpy(text, head, head_len);
    for (size_t i = 0; i < count; i++)
        memcpy(text + head_len + i * piece_len, piece, piece_len);
    memcpy(text + head_len + piece_len * count, tail, tail_len + 1);
    return text;
}

Test(document, hands_out_the_value_as_it_came)
{
    static const char *const VALUES[] = {
        "null",
        "42",
        "-0.0",
        "1e5",
        "1.10",
        "1267650600228229401496703205376",
        "\"\\ud800 }\"",
        "[1, [2], {\"a\":[]}]",
        "{}",
    };
    for (size_t i = 0; i < sizeof(VALUES) / sizeof(VALUES[0]); i++) {
        char text[256];
        struct document d = {0};
        (void)snprintf(text, sizeof(text), "{\"ok\":true,\"value\":%s}\n", VALUES[i]);
        cr_assert_eq(parse(text, &d), 0, "%s: %s", VALUES[i], err.message);
        cr_assert(d.ok);
        cr_assert_eq(d.value.len, strlen(VALUES[i]));
        cr_assert_eq(memcmp(d.value.text, VALUES[i], d.value.len), 0);
        cr_assert_null(d.error);
        document_free(&d);
    }
}

Test(document, decodes_a_failure)
{
    _cleanup_document_ struct document d = {0};
    cr_assert_eq(
        parse("{\"ok\":false,\"kind\":\"exception\",\"error\":\"ValueError: \\u00e9\\n\"}\n", &d),
        0);
    cr_assert_not(d.ok);
    cr_assert_eq(d.kind, DOCUMENT_EXCEPTION);
    cr_assert_str_eq(d.error, "ValueError: \xc3\xa9\n");
    cr_assert_eq(d.error_len, strlen(d.error));
    cr_assert_eq(d.findings_len, 0);
}

Test(document, knows_every_kind)
{
    static const struct {
        const char *name;
        enum document_kind kind;
    } KINDS[] = {
        {"invalid", DOCUMENT_INVALID}, {"exception", DOCUMENT_EXCEPTION}, {"value", DOCUMENT_VALUE},
        {"import", DOCUMENT_IMPORT},   {"args", DOCUMENT_ARGS},
    };
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        char text[128];
        struct document d = {0};
        (void)snprintf(text, sizeof(text), "{\"ok\":false,\"kind\":\"%s\",\"error\":\"x\"}\n",
                       KINDS[i].name);
        cr_assert_eq(parse(text, &d), 0, "%s", err.message);
        cr_assert_eq(d.kind, KINDS[i].kind);
        document_free(&d);
    }
}

Test(document, lists_findings)
{
    _cleanup_document_ struct document d = {0};
    cr_assert_eq(parse("{\"ok\":false,\"kind\":\"invalid\",\"error\":\"a; b\","
                       "\"findings\":[\"a\",\"b\"]}\n",
                       &d),
                 0);
    cr_assert_eq(d.findings_len, 2);
    cr_assert_str_eq(d.findings[0], "a");
    cr_assert_str_eq(d.findings[1], "b");
}

Test(document, keeps_the_length_of_an_error_with_a_nul)
{
    _cleanup_document_ struct document d = {0};
    cr_assert_eq(parse("{\"ok\":false,\"kind\":\"value\",\"error\":\"a\\u0000b\"}\n", &d), 0);
    cr_assert_eq(d.error_len, 3);
    cr_assert_eq(memcmp(d.error, "a\0b", 4), 0);
}

Test(document, tells_when_a_line_is_complete)
{
    cr_assert_not(document_complete(NULL, 0));
    cr_assert_not(document_complete("{\"ok\":true", 10));
    cr_assert(document_complete("{}\n", 3));
    cr_assert(document_complete("\nrest", 5));
}

Test(document, refuses_what_the_runner_does_not_write)
{
    static const char *const CASES[] = {
        "",
        "\n",
        "{\"ok\":true,\"value\":1}",           /* no end of line */
        "{\"ok\":true,\"value\":1}\n\n",       /* something after it */
        "{\"ok\":true,\"value\":1}\n{",        /* the same */
        "{\"ok\":true,\"value\":1}{}\n",       /* two values */
        "{\"ok\":true,\"value\":1,\"x\":2}\n", /* one member too many */
        "{\"ok\":true,\"value\":}\n",
        "{\"ok\":true,\"value\":1]\n",
        "{\"ok\":true,\"value\":NaN}\n",
        "{\"ok\":true,\"value\":01}\n",
        "{\"ok\":true,\"value\":\"\xc3\xa9\"}\n", /* not ASCII */
        "{\"ok\":true,\"value\":\t1}\n",          /* a control character */
        "{\"ok\":true}\n",
        "{\"ok\":true,\"kind\":\"value\",\"error\":\"x\"}\n",
        "{\"ok\":false,\"value\":1}\n",
        "{\"ok\":false,\"kind\":\"value\"}\n",
        "{\"ok\":false,\"error\":\"x\"}\n",
        "{\"kind\":\"value\",\"error\":\"x\"}\n",
        "{\"ok\":0,\"kind\":\"value\",\"error\":\"x\"}\n",
        "{\"ok\":false,\"kind\":\"exit\",\"error\":\"x\"}\n",
        "{\"ok\":false,\"kind\":1,\"error\":\"x\"}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":[]}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":\"x\",\"error\":\"y\"}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":\"x\",\"findings\":1}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":\"x\",\"findings\":[1]}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":\"x\",\"findings\":[\"a\",[]]}\n",
        "{\"ok\":false,\"kind\":\"value\",\"error\":\"x\",\"more\":1}\n",
        "[]\n",
        "42\n",
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct document d = {.findings_len = 77};
        cr_assert_eq(parse(CASES[i], &d), -EPROTO, "accepted: %s", CASES[i]);
        cr_assert_eq(err.stage, HUTCH_STAGE_RESULT);
        cr_assert_eq(err.code, -EPROTO);
        cr_assert_not_null(strstr(err.message, "malformed result document: "));
        cr_assert_null(strstr(err.message + 10, "malformed result document"), "%s", err.message);
        cr_assert_eq(d.findings_len, 77, "the output was touched");
    }
}

Test(document, refuses_a_nul)
{
    static const char TEXT[] = "{\"ok\":true,\"value\":\"a\0b\"}\n";
    struct document d = {0};
    cr_assert_eq(document_parse(TEXT, sizeof(TEXT) - 1, &d, &err), -EPROTO);
}

Test(document, takes_values_500_deep_and_no_deeper)
{
    for (size_t depth = 500; depth <= 501; depth++) {
        _cleanup_free_ char *open = repeated("{\"ok\":true,\"value\":", "[", depth, "");
        _cleanup_free_ char *text = repeated(open, "]", depth, "}\n");
        struct document d = {0};
        cr_assert_eq(parse(text, &d), depth == 500 ? 0 : -EPROTO, "depth %zu", depth);
        document_free(&d);
    }
}

Test(document, survives_hostile_depth)
{
    _cleanup_free_ char *text = repeated("{\"ok\":true,\"value\":", "[", 4 << 20, "}\n");
    struct document d = {0};
    cr_assert_eq(parse(text, &d), -EPROTO);
    _cleanup_free_ char *failure = repeated("", "[", 1 << 20, "\n");
    cr_assert_eq(parse(failure, &d), -EPROTO);
}

Test(document, refuses_more_than_16_mib)
{
    size_t around = strlen("{\"ok\":true,\"value\":\"\"}\n");
    _cleanup_free_ char *largest =
        repeated("{\"ok\":true,\"value\":\"", "a", DOCUMENT_MAX_BYTES - around, "\"}\n");
    _cleanup_free_ char *larger =
        repeated("{\"ok\":true,\"value\":\"", "a", DOCUMENT_MAX_BYTES - around + 1, "\"}\n");
    struct document d = {0};
    cr_assert_eq(parse(largest, &d), 0, "%s", err.message);
    cr_assert_eq(parse(larger, &d), -EPROTO);
}

Test(document, refuses_a_long_failure_and_many_findings)
{
    struct document d = {0};
    _cleanup_free_ char *longer =
        repeated("{\"ok\":false,\"kind\":\"value\",\"error\":\"", "a", 3 << 20, "\"}\n");
    cr_assert_eq(parse(longer, &d), -EPROTO);
    _cleanup_free_ char *many =
        repeated("{\"ok\":false,\"kind\":\"invalid\",\"error\":\"x\",\"findings\":[", "\"a\",", 200,
                 "\"b\"]}\n");
    cr_assert_eq(parse(many, &d), -EPROTO);
    _cleanup_free_ char *enough =
        repeated("{\"ok\":false,\"kind\":\"invalid\",\"error\":\"x\",\"findings\":[", "\"a\",", 199,
                 "\"b\"]}\n");
    cr_assert_eq(parse(enough, &d), 0, "%s", err.message);
    cr_assert_eq(d.findings_len, 200);
    document_free(&d);
}
