/*
 * cgroup.c - a box's own cgroup: limits before the first process, what the kernel counted, the
 * end. Where it comes from is in cgroup_find.c (looking), cgroup_place.c (slice, delegated
 * subtree), cgroup_sweep.c (leftovers) and cgroup_scope.c (the user's systemd).
 */
#include "kernel/cgroup_internal.h"

#include "kernel/spawn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* cpu.max counts microseconds in a period; 100 ms is the kernel's default period, and 0.01 CPU
 * of it is the smallest quota that it takes. */
enum { CPU_PERIOD_USEC = 100000, STAT_TEXT = 4096 };

static void keeper_end(struct cgroup_keeper *keeper)
{
    if (keeper->pidfd >= 0)
        spawn_end(keeper->pid, keeper->pidfd);
    close_fd(&keeper->pidfd);
    close_fd(&keeper->hold_fd);
}

void cgroup_close(struct cgroup *cgroup)
{
    scope_close(cgroup);
    keeper_end(&cgroup->keeper);
    close_fd(&cgroup->dir_fd);
    close_fd(&cgroup->events_fd);
    close_fd(&cgroup->memory_events_fd);
    close_fd(&cgroup->cpu_stat_fd);
    close_fd(&cgroup->kill_fd);
    close_fd(&cgroup->place_fd);
}

static int write_number(int dir_fd, const char *file, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return file_write(dir_fd, file, text);
}

/* True if the system could swap pages out at all. */
static bool has_swap(void)
{
    char text[STAT_TEXT];
    /* A header line, then one line an area. Unreadable counts as "yes". */
    return file_read(AT_FDCWD, "/proc/swaps", text, sizeof(text)) < 0 || strchr(text, '\n');
}

/* Nothing of a memory limit that isn't kept may stay: a kill by it would have no name. */
static int unlimit_memory(const struct cgroup *cgroup)
{
    (void)file_write(cgroup->dir_fd, "memory.oom.group", "0");
    (void)file_write(cgroup->dir_fd, "memory.swap.max", "max");
    (void)file_write(cgroup->dir_fd, "memory.zswap.max", "max");
    return file_write(cgroup->dir_fd, "memory.max", "max");
}

/* Without these files the kernel doesn't account swap, or has none. Swap that isn't accounted is
 * memory that the limit doesn't see. */
static int limit_swap(const struct cgroup *cgroup, struct cause cause)
{
    int r = file_write(cgroup->dir_fd, "memory.swap.max", "0");
    if (r == -ENOENT && has_swap()) {
        cause_set(cause, "the kernel doesn't account swap, which would hold what memory.max "
                         "doesn't: swapoff, or boot with swapaccount=1");
        return -ENOTSUP;
    }
    if (r == 0 || r == -ENOENT)
        r = file_write(cgroup->dir_fd, "memory.zswap.max", "0");
    return r == -ENOENT ? 0 : r;
}

static int limit_memory(const struct cgroup *cgroup, struct cause cause)
{
    int r = write_number(cgroup->dir_fd, "memory.max", cgroup->limits.memory_bytes);
    if (r < 0)
        return r;
    r = limit_swap(cgroup, cause);
    if (r == 0)
        r = file_write(cgroup->dir_fd, "memory.oom.group", "1");
    if (r == 0)
        return 0;
    cause_set(cause, "the memory limit was refused by the kernel: %s", error_text(-r));
    int undone = unlimit_memory(cgroup);
    /* A leaf that keeps it all the same is no use: the caller makes another, or none. */
    return undone < 0 ? -ENODEV : r == -ENOENT || r == -ENODEV ? -ENOTSUP : r;
}

static int limit_pids(const struct cgroup *cgroup, struct cause cause)
{
    (void)cause;
    /* Where no cgroup counts memory, init has a second thread that does. */
    uint64_t watchdog = cgroup->controllers & CGROUP_MEMORY ? 0 : 1;
    return write_number(cgroup->dir_fd, "pids.max", cgroup->limits.pids + watchdog);
}

static int limit_cpu(const struct cgroup *cgroup, struct cause cause)
{
    (void)cause;
    char text[64];
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %d",
                   cgroup->limits.cpus_milli * (CPU_PERIOD_USEC / 1000), CPU_PERIOD_USEC);
    return file_write(cgroup->dir_fd, "cpu.max", text);
}

