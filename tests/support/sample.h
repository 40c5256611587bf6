/* sample.h - a host's facts written by hand, for the tests of plans. */
#ifndef HUTCH_TESTS_SAMPLE_H
#define HUTCH_TESTS_SAMPLE_H

#include "plan/plan.h"

/* A merged-/usr host with four CPUs (0, 1, 4 and 5), in self-map mode as user 1234, without a
 * cgroup; two instructions as the program's filter, one as init's. Nothing in it is to be freed. */
struct facts sample_facts(void);
/* The same host as root sees it: host id 1900000123, everything kept by a cgroup. */
struct facts sample_root_facts(void);

/* These fail the test on an error. */
struct hutch_request *sample_code(enum hutch_verb verb, const char *language, const char *code);
struct hutch_request *sample_command(const char *const *argv);
void sample_set(struct hutch_request *request, const char *option, const char *value);
void sample_file(struct hutch_request *request, const char *name, unsigned mode);
/* The plan's block; it has passed init's own check. */
struct buf sample_plan(const struct hutch_request *request, enum plan_purpose purpose,
                       const struct facts *facts);

static inline void sample_request_free(struct hutch_request **request)
{
    hutch_request_free(*request);
}
#define _cleanup_request_ _cleanup_(sample_request_free)

#endif
