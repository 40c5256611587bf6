/*
 * userns.c - ids of a box.
 *
 * Root mode gives every box a host id of its own, so that two boxes can't signal or trace each
 * other even if every other wall fell, and so that a box's files are nobody's on the host. The id
 * is drawn from a range nobody else hands out.
 */
#include "kernel/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/num.h"
#include "kernel/caps.h"
#include "kernel/spawn.h"

#define RANGE_FIRST 1900000000U
#define RANGE_COUNT 90000000U
#define MAP_TEXT_MAX 65536
#define DRAWS 64

struct id_range {
    uint64_t first, count;
};

static int read_text(const char *path, struct buf *buf)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = buf_read_fd(buf, fd, MAP_TEXT_MAX);
    if (r < 0)
        return r;
    buf_put(buf, "", 1);
    return buf->failed;
}

/* "inside outside count" lines: is the id mapped in our own namespace? */
static bool map_has(const char *map, uint64_t id)
{
    while (*map != '\0') {
        unsigned long inside, outside, count;
        if (sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && id >= inside &&
            id - inside < count)
            return true;
        map += strcspn(map, "\n");
        map += *map == '\n';
    }
    return false;
}

bool userns_has_uid(uint32_t uid)
{
    _cleanup_buf_ struct buf map = BUF(0);

    return read_text("/proc/self/uid_map", &map) < 0 || map_has(map.data, uid);
}

/* Whom `id` is one level up; true if that is 0. */
static bool maps_to_root(const char *map, uint64_t id)
{
    while (*map != '\0') {
        unsigned long inside, outside, count;
        if (sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && id >= inside &&
            id - inside < count)
            return outside + (id - inside) == 0;
        map += strcspn(map, "\n");
        map += *map == '\n';
    }
    return false;
}

/* "name:first:count" lines of /etc/subuid. */
static bool is_allocated(const char *subids, uint64_t id)
{
    while (*subids != '\0') {
        const char *colon = strchr(subids, ':');
        unsigned long first, count;
        if (colon != NULL && sscanf(colon, ":%lu:%lu", &first, &count) == 2 && id >= first &&
            id - first < count)
            return true;
        subids += strcspn(subids, "\n");
        subids += *subids == '\n';
    }
    return false;
}

static int parse_range(const char *text, struct id_range *ret, struct hutch_error *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    char first[24] = "";
    int r;

    *ret = (struct id_range){RANGE_FIRST, RANGE_COUNT};
    if (text == NULL)
        return 0;
    if (colon == NULL || (size_t)(colon - text) >= sizeof(first))
        return error_request(err, "--host-ids: `%s` is not FIRST:COUNT", text);
    memcpy(first, text, (size_t)(colon - text));
    r = num_u64("--host-ids", first, 1, UINT32_MAX - 1, &ret->first, err);
    return r < 0 ? r
                 : num_u64("--host-ids", colon + 1, 1, UINT32_MAX - ret->first, &ret->count, err);
}

struct id_texts {
    struct buf uid_map, gid_map, subuid, subgid;
};

static void id_texts_free(struct id_texts *t)
{
    buf_free(&t->uid_map);
    buf_free(&t->gid_map);
    buf_free(&t->subuid);
    buf_free(&t->subgid);
}

static bool is_free(const struct id_texts *t, uint64_t id)
{
    return map_has(t->uid_map.data, id) && map_has(t->gid_map.data, id) &&
           (t->subuid.data == NULL || !is_allocated(t->subuid.data, id)) &&
           (t->subgid.data == NULL || !is_allocated(t->subgid.data, id));
}

/* 0 if there is none: the range and the caller's maps don't meet. */
static uint32_t draw_id(const struct id_texts *t, const struct id_range *range)
{
    uint64_t random[DRAWS];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return 0;
    for (size_t i = 0; i < DRAWS; i++) {
        uint64_t id = range->first + random[i] % range->count;
        if (id != 0 && is_free(t, id))
            return (uint32_t)id;
    }
    return 0;
}

/* Supplementary groups besides the one that the box's own group is. */
static bool has_other_groups(gid_t own)
{
    gid_t groups[32];
    int n = getgroups((int)ARRAY_LEN(groups), groups);

    for (int i = 0; i < n; i++)
        if (groups[i] != own)
            return true;
    return n < 0; /* more than fit */
}

static int choose_self(const struct id_texts *t, struct facts *facts, struct hutch_error *err)
{
    if (facts->euid == 0 && maps_to_root(t->uid_map.data, 0))
        return error_set(err, HUTCH_STAGE_HOST, EPERM,
                         "root without CAP_SETUID and CAP_SETGID, or without a free host id in "
                         "its user namespace, would be mapped as the host's root: run as a plain "
                         "user, with both capabilities, or with --host-ids FIRST:COUNT");
    facts->mode = PLAN_MODE_SELF;
    facts->keeps_groups = has_other_groups(facts->egid);
    return 0;
}

int userns_choose(const char *range_text, struct facts *facts, struct hutch_error *err)
{
    static const unsigned NEEDED[] = {CAP_SETUID, CAP_SETGID};
    _cleanup_(id_texts_free) struct id_texts t = {0};
    struct id_range range;
    int r = parse_range(range_text, &range, err);

    if (r < 0)
        return r;
    facts->euid = geteuid();
    facts->egid = getegid();
    r = read_text("/proc/self/uid_map", &t.uid_map);
    if (r == 0)
        r = read_text("/proc/self/gid_map", &t.gid_map);
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_HOST, r,
                           "read /proc/self/uid_map (mount /proc if it is missing)");
    if (!caps_have(NEEDED, ARRAY_LEN(NEEDED)))
        return choose_self(&t, facts, err);
    (void)read_text("/etc/subuid", &t.subuid); /* none: nothing is allocated */
    (void)read_text("/etc/subgid", &t.subgid);
    facts->host_id = draw_id(&t, &range);
    if (facts->host_id == 0)
        return choose_self(&t, facts, err);
    facts->mode = PLAN_MODE_ROOT;
    return 0;
}

static int write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside,
                     struct hutch_error *err)
{
    char path[64], line[64];
    int len = snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno ? errno : EIO,
                           "map id %u of the box to host id %u (%s)", inside, outside, file);
    return 0;
}

int userns_write_maps(pid_t pid, uint32_t inside, uint32_t host_id, struct hutch_error *err)
{
    int r = write_map(pid, "uid_map", inside, host_id, err);

    return r < 0 ? r : write_map(pid, "gid_map", inside, host_id, err);
}

int userns_open(uint32_t disk_uid, uint32_t disk_gid, uint32_t host_id, int *ret_fd,
                struct hutch_error *err)
{
    _cleanup_close_ int pidfd = -1;
    char path[64];
    pid_t pid = 0;
    int fd = -1;
    int r = spawn_waiting(CLONE_NEWUSER, &pid, &pidfd, err);

    if (r < 0)
        return r;
    r = write_map(pid, "uid_map", disk_uid, host_id, err);
    if (r == 0)
        r = write_map(pid, "gid_map", disk_gid, host_id, err);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    if (r == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        r = error_errno(err, HUTCH_STAGE_LAUNCH, errno, "open the id map of a mount");
    spawn_end(pid, pidfd);
    if (r == 0)
        *ret_fd = fd;
    return r;
}
