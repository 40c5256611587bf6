/* caps.c - capabilities through libcap-ng, in whatever thread asks. */
#include "kernel/caps.h"

#include <cap-ng.h>
#include <string.h>

bool caps_have(const unsigned *capabilities, unsigned len)
{
    /* libcap-ng keeps what it read per thread; read anew, because the caller may have changed
     * its own sets between two runs. */
    capng_clear(CAPNG_SELECT_ALL);
    if (capng_get_caps_process() != 0)
        return false;
    for (unsigned i = 0; i < len; i++)
        if (capng_have_capability(CAPNG_EFFECTIVE, capabilities[i]) != 1)
            return false;
    return true;
}

char *caps_describe(void)
{
    capng_clear(CAPNG_SELECT_ALL);
    if (capng_get_caps_process() != 0)
        return strdup("unknown");
    switch (capng_have_capabilities(CAPNG_SELECT_CAPS)) {
    case CAPNG_NONE:
        return strdup("none");
    case CAPNG_FULL:
        return strdup("full");
    default:
        return capng_print_caps_text(CAPNG_PRINT_BUFFER, CAPNG_EFFECTIVE);
    }
}
