/* payload.h - what of hutch goes into a box: the runner's files, and exec's request. */
#ifndef HUTCH_PLAN_PAYLOAD_H
#define HUTCH_PLAN_PAYLOAD_H

#include <stdbool.h>

#include "base/buf.h"
#include "plan/runner_files.h"
#include "request/request.h"

/* The files that the request's runner is made of, to be put below /run/hutch; none for a
 * language that needs none. Static storage. */
const struct runner_file *payload_files(const struct hutch_request *request, size_t *ret_len);

/* The runner's start text, the argument of Python's -c; NULL where there is no runner. */
const char *payload_start(const struct hutch_request *request);

/* Writes /run/hutch/request.json for the verb exec (docs/protocol.md). The args are spliced in
 * as the caller wrote them. Code that isn't UTF-8 is the caller's error. */
int payload_request_json(const struct hutch_request *request, bool validate_only, struct buf *buf,
                         struct hutch_error *err);

#endif
