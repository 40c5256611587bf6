/* test_review.c - ways around a limit, or into a false answer, that were found by attacking. */
#include <criterion/criterion.h>
#include <signal.h>

#include "support/command.h"

TestSuite(review, .timeout = 120);

/* ---- what a host hands down ---- */

static void ignore_children(void *arg)
{
    (void)arg;
    (void)signal(SIGCHLD, SIG_IGN);
}

Test(review, a_host_that_ignores_sigchld_hears_of_the_end)
{
    struct spawn base = {.child = ignore_children};
    _cleanup_answer_ struct answer a = hutch_with(
        &base, LIST("run", "--json", "--timeout", "20", "--", "sh", "-c", "(exit 4); exit $?"));
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 4);
}
