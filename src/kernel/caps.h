/* caps.h - the caller's capabilities, as host-side code asks for them. */
#ifndef HUTCH_KERNEL_CAPS_H
#define HUTCH_KERNEL_CAPS_H

#include <stdbool.h>

/* True if the calling thread has all of these in its effective set (CAP_SETUID, ...). */
bool caps_have(const unsigned *capabilities, unsigned len);
/* The calling thread's effective set as text for people ("none", "full", "setuid, setgid"); the
 * caller frees it. NULL without memory. */
char *caps_describe(void);

#endif
