/*
 * plan.h - from a checked request and the host's facts to the one block that init reads.
 *
 * Pure: no system call, the same input gives the same bytes. What `hutch plan` prints is read
 * back from the block, so it shows what a box would get, not what we meant.
 */
#ifndef HUTCH_PLAN_PLAN_H
#define HUTCH_PLAN_PLAN_H

#include "base/buf.h"
#include "plan/facts.h"
#include "request/request.h"

enum plan_purpose { PLAN_RUN, PLAN_EXEC, PLAN_VALIDATE };

/* Appends the block to *ret_block (empty before). Errors: HUTCH_STAGE_REQUEST for what the
 * request asks and can't have, HUTCH_STAGE_PLAN otherwise. */
int plan_build(const struct hutch_request *request, enum plan_purpose purpose,
               const struct facts *facts, struct buf *ret_block, struct hutch_error *err);

/* The block as one JSON object; file contents are shown by their size. */
int plan_json(const struct hutch_request *request, const void *block, size_t len,
              struct buf *ret_json, struct hutch_error *err);

/* Where the code file is in the box: "/work/main.py", or below /run/hutch when a bind covers
 * /work (nothing of ours may appear in a directory of the caller's). */
const char *plan_code_dir(const struct hutch_request *request);
/* True if a bind's target is /work itself: then no file is collected. */
bool plan_work_is_bound(const struct hutch_request *request);

#endif
