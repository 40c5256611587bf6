/* probe.c - see probe.h. */
#include "support/probe.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/host.h"

extern char **environ;

static const char *plain(const char *attempt)
{
    return attempt + (attempt[0] == '#');
}

static const char *const *plain_list(const char *const *attempts)
{
    size_t len = 0;
    while (attempts[len])
        len++;
    const char **list = calloc(len + 1, sizeof *list);
    cr_assert_not_null(list);
    for (size_t i = 0; i < len; i++)
        list[i] = plain(attempts[i]);
    return list;
}

const char *attempt_result(const struct attempts *attempts, const char *attempt)
{
    const char *token = plain(attempt);
    size_t len = strlen(token);
    for (const char *line = attempts->text; line && *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, token, len) == 0 && line[len] == ' ')
            return text_format("%.*s", (int)(end - line - (ptrdiff_t)len - 1), line + len + 1);
        line = *end ? end + 1 : end;
    }
    cr_assert_fail("no answer to %s\n%s", token, answer_show(&attempts->answer));
    return "";
}

bool got_through(const char *result)
{
    return strcmp(result, "EPERM") != 0 && strcmp(result, "ENOSYS") != 0 &&
           strncmp(result, "SIG", 3) != 0;
}

struct attempts probe_outside(const char *const *attempts, bool own)
{
    const char *const *flags = own ? LIST("-u") : NULL;
    struct spawn spec = {.argv = LIST(probe_path())};
    struct attempts result = {.answer = hutch_with(&spec, join(flags, plain_list(attempts)))};
    expect(&result.answer, result.answer.o.exit_code == 0);
    result.text = result.answer.o.out;
    return result;
}

static struct attempts in_box(const struct spawn *base, const char *const *attempts,
                              const char *const *options)
{
    const char *bind = text_format("%s:" PROBE_IN_BOX, probe_path());
    const char *const *args = join(join(LIST("run", "--ro-bind", bind), options),
                                   join(LIST("--", PROBE_IN_BOX), plain_list(attempts)));
    struct attempts result = {.answer = hutch_with(base, args)};
    result.text = result.answer.o.out;
    return result;
}

struct attempts probe_in_box(const char *const *attempts, const char *const *options)
{
    struct attempts result = in_box(NULL, attempts, options);
    expect(&result.answer, result.answer.o.exit_code == 0);
    return result;
}

struct attempts probe_without(const char *skip, const char *const *attempts,
                              const char *const *options)
{
    union {
        char *const *given;
        const char *const *wanted;
    } env = {.given = environ};
    struct spawn base = {
        .argv = LIST(hutch_testing_path()),
        .env = join(env.wanted, LIST(text_format("HUTCH_TEST_SKIP=%s", skip))),
    };
    return in_box(&base, attempts, options);
}

/* Outside it works as we are, or as the root of namespaces of our own. */
static bool through_outside(const struct attempts *as_is, const struct attempts *own,
                            const char *attempt)
{
    return got_through(attempt_result(as_is, attempt)) || got_through(attempt_result(own, attempt));
}

static bool kernel_lacks(const struct attempts *as_is, const char *attempt)
{
    return strcmp(attempt_result(as_is, attempt), "ENOSYS") == 0;
}

void expect_denied(const char *const *attempts, const char *const *options)
{
    struct attempts as_is = probe_outside(attempts, false), own = probe_outside(attempts, true);
    struct attempts box = probe_in_box(attempts, options);
    for (const char *const *a = attempts; *a; a++) {
        bool only_root = (*a)[0] == '#' && !is_root();
        cr_assert(through_outside(&as_is, &own, *a) || kernel_lacks(&as_is, *a) || only_root,
                  "%s does not get through outside, so the box proves nothing: %s, own root %s", *a,
                  attempt_result(&as_is, *a), attempt_result(&own, *a));
        const char *result = attempt_result(&box, *a);
        cr_expect(strcmp(result, "EPERM") == 0 || strcmp(result, "ENOSYS") == 0,
                  "%s in the box: %s, wanted EPERM or ENOSYS", *a, result);
    }
}

void expect_answer(const char *const *attempts, const char *errno_name, const char *const *options)
{
    struct attempts outside = probe_outside(attempts, false);
    struct attempts box = probe_in_box(attempts, options);
    for (const char *const *a = attempts; *a; a++) {
        bool only_root = (*a)[0] == '#' && !is_root();
        const char *control = attempt_result(&outside, *a), *result = attempt_result(&box, *a);
        cr_assert(strcmp(control, "OK") == 0 || only_root, "%s outside: %s", *a, control);
        cr_expect_str_eq(result, errno_name, "%s in the box: %s, wanted %s", *a, result,
                         errno_name);
    }
}

void expect_allowed(const char *const *attempts, const char *const *options)
{
    struct attempts box = probe_in_box(attempts, options);
    for (const char *const *a = attempts; *a; a++)
        cr_expect_str_eq(attempt_result(&box, *a), "OK", "%s in the box: %s", *a,
                         attempt_result(&box, *a));
}
