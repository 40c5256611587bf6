#include "base/layer.h"

#include <stddef.h>
#include <string.h>

static const char *const NAMES[LAYER_COUNT] = {
    [LAYER_USER_NS] = "user_ns",
    [LAYER_PID_NS] = "pid_ns",
    [LAYER_MOUNT_NS] = "mount_ns",
    [LAYER_NET_NS] = "net_ns",
    [LAYER_IPC_NS] = "ipc_ns",
    [LAYER_UTS_NS] = "uts_ns",
    [LAYER_CGROUP_NS] = "cgroup_ns",
    [LAYER_TIME_NS] = "time_ns",
    [LAYER_ROOT] = "root",
    [LAYER_CAPS] = "caps",
    [LAYER_NO_NEW_PRIVS] = "no_new_privs",
    [LAYER_SECCOMP] = "seccomp",
    [LAYER_LANDLOCK] = "landlock",
    [LAYER_CGROUP] = "cgroup",
    [LAYER_MEMORY] = "memory",
    [LAYER_PIDS] = "pids",
    [LAYER_CPU] = "cpu",
};

const char *layer_name(enum layer layer)
{
    return (unsigned)layer < LAYER_COUNT ? NAMES[layer] : "unknown";
}

int layer_from_name(const char *name, unsigned long len)
{
    for (int i = 0; i < LAYER_COUNT; i++) {
        if (strlen(NAMES[i]) == len && memcmp(NAMES[i], name, len) == 0)
            return i;
    }
    return -1;
}