int leaf_limit(struct cgroup *cgroup, struct cause cause)
{
    const struct {
        unsigned bit;
        uint64_t value;
        int (*apply)(const struct cgroup *, struct cause);
    } limits[] = {
        {CGROUP_MEMORY, cgroup->limits.memory_bytes, limit_memory},
        {CGROUP_PIDS, cgroup->limits.pids, limit_pids},
        {CGROUP_CPU, cgroup->limits.cpus_milli, limit_cpu},
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (!(cgroup->controllers & limits[i].bit) || limits[i].value == 0)
            continue;
        int r = limits[i].apply(cgroup, cause);
        if (r == -ENOENT || r == -ENODEV)
            return r; /* the leaf is gone: the caller makes another */
        if (r < 0) {
            char name[32];
            cause_set(cause, "the %s limit was refused by the kernel: %s",
                      controllers_text(limits[i].bit, name), error_text(-r));
            cgroup->controllers &= ~limits[i].bit;
        }
    }
    return 0;
}

/* kernfs marks a file as changed for a poll only after it has been read once. */
static int open_read_once(int dir_fd, const char *file, int *fd)
{
    char text[STAT_TEXT];
    *fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 || pread(*fd, text, sizeof(text), 0) < 0)
        return -errno;
    return 0;
}

int leaf_open_events(struct cgroup *cgroup)
{
    int r = open_read_once(cgroup->dir_fd, "cgroup.events", &cgroup->events_fd);
    if (r == 0 && (cgroup->controllers & CGROUP_MEMORY))
        r = open_read_once(cgroup->dir_fd, "memory.events", &cgroup->memory_events_fd);
    if (r < 0)
        return r;
    cgroup->cpu_stat_fd = openat(cgroup->dir_fd, "cpu.stat", O_RDONLY | O_CLOEXEC);
    return cgroup->cpu_stat_fd < 0 ? -errno : 0;
}

static int pread_text(int fd, char text[static STAT_TEXT])
{
    ssize_t len = pread(fd, text, STAT_TEXT - 1, 0);
    if (len < 0)
        return -errno;
    text[len] = '\0';
    return 0;
}

uint64_t cgroup_cpu_usec(const struct cgroup *cgroup)
{
    char text[STAT_TEXT];
    if (cgroup->cpu_stat_fd < 0 || pread_text(cgroup->cpu_stat_fd, text) < 0)
        return CGROUP_UNKNOWN;
    return text_value(text, "usage_usec");
}

int cgroup_populated(const struct cgroup *cgroup)
{
    char text[STAT_TEXT];
    int r = cgroup->events_fd < 0 ? -EBADF : pread_text(cgroup->events_fd, text);
    return r < 0 ? r : text_value(text, "populated") == 1;
}

static void usage_memory(const struct cgroup *cgroup, struct cgroup_usage *usage)
{
    char text[STAT_TEXT];
    usage->memory_peak_bytes = file_number(cgroup->dir_fd, "memory.peak");
    usage->memory_bytes = file_number(cgroup->dir_fd, "memory.current");
    if (cgroup->memory_events_fd >= 0 && pread_text(cgroup->memory_events_fd, text) == 0) {
        usage->memory_max_events = text_value(text, "max");
        usage->oom_kills = text_value(text, "oom_kill");
    }
}

static void usage_pids(const struct cgroup *cgroup, struct cgroup_usage *usage)
{
    char text[STAT_TEXT];
    usage->pids_peak = file_number(cgroup->dir_fd, "pids.peak");
    if (file_read(cgroup->dir_fd, "pids.events", text, sizeof(text)) == 0)
        usage->pids_denied = text_value(text, "max");
}

int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *ret_usage,
                 struct hutch_error *err)
{
    if (cgroup->dir_fd < 0)
        return error_set(err, HUTCH_STAGE_CGROUP, EBADF, "read the usage of a cgroup not there");
    struct cgroup_usage usage;
    memset(&usage, 0xff, sizeof(usage)); /* every number CGROUP_UNKNOWN */
    usage.cpu_usec = cgroup_cpu_usec(cgroup);
    if (cgroup->controllers & CGROUP_MEMORY)
        usage_memory(cgroup, &usage);
    if (cgroup->controllers & CGROUP_PIDS)
        usage_pids(cgroup, &usage);
    *ret_usage = usage;
    return 0;
}

