/* steps.c - the names of the set-up steps. */
#include "plan/steps.h"

#include "base/cleanup.h"

#define STEP_NAME(name) #name,
static const char *const NAMES[] = {
    PLAN_INIT_STEPS(STEP_NAME) PLAN_PROGRAM_STEPS(STEP_NAME)
        PLAN_GUARD_STEPS(STEP_NAME) "read_plan",
    "fork",
};

const char *plan_step_name(unsigned step)
{
    return step < ARRAY_LEN(NAMES) ? NAMES[step] : "unknown";
}
