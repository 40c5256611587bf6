/* error.h - the one way in which a fallible function reports what went wrong. */
#ifndef HUTCH_BASE_ERROR_H
#define HUTCH_BASE_ERROR_H

#include <errno.h>

#include "hutch.h"

/* Fills *err (may be NULL) and returns the negative of |code|; `code` may have either sign and
 * must not be 0. A message that doesn't fit is cut at a character's boundary. */
int error_set(struct hutch_error *err, enum hutch_stage stage, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with ": " and the errno's text at the end. */
int error_errno(struct hutch_error *err, enum hutch_stage stage, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An errno's text, in English whatever the host's locale is; static storage. */
const char *error_text(int code);

/* Out of memory while doing something at `stage`; returns -ENOMEM. */
int error_oom(struct hutch_error *err, enum hutch_stage stage);

/* The caller's mistake: HUTCH_STAGE_REQUEST, -EINVAL. */
#define error_request(err, ...) error_set((err), HUTCH_STAGE_REQUEST, EINVAL, __VA_ARGS__)

#endif
