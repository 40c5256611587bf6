/*
 * doctor.h - can boxes be built here? Decided by building one; what is in the way is named by
 * cause, all of it.
 *
 * For the command, whose process has one thread (kernel/probe.h); not part of the library's
 * interface.
 */
#ifndef HUTCH_BOX_DOCTOR_H
#define HUTCH_BOX_DOCTOR_H

#include <stdbool.h>

#include "box/result.h"
#include "kernel/probe.h"

/* The program that is run in the box: it must print what doctor_inside() prints. */
struct doctor_program {
    const void *data;
    size_t len;
    const char *const *args; /* before the baits; NULL-terminated */
    const char *variable;    /* an environment variable that the caller has set as bait */
};

struct doctor_denial {
    const char *name, *what; /* static storage */
    bool held;
};

struct doctor_report {
    bool can_run; /* the box ran and at least three denials, and all that were tried, held */
    bool box_ran;
    char error[HUTCH_ERROR_TEXT]; /* why the box didn't run, or "" */
    char kernel[96];
    const char *mode;   /* "root", "self-map", or NULL: neither can be had */
    char *capabilities; /* the caller's */
    struct receipt receipt;
    struct doctor_denial denials[PROBE_ATTEMPTS_COUNT];
    size_t denials_len;
    struct findings findings;
};

/* Negative only without memory. The caller frees the report, also then. */
int doctor_run(const struct doctor_program *program, struct doctor_report *ret_report,
               struct hutch_error *err);
void doctor_report_free(struct doctor_report *report);
#define _cleanup_doctor_report_ _cleanup_(doctor_report_free)
void doctor_put_json(struct buf *buf, const struct doctor_report *report);

/* In the box: tries everything that it must refuse; one line for each, "NAME held" or "NAME open".
 */
void doctor_inside(const struct probe_baits *baits, struct buf *out);

#endif
