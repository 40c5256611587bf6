/*
 * probe.h - the escape tests' question: does the same attempt get through outside and not inside?
 *
 * Attempts are the probe's tokens, "NAME" or "NAME:ARG" (tests/probe/probe.h). A '#' before one
 * says that only root can show outside that it gets through; for a plain user the box's answer is
 * asked for all the same.
 */
#ifndef HUTCH_TESTS_PROBE_H
#define HUTCH_TESTS_PROBE_H

#include "support/command.h"

/* Where the probe is in a box made by the calls below. */
#define PROBE_IN_BOX "/probe"

/* What each attempt answered. */
struct attempts {
    struct answer answer; /* the whole run, for messages */
    char *text;
};
/* The answer to one attempt ("OK", "EPERM", "SIG31"); fails the test if there is none. */
const char *attempt_result(const struct attempts *attempts, const char *attempt);
/* True for OK and for every errno but EPERM and ENOSYS: the kernel itself has looked at it. */
bool got_through(const char *result);

/* Outside, as this user; with `own` in namespaces of its own as their root. */
struct attempts probe_outside(const char *const *attempts, bool own);
/* In a box with these options (may be NULL), by the command or (testing) by the test build with
 * `skip` as the set-up steps to leave out. */
struct attempts probe_in_box(const char *const *attempts, const char *const *options);
struct attempts probe_without(const char *skip, const char *const *attempts,
                              const char *const *options);

/* Each gets through outside and answers EPERM or ENOSYS in the box. */
void expect_denied(const char *const *attempts, const char *const *options);
/* Each answers OK outside, and `errno_name` in the box. */
void expect_answer(const char *const *attempts, const char *errno_name, const char *const *options);
/* Each answers OK in the box. */
void expect_allowed(const char *const *attempts, const char *const *options);

#endif
