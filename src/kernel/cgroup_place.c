/*
 * cgroup_place.c - the directory above the boxes: made fit for them, given back.
 *
 * Several hutch processes share a place. In the slice nothing is locked: whoever finds that the
 * slice went away under it starts over, and rmdir refuses a slice that isn't empty. In a
 * delegated subtree processes are moved to and fro, so that changes to it are made under a lock
 * (held for microseconds as a rule, waited for with a bound).
 *
 * That lock is on a file that nobody else can open: the place's own cgroup.kill, or where that is
 * another's (a service with User=) the one of the host leaf, which is ours and goes with the last
 * box. Who has waited for it looks whether it is still the one.
 */
#include "kernel/cgroup_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#define PLACE_LOCK "cgroup.kill"
#define HOST_LOCK HOST_LEAF "/cgroup.kill"

enum {
    LEAF_TRIES = 64,
    LOCK_MS = 10000,
    MOVE_MS = 1000, /* for neighbours that are just exiting */
    PAUSE_MAX_MS = 16,
};

/* ---- time ---- */

long long cgroup_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Something that can only be tried again and again: 1, 2, 4 .. 16 ms between, within a bound. */
struct patience {
    long long deadline_ms;
    int pause_ms;
};

static struct patience patience_for(int ms)
{
    return (struct patience){cgroup_now_ms() + ms, 1};
}

/* False: it is over. */
static bool patience_pause(struct patience *patience)
{
    if (cgroup_now_ms() >= patience->deadline_ms)
        return false;
    (void)poll(NULL, 0, patience->pause_ms);
    patience->pause_ms *= 2;
    if (patience->pause_ms > PAUSE_MAX_MS)
        patience->pause_ms = PAUSE_MAX_MS;
    return true;
}

/* ---- the leaf ---- */

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

static int fill_leaf(struct cgroup *cgroup, struct cause cause)
{
    cgroup->dir_fd = directory_open(cgroup->place_fd, cgroup->name);
    if (cgroup->dir_fd < 0)
        return cgroup->dir_fd;
    /* Between mkdir and this lock another run's sweep may have taken it for a leftover. */
    int r = kill_lock(cgroup->dir_fd, &cgroup->kill_fd);
    if (r < 0)
        return r == -EWOULDBLOCK ? -ENOENT : r;
    r = leaf_limit(cgroup, cause);
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
        close_fd(&cgroup->kill_fd);
        close_fd(&cgroup->dir_fd);
        (void)unlinkat(cgroup->place_fd, cgroup->name, AT_REMOVEDIR);
    }
    return r;
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

int place_enable(int dir_fd, unsigned wanted, unsigned *ret_enabled, unsigned *ret_added)
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
    *ret_added = missing;
    return 0;
}