static int kill_all(const struct cgroup *cgroup)
{
    /* A scope that couldn't be completed has a leaf that isn't locked. */
    if (cgroup->kill_fd < 0)
        return file_write(cgroup->dir_fd, "cgroup.kill", "1");
    return write(cgroup->kill_fd, "1", 1) < 0 ? -errno : 0;
}

int cgroup_kill(struct cgroup *cgroup, struct hutch_error *err)
{
    int r = cgroup->dir_fd < 0 ? 0 : kill_all(cgroup);
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_CGROUP, r, "kill the processes of %s", cgroup->path);
    return 0;
}

int cgroup_destroy(struct cgroup *cgroup, int timeout_ms, struct hutch_error *err)
{
    if (cgroup->dir_fd < 0) {
        cgroup_close(cgroup);
        return 0;
    }
    int r = 0;
    if (cgroup_populated(cgroup) != 0)
        r = cgroup_kill(cgroup, err);
    if (r < 0)
        return r;
    r = populated_wait(cgroup->events_fd, timeout_ms);
    if (r == 0)
        r = directory_remove(cgroup->place_fd, cgroup->name);
    if (r == -EBUSY || r == -EAGAIN)
        return error_set(err, HUTCH_STAGE_CGROUP, EAGAIN, "%s still holds processes", cgroup->path);
    if (r < 0 && r != -ENOENT)
        return error_errno(err, HUTCH_STAGE_CGROUP, r, "remove %s", cgroup->path);
    place_leave(cgroup->kind, cgroup->place_fd);
    cgroup_close(cgroup);
    return 0;
}

static int create_scope(struct cgroup *cgroup, struct cause cause)
{
    leaf_name(cgroup->name, sizeof(cgroup->name));
    cgroup->deferred = true;
    return scope_connect(cgroup, cause);
}

static int create_at(const struct cgroup_place *place, struct cgroup *cgroup, struct cause cause)
{
    cgroup->kind = place->kind;
    cgroup->controllers = place->controllers & cgroup->wanted;
    if (place->kind == CGROUP_SCOPE)
        return create_scope(cgroup, cause);
    return place_leaf(place, cgroup, cause);
}

static bool out_of_resources(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

static int create_found(const struct cgroup_place *place, const struct cgroup_limits *limits,
                        unsigned wanted, struct cgroup *ret, struct cause cause,
                        struct hutch_error *err)
{
    _cleanup_cgroup_ struct cgroup cgroup = CGROUP;
    cgroup.limits = *limits;
    cgroup.wanted = wanted;
    int r = create_at(place, &cgroup, cause);
    if (out_of_resources(r))
        return error_errno(err, HUTCH_STAGE_CGROUP, r, "make a cgroup in %s", place->path);
    if (r < 0)
        cause_set(cause, "a cgroup can't be made in %.160s: %s", place->path, error_text(-r));
    if (r != 0)
        return 1;
    if (wanted && !cgroup.controllers && !cgroup.deferred) {
        (void)cgroup_destroy(&cgroup, 0, NULL);
        return 1;
    }
    *ret = cgroup;
    cgroup = CGROUP;
    return 0;
}

int cgroup_create(const struct cgroup_place *place, const struct cgroup_limits *limits,
                  unsigned wanted, struct cgroup *ret, char *cause, size_t cause_len,
                  struct hutch_error *err)
{
    _cleanup_cgroup_place_ struct cgroup_place found = CGROUP_PLACE;
    if (place && cause_len)
        cause[0] = '\0';
    if (!place) {
        int r = cgroup_find(wanted, &found, cause, cause_len, err);
        if (r != 0)
            return r;
        place = &found;
    }
    return create_found(place, limits, wanted, ret, (struct cause){cause, cause_len}, err);
}

int cgroup_adopt(struct cgroup *cgroup, pid_t pid, const struct cgroup_keeper *keeper,
                 struct hutch_error *err)
{
    if (!cgroup->deferred || cgroup->dir_fd >= 0)
        return error_set(err, HUTCH_STAGE_CGROUP, EINVAL, "adopt into a cgroup that is there");
    cgroup->keeper = *keeper;
    int r = scope_adopt(cgroup, pid, err);
    scope_close(cgroup);
    return r;
}
