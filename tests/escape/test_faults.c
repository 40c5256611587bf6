/*
 * test_faults.c - every set-up system call is made to fail once (the test build's
 * HUTCH_TEST_FAULT=N: the N-th answers EPERM). The run must refuse, or name the optional layer
 * that is missing; it must never run weaker.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(faults, .timeout = 400);

extern char **environ;

#define CALLS_MAX 2000
#define NOT_REACHED "fault injection: the call was not reached"

static struct answer with_fault(int call, const char *input, const char *const *args)
{
    union {
        char *const *given;
        const char *const *wanted;
    } env = {.given = environ};
    struct spawn spec = {
        .argv = LIST(hutch_testing_path()),
        .env = join(env.wanted, LIST(text_format("HUTCH_TEST_FAULT=%d", call))),
        .input = input,
        .input_len = input ? strlen(input) : 0,
    };
    return hutch_with(&spec, args);
}

static bool not_reached(const struct answer *a)
{
    for (size_t i = 0; answer_has(a, text_format("receipt.notes.%zu", i)); i++)
        if (answer_is(a, text_format("receipt.notes.%zu", i), NOT_REACHED))
            return true;
    return false;
}

/* A layer that is missing here and wasn't in an undisturbed run. */
static bool names_a_missing_layer(const struct answer *a, const struct answer *plain)
{
    for (size_t i = 0; i < answer_len(a, "receipt.missing"); i++) {
        const char *layer = answer_text(a, text_format("receipt.missing.%zu.layer", i));
        const char *path = text_format("receipt.layers.%s", layer);
        if (!answer_is(a, path, answer_text(plain, path)))
            return *answer_text(a, text_format("receipt.missing.%zu.cause", i)) != 0;
    }
    return false;
}

/* Goes through all calls; `check` looks at a run that went on all the same. */
static void fail_each(const char *input, const char *const *args,
                      void (*check)(const struct answer *a))
{
    int call = 1, refused = 0;
    _cleanup_answer_ struct answer plain = with_fault(0, input, args);
    expect_reason(&plain, "exit");
    check(&plain);
    for (; call < CALLS_MAX; call++) {
        _cleanup_answer_ struct answer a = with_fault(call, input, args);
        cr_assert_not_null(a.json, "call %d: %s", call, answer_show(&a));
        if (answer_is(&a, "reason", "setup")) {
            expect_reason(&a, "setup");
            expect(&a, strlen(answer_text(&a, "error")) > 10);
            refused++;
            continue;
        }
        check(&a);
        if (not_reached(&a))
            break;
        cr_expect(names_a_missing_layer(&a, &plain),
                  "call %d failed, and the run went on without a word\n%s", call, answer_show(&a));
    }
    cr_assert_lt(call, CALLS_MAX, "no run ever came to its end undisturbed");
    cr_assert_gt(refused, 50, "only %d of %d calls matter", refused, call);
}

static void whole_box(const struct answer *a)
{
    expect_stdout(a, "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
                     "Seccomp:\t2\n1000 1000 /work 0\n");
}

Test(faults, a_run_is_whole_or_refused)
{
    fail_each(NULL,
              LIST("run", "--json", "--", "sh", "-c",
                   "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; "
                   "echo $(id -u) $(id -g) $(pwd) $(cat /proc/sys/user/max_user_namespaces)"),
              whole_box);
}

static void whole_exec(const struct answer *a)
{
    expect_clean(a);
    expect(a, answer_int(a, "output") == 42);
}

Test(faults, an_exec_is_whole_or_refused)
{
    fail_each("{\"code\":\"return 42\"}", LIST("exec", "-"), whole_exec);
}
