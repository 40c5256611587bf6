/*
 * cgroup_place.c - the directory above the boxes: made fit for them, swept, given back.
 *
 * Several hutch processes share a place. In the slice nothing is locked: whoever finds that the
 * slice went away under it starts over, and rmdir refuses a slice that isn't empty. In a
 * delegated subtree processes are moved to and fro, so that changes to it are made under a lock
 * (flock on the directory, held for microseconds, waited for with a bound).
 */
#include "kernel/cgroup_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

enum {
    LEAF_TRIES = 64,
    LOCK_TIMEOUT_MS = 10000,
    LOCK_PAUSE_MS = 16,
    SWEEP_MAX = 64, /* boxes looked at by one run, so that a thousand others cost it nothing */
    SWEEP_WAIT_MS = 1000,
    DEPTH_MAX = 32,
};

/* ---- one directory ---- */

void leaf_name(char *name, size_t size)
{
    unsigned long long bits = 0;
    /* Never short for 8 bytes; an early-boot kernel without entropy still gives the name its
     * pid, and mkdir refuses a second of the same name. */
    (void)!getrandom(&bits, sizeof(bits), GRND_NONBLOCK);
    (void)snprintf(name, size, "hutch-%d-%016llx", getpid(), bits);
}

bool leaf_name_is_ours(const char *name)
{
    if (strncmp(name, "hutch-", 6) != 0)
        return false;
    const char *pid = name + 6;
    size_t digits = strspn(pid, "0123456789");
    if (digits == 0 || pid[digits] != '-')
        return false;
    const char *bits = pid + digits + 1;
    return strspn(bits, "0123456789abcdef") == 16 && bits[16] == '\0';
}

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

/* kernfs counts child directories as links; -1 if unknown. */
static int child_count(int dir_fd)
{
    struct stat st;
    return fstat(dir_fd, &st) < 0 ? -1 : (int)st.st_nlink - 2;
}

static long long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int populated_wait(int events_fd, int timeout_ms)
{
    long long deadline = now_ms() + timeout_ms;
    for (;;) {
        char text[256];
        ssize_t len = pread(events_fd, text, sizeof(text) - 1, 0);
        if (len < 0)
            return errno == ENODEV ? 0 : -errno; /* removed already */
        text[len] = '\0';
        if (text_value(text, "populated") == 0)
            return 0;
        long long left = deadline - now_ms();
        struct pollfd event = {.fd = events_fd, .events = POLLPRI};
        if (left <= 0 || (poll(&event, 1, (int)left) < 0 && errno != EINTR))
            return -EAGAIN;
    }
}

static int lock_bounded(int dir_fd)
{
    long long deadline = now_ms() + LOCK_TIMEOUT_MS;
    int pause_ms = 1;
    while (flock(dir_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (now_ms() >= deadline)
            return -ETIMEDOUT;
        (void)poll(NULL, 0, pause_ms);
        pause_ms = pause_ms < LOCK_PAUSE_MS ? pause_ms * 2 : LOCK_PAUSE_MS;
    }
    return 0;
}

/* ---- leftovers of crashed runs ---- */

static void sweep_one(int place_fd, const char *name)
{
    _cleanup_close_ int fd = directory_open(place_fd, name);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return; /* gone, or its owner lives */
    _cleanup_close_ int events_fd = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events_fd < 0 || file_write(fd, "cgroup.kill", "1") < 0)
        return;
    (void)populated_wait(events_fd, SWEEP_WAIT_MS);
    (void)directory_remove(place_fd, name);
}

void place_sweep(int place_fd)
{
    if (child_count(place_fd) == 0)
        return;
    DIR *dir = directory_list(place_fd);
    if (!dir)
        return;
    int seen = 0;
    for (struct dirent *entry; seen < SWEEP_MAX && (entry = readdir(dir));) {
        if (!is_child(entry) || !leaf_name_is_ours(entry->d_name))
            continue;
        seen++;
        sweep_one(place_fd, entry->d_name);
    }
    (void)closedir(dir);
}

/* ---- controllers ---- */

