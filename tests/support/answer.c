/* answer.c - see command.h: looking into a JSON answer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

#define SHOWN 4000

const char *answer_show(const struct answer *answer)
{
    static char *text;
    free(text);
    text = NULL;
    if (asprintf(&text, "exit %d signal %d, %.0f ms%s\nstdout: %.*s\nstderr: %.*s",
                 answer->o.exit_code, answer->o.signal, answer->o.ms,
                 answer->o.late ? ", too late" : "", SHOWN, answer->o.out, SHOWN,
                 answer->o.err) < 0)
        return "?";
    return text;
}

static yajl_val step(yajl_val at, const char *name, size_t len)
{
    if (YAJL_IS_ARRAY(at)) {
        char *end;
        unsigned long index = strtoul(name, &end, 10);
        return end == name + len && index < YAJL_GET_ARRAY(at)->len
                   ? YAJL_GET_ARRAY(at)->values[index]
                   : NULL;
    }
    if (!YAJL_IS_OBJECT(at))
        return NULL;
    for (size_t i = 0; i < YAJL_GET_OBJECT(at)->len; i++) {
        const char *key = YAJL_GET_OBJECT(at)->keys[i];
        if (strlen(key) == len && memcmp(key, name, len) == 0)
            return YAJL_GET_OBJECT(at)->values[i];
    }
    return NULL;
}

static yajl_val find(const struct answer *answer, const char *path)
{
    yajl_val at = answer->json;
    while (at && *path) {
        size_t len = strcspn(path, ".");
        at = step(at, path, len);
        path += len + (path[len] == '.');
    }
    return at;
}

static yajl_val need(const struct answer *answer, const char *path, yajl_type type)
{
    yajl_val value = find(answer, path);
    cr_assert_not_null(value, "no %s in the answer\n%s", path, answer_show(answer));
    cr_assert(type == yajl_t_any || value->type == type, "%s has another type\n%s", path,
              answer_show(answer));
    return value;
}

const char *answer_text(const struct answer *answer, const char *path)
{
    return need(answer, path, yajl_t_string)->u.string;
}

const char *answer_number(const struct answer *answer, const char *path)
{
    return YAJL_GET_NUMBER(need(answer, path, yajl_t_number));
}

long long answer_int(const struct answer *answer, const char *path)
{
    char *end;
    const char *text = answer_number(answer, path);
    long long value = strtoll(text, &end, 10);
    cr_assert_eq(*end, 0, "%s is no integer: %s", path, text);
    return value;
}

double answer_double(const struct answer *answer, const char *path)
{
    return strtod(answer_number(answer, path), NULL);
}

bool answer_bool(const struct answer *answer, const char *path)
{
    yajl_val value = need(answer, path, yajl_t_any);
    cr_assert(YAJL_IS_TRUE(value) || YAJL_IS_FALSE(value), "%s is no boolean\n%s", path,
              answer_show(answer));
    return YAJL_IS_TRUE(value);
}

size_t answer_len(const struct answer *answer, const char *path)
{
    yajl_val value = need(answer, path, yajl_t_any);
    cr_assert(YAJL_IS_ARRAY(value) || YAJL_IS_OBJECT(value), "%s holds nothing\n%s", path,
              answer_show(answer));
    return YAJL_IS_ARRAY(value) ? YAJL_GET_ARRAY(value)->len : YAJL_GET_OBJECT(value)->len;
}

bool answer_is_null(const struct answer *answer, const char *path)
{
    return YAJL_IS_NULL(need(answer, path, yajl_t_any));
}

bool answer_has(const struct answer *answer, const char *path)
{
    return find(answer, path) != NULL;
}

bool answer_is(const struct answer *answer, const char *path, const char *text)
{
    yajl_val value = find(answer, path);
    return YAJL_IS_STRING(value) && strcmp(value->u.string, text) == 0;
}

int answer_find(const struct answer *answer, const char *array, const char *name)
{
    size_t len = answer_len(answer, array);
    for (size_t i = 0; i < len; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s.%zu.name", array, i);
        if (answer_is(answer, path, name))
            return (int)i;
    }
    return -1;
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

char *base64_decode(const char *text, size_t *ret_len)
{
    size_t len = strlen(text), out = 0;
    char *data = calloc(len / 4 * 3 + 1, 1);
    if (!data || len % 4 != 0)
        return NULL;
    for (size_t i = 0; i < len; i += 4) {
        unsigned pads = (text[i + 2] == '=') + (text[i + 3] == '='), bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k >= 4 - pads ? 0 : base64_digit(text[i + k]);
            if (digit < 0 || (pads && i + 4 != len))
                return NULL;
            bits = bits << 6 | (unsigned)digit;
        }
        for (unsigned k = 0; k < 3 - pads; k++)
            data[out++] = (char)(bits >> (16 - 8 * k));
    }
    *ret_len = out;
    return data;
}

char *answer_file(const struct answer *answer, const char *name, size_t *ret_len)
{
    char path[64];
    size_t len;
    int index = answer_find(answer, "files", name);
    if (index < 0)
        return NULL;
    snprintf(path, sizeof path, "files.%d.data", index);
    char *data = base64_decode(answer_text(answer, path), &len);
    cr_assert_not_null(data, "%s is no base64", path);
    if (ret_len)
        *ret_len = len;
    return data;
}

static int status_for(const struct answer *answer, const char *reason)
{
    static const struct {
        const char *reason;
        int status;
    } fixed[] = {{"timeout", 124}, {"cpu_time", 124}, {"memory", 137}, {"output", 137},
                 {"syscall", 159}, {"request", 2},    {"setup", 125}};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(reason, fixed[i].reason) == 0)
            return fixed[i].status;
    if (strcmp(reason, "signal") == 0)
        return 128 + (int)answer_int(answer, "signal");
    return strcmp(reason, "exit") == 0 ? (int)answer_int(answer, "exit_code") : 1;
}

/* exec maps every failure of the code to 1 (and ours to 125, the caller's to 2). */
static int exec_status_for(const struct answer *answer, const char *reason)
{
    if (strcmp(reason, "request") == 0)
        return 2;
    if (strcmp(reason, "setup") == 0)
        return 125;
    return answer_bool(answer, "success") ? 0 : 1;
}

