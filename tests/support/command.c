/* command.c - see command.h: finding the command and running it. */
#include "support/command.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/host.h"

const char *build_path(const char *below)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    cr_assert_gt(len, 0);
    self[len] = 0;
    for (int up = 0; up < 3; up++) { /* BUILD/tests/box/test_x */
        char *slash = strrchr(self, '/');
        cr_assert_not_null(slash);
        *slash = 0;
    }
    return text_format("%s/%s", self, below);
}

static const char *path_from(const char *variable, const char *below)
{
    const char *given = getenv(variable);
    const char *path = given && *given ? given : build_path(below);
    cr_assert_eq(access(path, X_OK), 0, "%s can't be run (set %s)", path, variable);
    return path;
}

const char *hutch_path(void)
{
    return path_from("HUTCH", "hutch");
}
const char *hutch_testing_path(void)
{
    return path_from("HUTCH_TESTING", "testing/hutch");
}
const char *probe_path(void)
{
    return path_from("HUTCH_PROBE", "tests/probe");
}

const char *const *join(const char *const *first, const char *const *second)
{
    size_t len = 0, at = 0;
    for (const char *const *p = first; p && *p; p++)
        len++;
    for (const char *const *p = second; p && *p; p++)
        len++;
    const char **all = calloc(len + 1, sizeof *all);
    cr_assert_not_null(all);
    for (const char *const *p = first; p && *p; p++)
        all[at++] = *p;
    for (const char *const *p = second; p && *p; p++)
        all[at++] = *p;
    return all;
}

struct answer hutch_with(const struct spawn *base, const char *const *args)
{
    struct spawn spec = base ? *base : (struct spawn){0};
    const char *program = spec.argv ? spec.argv[0] : hutch_path();
    spec.argv = join(LIST(program), args);
    struct answer answer = {.o = spawn_run(&spec)};
    if (answer.o.out[0] == '{' && strlen(answer.o.out) == answer.o.out_len)
        answer.json = yajl_tree_parse(answer.o.out, NULL, 0);
    cr_assert_not(answer.o.late, "hutch did not end in time\n%s", answer_show(&answer));
    return answer;
}

struct answer hutch(const char *const *args)
{
    return hutch_with(NULL, args);
}

struct answer run_code(const char *language, const char *code, const char *const *options)
{
    struct spawn spec = {.input = code, .input_len = strlen(code)};
    return hutch_with(
        &spec, join(join(LIST("run", "--json", "--language", language), options), LIST("-")));
}

struct answer run_command(const char *const *options, const char *const *argv)
{
    return hutch(join(join(LIST("run", "--json"), options), join(LIST("--"), argv)));
}

struct answer exec_request(const char *request, const char *const *options)
{
    struct spawn spec = {.input = request, .input_len = strlen(request)};
    return hutch_with(&spec, join(join(LIST("exec"), options), LIST("-")));
}

/* A JSON string of plain text. */
static char *quote(const char *text)
{
    char *quoted = calloc(strlen(text) * 6 + 3, 1), *at = quoted;
    cr_assert_not_null(quoted);
    *at++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\', *at++ = *text;
        else if ((unsigned char)*text < 0x20)
            at += snprintf(at, 7, "\\u%04x", *text);
        else
            *at++ = *text;
    }
    *at = '"';
    return quoted;
}

struct answer exec_body(const char *code, const char *members)
{
    char *request = NULL, *quoted = quote(code);
    cr_assert_gt(
        asprintf(&request, "{%s%s\"code\":%s}", members ? members : "", members ? "," : "", quoted),
        0);
    struct answer answer = exec_request(request, NULL);
    free(request);
    free(quoted);
    return answer;
}

void answer_free(struct answer *answer)
{
    output_free(&answer->o);
    yajl_tree_free(answer->json);
    answer->json = NULL;
}