static void control_text(char sign, unsigned controllers, char text[static 64])
{
    (void)snprintf(text, 64, "%s%s%s", controllers & CGROUP_MEMORY ? "+memory " : "",
                   controllers & CGROUP_PIDS ? "+pids " : "",
                   controllers & CGROUP_CPU ? "+cpu" : "");
    for (char *c = text; *c; c++)
        if (*c == '+')
            *c = sign;
}

static int control_write(int dir_fd, char sign, unsigned controllers)
{
    char text[64];
    control_text(sign, controllers, text);
    return file_write(dir_fd, "cgroup.subtree_control", text);
}

int place_enable(int dir_fd, unsigned wanted, unsigned *ret_enabled)
{
    unsigned enabled;
    int r = file_controllers(dir_fd, "cgroup.subtree_control", &enabled);
    if (r < 0)
        return r;
    unsigned missing = wanted & ~enabled;
    if (missing) {
        r = control_write(dir_fd, '+', missing);
        if (r == -EBUSY)
            return r;
        /* All or nothing: one that can't be had mustn't cost us the others. */
        for (unsigned bit = 1; r < 0 && bit <= CGROUP_ALL; bit <<= 1)
            if ((missing & bit) && control_write(dir_fd, '+', bit) < 0)
                missing &= ~bit;
    }
    *ret_enabled = wanted & (enabled | missing);
    return 0;
}

/* ---- the leaf ---- */

