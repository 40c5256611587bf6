/*
 * cgroup_sweep.c - what a directory of boxes has in it: counted, waited for, removed, and rid of
 * what dead owners left.
 *
 * An owner holds a lock (flock) on its box's cgroup.kill for as long as it lives. Any file that
 * can be opened can be locked; that one can be opened by its owner alone (mode 0200), so that
 * nobody else can keep a leftover from being swept, or make a box look like one.
 */
#include "kernel/cgroup_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Killed, waited for in vain: whoever comes next doesn't wait again. */
#define KILLED_MARK "user.hutch.killed"

enum {
    ALIVE_MAX = 64, /* living boxes met in one run, so that a thousand others cost it nothing */
    SWEEP_MS = 1000,
    WAIT_MS = 500, /* of these for what was killed to die */
    DEPTH_MAX = 32,
};

static DIR *directory_list(int dir_fd)
{
    int fd = directory_open(dir_fd, ".");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    return dir;
}

static bool is_child(const struct dirent *entry)
{
    return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

static int remove_nested(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    int error = -errno;
    _cleanup_close_ int fd = directory_open(parent_fd, name);
    DIR *dir = fd >= 0 && depth < DEPTH_MAX ? directory_list(fd) : NULL;
    if (!dir)
        return error;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (is_child(entry))
            (void)remove_nested(fd, entry->d_name, depth + 1);
    (void)closedir(dir);
    return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int directory_remove(int parent_fd, const char *name)
{
    return remove_nested(parent_fd, name, 0);
}

int directory_children(int dir_fd)
{
    struct stat st;
    return fstat(dir_fd, &st) < 0 ? -1 : (int)st.st_nlink - 2;
}

int populated_wait(int events_fd, int timeout_ms)
{
    long long deadline = cgroup_now_ms() + timeout_ms;
    for (;;) {
        char text[256];
        ssize_t len = pread(events_fd, text, sizeof(text) - 1, 0);
        if (len < 0)
            return errno == ENODEV ? 0 : -errno; /* removed already */
        text[len] = '\0';
        if (text_value(text, "populated") == 0)
            return 0;
        long long left = deadline - cgroup_now_ms();
        struct pollfd event = {.fd = events_fd, .events = POLLPRI};
        if (left <= 0 || (poll(&event, 1, (int)left) < 0 && errno != EINTR))
            return -EAGAIN;
    }
}

int kill_lock(int leaf_fd, int *ret_lock_fd)
{
    _cleanup_close_ int fd = openat(leaf_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    *ret_lock_fd = take_fd(&fd);
    return 0;
}

static void end_leftover(int place_fd, const char *name, int fd, int kill_fd, long long deadline)
{
    _cleanup_close_ int events_fd = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events_fd < 0 || write(kill_fd, "1", 1) < 0)
        return;
    char mark;
    bool again = fgetxattr(fd, KILLED_MARK, &mark, 1) == 1;
    long long left = deadline - (SWEEP_MS - WAIT_MS) - cgroup_now_ms();
    if (populated_wait(events_fd, again || left < 0 ? 0 : (int)left) == 0)
        (void)directory_remove(place_fd, name);
    else
        (void)fsetxattr(fd, KILLED_MARK, "1", 1, 0);
}

/* False if its owner lives. */
static bool sweep_one(int place_fd, const char *name, long long deadline)
{
    _cleanup_close_ int fd = directory_open(place_fd, name), kill_fd = -1;
    int r = fd < 0 ? fd : kill_lock(fd, &kill_fd);
    if (r == 0)
        end_leftover(place_fd, name, fd, kill_fd, deadline);
    return r != -EWOULDBLOCK;
}

/* Goes through the rest of the directory; false if it had enough. */
static bool sweep_on(DIR *dir, int place_fd, long long deadline, int *alive)
{
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!is_child(entry) || !leaf_name_is_ours(entry->d_name))
            continue;
        *alive += !sweep_one(place_fd, entry->d_name, deadline);
        if (*alive >= ALIVE_MAX || cgroup_now_ms() >= deadline)
            return false;
    }
    return true;
}

/* The positions of this file system's directories are hashes of the names, of 31 bits: where
 * there is more than one run looks at, each begins somewhere else. */
static void start_anywhere(DIR *dir)
{
    unsigned start = 0;
    (void)!getrandom(&start, sizeof(start), GRND_NONBLOCK);
    seekdir(dir, (long)(start & 0x7fffffff));
}

void place_sweep(int place_fd)
{
    int children = directory_children(place_fd), alive = 0;
    DIR *dir = children == 0 ? NULL : directory_list(place_fd);
    if (!dir)
        return;
    long long deadline = cgroup_now_ms() + SWEEP_MS;
    bool anywhere = children > ALIVE_MAX;
    if (anywhere)
        start_anywhere(dir);
    if (sweep_on(dir, place_fd, deadline, &alive) && anywhere) {
        rewinddir(dir);
        (void)sweep_on(dir, place_fd, deadline, &alive);
    }
    (void)closedir(dir);
}
