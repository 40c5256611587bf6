/*
 * facts.h - looks at this host once for a run and fills the plan's facts.
 */
#ifndef HUTCH_KERNEL_FACTS_H
#define HUTCH_KERNEL_FACTS_H

#include "kernel/seccomp.h"
#include "plan/facts.h"
#include "plan/plan.h"

/* The facts with what they own. */
struct host_facts {
    struct facts facts;
    struct policy_program profile;
    int sources[PLAN_HOST_SOURCES_MAX]; /* detached idmapped mounts for init */
};

/* Everything but the cgroup and what follows from it. Makes the idmapped mounts that the request
 * needs in root mode. The caller frees with facts_free() also after a failure. */
int facts_gather(const struct hutch_request *request, enum plan_purpose purpose,
                 struct host_facts *ret, struct hutch_error *err);
/* The system call profile, whose variant depends on who keeps the memory limit. */
int facts_load_profile(const struct hutch_request *request, struct host_facts *facts,
                       struct hutch_error *err);
/* The host's interpreter for a language, NULL if it has none; and what to do then. */
const char *facts_interpreter(enum language language, const char **ret_remedy);
void host_facts_free(struct host_facts *facts);
#define _cleanup_host_facts_ _cleanup_(host_facts_free)
void host_facts_init(struct host_facts *facts);

#endif