static int fill_leaf(struct cgroup *cgroup, struct cause cause)
{
    cgroup->dir_fd = directory_open(cgroup->place_fd, cgroup->name);
    if (cgroup->dir_fd < 0)
        return cgroup->dir_fd;
    /* Between mkdir and this lock another run's sweep may have taken it for a leftover. */
    if (flock(cgroup->dir_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -ENOENT : -errno;
    int r = leaf_limit(cgroup, cause);
    return r < 0 ? r : leaf_open_events(cgroup);
}

static int make_leaf(struct cgroup *cgroup, struct cause cause)
{
    leaf_name(cgroup->name, sizeof(cgroup->name));
    if (mkdirat(cgroup->place_fd, cgroup->name, 0755) < 0)
        return -errno;
    int r = fill_leaf(cgroup, cause);
    if (r < 0) {
        close_fd(&cgroup->events_fd);
        close_fd(&cgroup->memory_events_fd);
        close_fd(&cgroup->dir_fd);
        (void)unlinkat(cgroup->place_fd, cgroup->name, AT_REMOVEDIR);
    }
    return r;
}

static int enable_for(struct cgroup *cgroup, int dir_fd, struct cause cause)
{
    unsigned enabled = 0;
    int r = place_enable(dir_fd, cgroup->controllers, &enabled);
    if (r < 0)
        return r;
    char names[32];
    if (cgroup->controllers & ~enabled)
        cause_set(cause, "the kernel refused to enable the controllers %s",
                  controllers_text(cgroup->controllers & ~enabled, names));
    cgroup->controllers = enabled;
    return 0;
}

/* ---- the slice ---- */

static int leaf_in_slice(struct cgroup *cgroup, bool fresh, struct cause cause)
{
    int r = enable_for(cgroup, cgroup->place_fd, cause);
    if (r < 0)
        return r;
    if (!fresh)
        place_sweep(cgroup->place_fd);
    return make_leaf(cgroup, cause);
}

static void slice_leave(int slice_fd)
{
    _cleanup_close_ int above_fd = directory_open(slice_fd, "..");
    if (above_fd >= 0)
        (void)unlinkat(above_fd, SLICE_NAME, AT_REMOVEDIR); /* refused while a box is in it */
}

static int slice_leaf(const struct cgroup_place *place, struct cgroup *cgroup, struct cause cause)
{
    int r = enable_for(cgroup, place->fd, cause);
    if (r < 0)
        return r;
    bool fresh = mkdirat(place->fd, SLICE_NAME, 0755) == 0;
    if (!fresh && errno != EEXIST)
        return -errno;
    cgroup->place_fd = directory_open(place->fd, SLICE_NAME);
    r = cgroup->place_fd < 0 ? cgroup->place_fd : leaf_in_slice(cgroup, fresh, cause);
    if (r < 0)
        (void)unlinkat(place->fd, SLICE_NAME, AT_REMOVEDIR); /* refused while a box is in it */
    (void)snprintf(cgroup->path, sizeof(cgroup->path), "%.4000s/" SLICE_NAME "/%s", place->path,
                   cgroup->name);
    return r;
}

/* ---- the delegated subtree ---- */

/* The kernel lets no cgroup have both processes and controllers for its children. */
static int move_hosts_down(int place_fd)
{
    if (mkdirat(place_fd, HOST_LEAF, 0755) < 0 && errno != EEXIST)
        return -errno;
    _cleanup_close_ int host_fd = directory_open(place_fd, HOST_LEAF);
    return host_fd < 0 ? host_fd : processes_move(place_fd, host_fd);
}

static void move_hosts_up(int place_fd)
{
    _cleanup_close_ int host_fd = directory_open(place_fd, HOST_LEAF);
    unsigned enabled;
    /* Only with nothing but the host leaf below: what others made there keeps its limits. */
    if (host_fd < 0 || child_count(place_fd) != 1 ||
        file_controllers(place_fd, "cgroup.subtree_control", &enabled) < 0)
        return;
    if (enabled && control_write(place_fd, '-', enabled) < 0)
        return;
    if (processes_move(host_fd, place_fd) == 0)
        (void)unlinkat(place_fd, HOST_LEAF, AT_REMOVEDIR);
}

static int enable_delegated(struct cgroup *cgroup, struct cause cause)
{
    int r = enable_for(cgroup, cgroup->place_fd, cause);
    /* Again if a process was born into the place between the move and the enabling. */
    for (int round = 0; r == -EBUSY && round < LEAF_TRIES; round++) {
        r = move_hosts_down(cgroup->place_fd);
        if (r < 0) {
            cause_set(cause,
                      "the processes in the delegated cgroup can't be moved to make room "
                      "for boxes: %s",
                      error_text(-r));
            return r == -EBUSY ? -EAGAIN : r;
        }
        r = enable_for(cgroup, cgroup->place_fd, cause);
    }
    return r;
}

static int delegated_leaf(const struct cgroup_place *place, struct cgroup *cgroup,
                          struct cause cause)
{
    /* An fd of its own: the lock belongs to the open file, and the place is shared. */
    cgroup->place_fd = directory_open(place->fd, ".");
    if (cgroup->place_fd < 0)
        return cgroup->place_fd;
    if (place->asked)
        (void)fsetxattr(cgroup->place_fd, DELEGATED_MARK, "1", 1, 0);
    int r = lock_bounded(cgroup->place_fd);
    if (r < 0)
        return r;
    place_sweep(cgroup->place_fd);
    r = enable_delegated(cgroup, cause);
    if (r == 0)
        r = make_leaf(cgroup, cause);
    if (r < 0)
        move_hosts_up(cgroup->place_fd);
    (void)flock(cgroup->place_fd, LOCK_UN);
    (void)snprintf(cgroup->path, sizeof(cgroup->path), "%.4000s/%s", place->path, cgroup->name);
    return r;
}

/* ---- both ---- */

int place_leaf(const struct cgroup_place *place, struct cgroup *cgroup, struct cause cause)
{
    unsigned controllers = cgroup->controllers;
    int r = -ENOENT;
    for (int i = 0; i < LEAF_TRIES && (r == -ENOENT || r == -ENODEV || r == -EEXIST); i++) {
        close_fd(&cgroup->place_fd);
        cgroup->controllers = controllers;
        r = place->kind == CGROUP_SLICE ? slice_leaf(place, cgroup, cause)
                                        : delegated_leaf(place, cgroup, cause);
    }
    return r;
}

void place_leave(enum cgroup_kind kind, int place_fd)
{
    if (kind == CGROUP_SLICE) {
        slice_leave(place_fd);
    } else if (kind == CGROUP_DELEGATED && child_count(place_fd) == 1) {
        if (lock_bounded(place_fd) == 0)
            move_hosts_up(place_fd);
        (void)flock(place_fd, LOCK_UN);
    }
}