static int enable_for(struct cgroup *cgroup, int dir_fd, unsigned *ret_added, struct cause cause)
{
    unsigned enabled = 0;
    int r = place_enable(dir_fd, cgroup->controllers, &enabled, ret_added);
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
    unsigned added;
    int r = enable_for(cgroup, cgroup->place_fd, &added, cause);
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
    unsigned added;
    int r = enable_for(cgroup, place->fd, &added, cause);
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

/* ---- the delegated subtree: its lock ---- */

static const char *lock_file(int place_fd)
{
    struct stat st;
    bool ours = fstatat(place_fd, PLACE_LOCK, &st, 0) == 0 && st.st_uid == geteuid();
    return ours ? PLACE_LOCK : HOST_LOCK;
}

static int lock_open(int place_fd, const char *file)
{
    for (int i = 0; i < LEAF_TRIES; i++) {
        int fd = openat(place_fd, file, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (errno != ENOENT && errno != ENODEV)
            return -errno;
        if (mkdirat(place_fd, HOST_LEAF, 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    return -EOPNOTSUPP;
}

/* Not if the host leaf went away, and perhaps came again, while we waited. */
static bool lock_is_the_one(int lock_fd, int place_fd, const char *file)
{
    struct stat locked, there;
    return fstat(lock_fd, &locked) == 0 && fstatat(place_fd, file, &there, 0) == 0 &&
           locked.st_ino == there.st_ino;
}

static int place_lock(int place_fd, int timeout_ms, int *ret_lock_fd)
{
    const char *file = lock_file(place_fd);
    struct patience patience = patience_for(timeout_ms);
    do {
        _cleanup_close_ int fd = lock_open(place_fd, file);
        if (fd < 0)
            return fd;
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (!locked && errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (locked && lock_is_the_one(fd, place_fd, file)) {
            *ret_lock_fd = take_fd(&fd);
            return 0;
        }
    } while (patience_pause(&patience));
    return -ETIMEDOUT;
}

/* ---- the delegated subtree: its own processes ---- */

/*
 * 1: processes have to go first, which the kernel wouldn't say. With the memory controller no
 * cgroup has both processes and controllers for its children, and enabling answers EBUSY. All
 * the others of ours are threaded: enabled beside processes they make a thread root of the
 * directory, in which no box can be. (Not once there are processes further down; so the hosts,
 * us among them, being in their leaf is enough.)
 */
static int is_crowded(int place_fd, unsigned enabled)
{
    char first[2];
    if (enabled & CGROUP_MEMORY)
        return 0;
    int r = file_read(place_fd, "cgroup.procs", first, sizeof(first));
    return r < 0 ? r : first[0] != '\0';
}

static int make_host_leaf(int place_fd)
{
    if (mkdirat(place_fd, HOST_LEAF, 0755) < 0 && errno != EEXIST)
        return -errno;
    return directory_open(place_fd, HOST_LEAF);
}

/* A thread root already (somebody else enabled controllers beside processes): not any more. */
static int unthread(int place_fd)
{
    unsigned enabled = 0;
    int r = file_controllers(place_fd, "cgroup.subtree_control", &enabled);
    if (r == 0 && (!enabled || directory_children(place_fd) != 1))
        return -EOPNOTSUPP;
    return r < 0 ? r : control_write(place_fd, '-', enabled);
}

static int move_hosts_down(int place_fd)
{
    _cleanup_close_ int host_fd = make_host_leaf(place_fd);
    int r = host_fd < 0 ? host_fd : processes_move(place_fd, host_fd);
    if (r != -EOPNOTSUPP)
        return r;
    r = unthread(place_fd);
    return r < 0 ? r : processes_move(place_fd, host_fd);
}

static void move_hosts_up(int place_fd)
{
    _cleanup_close_ int host_fd = directory_open(place_fd, HOST_LEAF);
    unsigned enabled;
    /* Only with nothing but the host leaf below: what others made there keeps its limits. */
    if (host_fd < 0 || directory_children(place_fd) != 1 ||
        file_controllers(place_fd, "cgroup.subtree_control", &enabled) < 0) {
        (void)unlinkat(place_fd, HOST_LEAF, AT_REMOVEDIR); /* there for its lock alone? */
        return;
    }
    if (enabled && control_write(place_fd, '-', enabled) < 0)
        return;
    struct patience patience = patience_for(MOVE_MS);
    do {
        if (processes_move(host_fd, place_fd) < 0 ||
            unlinkat(place_fd, HOST_LEAF, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
    } while (patience_pause(&patience));
}

/* Who is exiting can't be moved any more, and may take its time: again, for a while. */
static int make_room(struct cgroup *cgroup, bool crowded, unsigned *ret_added, struct cause cause)
{
    struct patience patience = patience_for(MOVE_MS);
    int r;
    do {
        r = crowded ? move_hosts_down(cgroup->place_fd) : 0;
        if (r < 0)
            break;
        r = enable_for(cgroup, cgroup->place_fd, ret_added, cause);
        if (r != -EBUSY)
            return r;
        crowded = true;
    } while (patience_pause(&patience));
    cause_set(cause,
              "the processes in the delegated cgroup can't be moved to make room for boxes: %s",
              error_text(-r));
    return r;
}

static int enable_delegated(struct cgroup *cgroup, unsigned *ret_added, struct cause cause)
{
    unsigned enabled = 0;
    int r = file_controllers(cgroup->place_fd, "cgroup.subtree_control", &enabled);
    /* As the last box left it, in nearly every run but the first. */
    if (r < 0 || ((enabled & CGROUP_MEMORY) && !(cgroup->controllers & ~enabled)))
        return r;
    r = is_crowded(cgroup->place_fd, enabled);
    return r < 0 ? r : make_room(cgroup, r == 1, ret_added, cause);
}

/* ---- the delegated subtree ---- */

static int leaf_in_delegated(struct cgroup *cgroup, struct cause cause)
{
    unsigned added = 0;
    int r = enable_delegated(cgroup, &added, cause);
    if (r == 0)
        r = make_leaf(cgroup, cause);
    if (r == 0)
        return 0;
    /* Under the lock nobody else of ours can have come to need them. */
    if (added)
        (void)control_write(cgroup->place_fd, '-', added);
    move_hosts_up(cgroup->place_fd);
    return r;
}

static int delegated_leaf(const struct cgroup_place *place, struct cgroup *cgroup,
                          struct cause cause)
{
    cgroup->place_fd = directory_open(place->fd, ".");
    if (cgroup->place_fd < 0)
        return cgroup->place_fd;
    if (place->asked)
        (void)fsetxattr(cgroup->place_fd, DELEGATED_MARK, "1", 1, 0);
    place_sweep(cgroup->place_fd);
    _cleanup_close_ int lock_fd = -1;
    int r = place_lock(cgroup->place_fd, LOCK_MS, &lock_fd);
    if (r == 0)
        r = leaf_in_delegated(cgroup, cause);
    (void)snprintf(cgroup->path, sizeof(cgroup->path), "%.4000s/%s", place->path, cgroup->name);
    return r;
}

static bool is_host_leaf_empty(int place_fd)
{
    char text[256];
    return file_read(place_fd, HOST_LEAF "/cgroup.events", text, sizeof(text)) == 0 &&
           text_value(text, "populated") == 0;
}

static void delegated_leave(int place_fd)
{
    _cleanup_close_ int lock_fd = -1;
    bool last = directory_children(place_fd) <= 1;
    if ((last || is_host_leaf_empty(place_fd)) &&
        place_lock(place_fd, last ? LOCK_MS : 0, &lock_fd) == 0)
        move_hosts_up(place_fd);
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
    if (kind == CGROUP_SLICE)
        slice_leave(place_fd);
    else if (kind == CGROUP_DELEGATED)
        delegated_leave(place_fd);
}
