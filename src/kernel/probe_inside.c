/*
 * probe_inside.c - what is attempted inside the doctor's box. Runs there as the box's program:
 * plain system calls, so that no tool of the machine stands between the attempt and the wall.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/probe.h"

const struct probe_attempt PROBE_ATTEMPTS[PROBE_ATTEMPTS_COUNT] = {
    [PROBE_ATTEMPT_NETWORK] = {"network", "connecting to a listener of the host's on 127.0.0.1"},
    [PROBE_ATTEMPT_HOST_FILE] = {"host_file", "opening a file of the host's"},
    [PROBE_ATTEMPT_ENVIRONMENT] = {"environment", "reading an environment variable of the host's"},
    [PROBE_ATTEMPT_USR_WRITE] = {"usr_write", "making a file in /usr"},
    [PROBE_ATTEMPT_MOUNT] = {"mount", "mounting a file system"},
    [PROBE_ATTEMPT_USER_NS] = {"user_ns", "making a user namespace"},
    [PROBE_ATTEMPT_ROOT_ID] = {"root_id", "becoming user 0"},
};

static bool can_connect(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 &&
           connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0;
}

static bool can_open(const char *path, int flags)
{
    _cleanup_close_ int fd = open(path, flags | O_CLOEXEC, 0600);

    return fd >= 0;
}

/* Outside a box it may work: then it is taken away again. */
static bool can_make(const char *path)
{
    return can_open(path, O_WRONLY | O_CREAT | O_EXCL) && unlink(path) == 0;
}

bool probe_try(enum probe_attempt_index attempt, const struct probe_baits *baits)
{
    switch (attempt) {
    case PROBE_ATTEMPT_NETWORK:
        return can_connect(baits->port);
    case PROBE_ATTEMPT_HOST_FILE:
        return can_open(baits->file, O_RDONLY);
    case PROBE_ATTEMPT_ENVIRONMENT:
        return getenv(baits->variable) != NULL;
    case PROBE_ATTEMPT_USR_WRITE:
        return can_make("/usr/hutch-doctor");
    case PROBE_ATTEMPT_MOUNT:
        return mount("hutch-doctor", "/tmp", "tmpfs", 0, NULL) == 0;
    case PROBE_ATTEMPT_USER_NS:
        return syscall(SYS_unshare, CLONE_NEWUSER) == 0;
    case PROBE_ATTEMPT_ROOT_ID:
        return setresuid(0, 0, 0) == 0;
    default:
        return true;
    }
}
