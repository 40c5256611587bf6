/*
 * probe.h - the probe: a small static program that attempts things and prints what happened.
 *
 *   probe [-u] [-d] NAME[:ARG]...
 *
 * For each attempt one line, "NAME[:ARG] OK" or "NAME[:ARG] EPERM" (the errno's name), or "...
 * SIG31" when a signal ended it. Each runs in a child of its own, so that one that works doesn't
 * change the next; -d runs it in the probe itself. -u first enters user and all other namespaces of
 * its own as their root: what anybody may do who isn't in a box.
 *
 * The same binary is run outside the box first: what a wall stops must get through there. So an
 * attempt is made harmless by wrong arguments where it would change the machine: any answer but
 * EPERM and ENOSYS means that the kernel itself looked at it.
 */
#ifndef PROBE_H
#define PROBE_H

#include <errno.h>
#include <stddef.h>

/* 0: it worked; else the errno. `arg` is NULL where none was given. */
typedef int attempt_fn(const char *arg);

struct attempt {
    const char *name;
    attempt_fn *run;
};

/* Tables, each ended by a NULL name. */
extern const struct attempt PRIVILEGED[], NAMESPACES[], SOCKETS[], FILES[], ABI[], IDS[], LIMITS[];

#define RESULT(call) ((call) < 0 ? errno : 0)
/* A set bit above an int: the kernel doesn't look at it, a 64-bit compare would. */
#define HIGH (1UL << 32)

#endif