void expect_reason(const struct answer *answer, const char *reason)
{
    cr_assert(answer->json, "the answer is no JSON\n%s", answer_show(answer));
    cr_assert_str_eq(answer_text(answer, "reason"), reason, "reason is not %s\n%s", reason,
                     answer_show(answer));
    bool exec = answer_has(answer, "success");
    int status = exec ? exec_status_for(answer, reason) : status_for(answer, reason);
    cr_assert_eq(answer->o.exit_code, status, "exit status is not %d\n%s", status,
                 answer_show(answer));
    if (exec)
        return;
    expect(answer, answer_is_null(answer, "exit_code") == (strcmp(reason, "exit") != 0));
    expect(answer, answer_is_null(answer, "signal") == (strcmp(reason, "signal") != 0));
    if (strcmp(reason, "cpu_time") != 0)
        expect(answer, answer_bool(answer, "timed_out") == (strcmp(reason, "timeout") == 0));
    expect(answer, answer_bool(answer, "ok") ==
                       (strcmp(reason, "exit") == 0 && answer_int(answer, "exit_code") == 0));
}

void expect_clean(const struct answer *answer)
{
    expect_reason(answer, "exit");
    if (answer_has(answer, "exit_code"))
        expect(answer, answer_int(answer, "exit_code") == 0);
    else
        expect(answer, answer_bool(answer, "success"));
    expect(answer, answer_is(answer, "stderr", ""));
}

void expect_stdout(const struct answer *answer, const char *text)
{
    expect_clean(answer);
    cr_assert_str_eq(answer_text(answer, "stdout"), text, "%s", answer_show(answer));
}

void expect_refused(const struct answer *answer, int status, const char *word)
{
    expect(answer, answer->o.exit_code == status);
    const char *end = strchr(answer->o.err, '\n');
    cr_assert(end && end[1] == 0, "not one line on stderr\n%s", answer_show(answer));
    cr_assert(strstr(answer->o.err, word), "'%s' is not in the message\n%s", word,
              answer_show(answer));
}
