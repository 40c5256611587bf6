#include "hutch.h"

const char *hutch_version(void)
{
    return HUTCH_VERSION;
}
