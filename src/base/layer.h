/* layer.h - the layers of a box, as they are named in --require, --allow-missing and receipts. */
#ifndef HUTCH_BASE_LAYER_H
#define HUTCH_BASE_LAYER_H

#include <stdint.h>

enum layer {
    LAYER_USER_NS,
    LAYER_PID_NS,
    LAYER_MOUNT_NS,
    LAYER_NET_NS,
    LAYER_IPC_NS,
    LAYER_UTS_NS,
    LAYER_CGROUP_NS,
    LAYER_TIME_NS,
    LAYER_ROOT,
    LAYER_CAPS,
    LAYER_NO_NEW_PRIVS,
    LAYER_SECCOMP,
    LAYER_LANDLOCK,
    LAYER_CGROUP,
    LAYER_MEMORY, /* "on" in a requirement means: kept by the cgroup */
    LAYER_PIDS,
    LAYER_CPU,
    LAYER_COUNT,
};

typedef uint32_t layer_mask;
#define LAYER_BIT(layer) (1U << (layer))
#define LAYER_ALL (LAYER_BIT(LAYER_COUNT) - 1)

/* A run without one of these is refused, unless --allow-missing lets it go. */
#define LAYER_DEFAULT_REQUIRED                                                                     \
    (LAYER_BIT(LAYER_USER_NS) | LAYER_BIT(LAYER_PID_NS) | LAYER_BIT(LAYER_MOUNT_NS) |              \
     LAYER_BIT(LAYER_NET_NS) | LAYER_BIT(LAYER_IPC_NS) | LAYER_BIT(LAYER_UTS_NS) |                 \
     LAYER_BIT(LAYER_ROOT) | LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS) |               \
     LAYER_BIT(LAYER_SECCOMP))
/* These carry the others (the own root lives in its mount namespace, PID 1 ends a box, the
 * user namespace is what makes root's powers end at the box), so they can't be let go. */
#define LAYER_NEVER_MISSING                                                                        \
    (LAYER_BIT(LAYER_USER_NS) | LAYER_BIT(LAYER_PID_NS) | LAYER_BIT(LAYER_MOUNT_NS) |              \
     LAYER_BIT(LAYER_ROOT) | LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_SECCOMP))

/* "user_ns", ... ; static storage. */
const char *layer_name(enum layer layer);
/* -1 if no layer has that name. */
int layer_from_name(const char *name, unsigned long len);

#endif
