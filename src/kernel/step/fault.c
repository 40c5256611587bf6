/* fault.c - the test build's fault injection: the N-th set-up system call fails with EPERM. */
#ifdef HUTCH_TESTING
#include "kernel/step/sys.h"

/* Set by init from the plan; -1 never fails. A global, because this is the test build only. */
int step_fault_countdown = -1;

int step_fault(void)
{
    if (step_fault_countdown < 0)
        return 0;
    return step_fault_countdown-- == 0;
}
#else
/* An empty translation unit is not C. */
typedef int step_fault_is_for_the_test_build;
#endif
