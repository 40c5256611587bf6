/*
 * root.c - what stands in a box's root file system, and where each thing comes from.
 *
 * Everything that is made is made in our own tmpfs (the tree); everything of the host is a
 * read-only mount attached over a mount point there. For a directory as root the same tree lies
 * on top of it as the first layer of an overlay.
 */
#include <stdio.h>
#include <string.h>

#include "plan/builder.h"
#include "plan/skeleton.h"

#define VAR_TMP "/var/tmp"
#define BIND_FLAGS (PLAN_READONLY | PLAN_NOSUID | PLAN_NODEV)

const char *const PLAN_HOST_ENTRIES[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
const size_t PLAN_HOST_ENTRIES_LEN = ARRAY_LEN(PLAN_HOST_ENTRIES);

/* A trailing '/' marks a directory. alternatives: half of Debian's /usr/bin points there;
 * ld.so.cache: what ld.so finds libraries by; ssl: what https clients trust. A slim container
 * image has no more either, and each entry costs a run ten microseconds. */
const char *const PLAN_HOST_ETC[] = {"alternatives/", "ld.so.cache", "ssl/certs/",
                                     "ssl/openssl.cnf"};
const size_t PLAN_HOST_ETC_LEN = ARRAY_LEN(PLAN_HOST_ETC);

static bool is_host_root(const struct builder *b)
{
    return strcmp(b->request->rootfs, "host") == 0;
}

static bool is_bound(const struct hutch_request *request, const char *target)
{
    for (size_t i = 0; i < request->binds_len; i++)
        if (strcmp(request->binds[i].target, target) == 0)
            return true;
    return false;
}

bool plan_work_is_bound(const struct hutch_request *request)
{
    return is_bound(request, "/work");
}

static void add_host_entries(struct builder *b)
{
    for (size_t i = 0; i < b->facts->entries_len; i++) {
        const struct facts_entry *entry = &b->facts->entries[i];
        char path[32] = "/";
        if (!entry->present)
            continue;
        strncat(path, entry->name, sizeof(path) - 2);
        if (entry->is_link) {
            builder_symlink(b, path, entry->target);
            continue;
        }
        builder_dir(b, path, 0755, 0);
        builder_bind(b, builder_source(b, path, -1), path, BIND_FLAGS);
    }
}

static void add_host_etc(struct builder *b)
{
    for (size_t i = 0; i < PLAN_HOST_ETC_LEN; i++) {
        char path[64] = "/etc/";
        size_t len;
        if ((b->facts->etc_present & (1U << i)) == 0)
            continue;
        strncat(path, PLAN_HOST_ETC[i], sizeof(path) - 6);
        len = strlen(path);
        if (path[len - 1] == '/') {
            path[len - 1] = '\0';
            builder_dir(b, path, 0755, 0);
        } else {
            builder_file(b, path, 0644, 0, "", 0);
        }
        builder_bind(b, builder_source(b, path, -1), path, BIND_FLAGS | PLAN_NOEXEC);
    }
    if (b->facts->localtime[0] != '\0' && !is_bound(b->request, "/etc/localtime"))
        builder_symlink(b, "/etc/localtime", b->facts->localtime);
}

static void add_skeleton(struct builder *b)
{
    for (size_t i = 0; i < SKELETON_FILES_LEN; i++)
        builder_file(b, SKELETON_FILES[i].path, 0644, 0, SKELETON_FILES[i].data,
                     SKELETON_FILES[i].len);
}

static const char *const DEV_NODES[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                        "/dev/urandom"};
static const struct {
    const char *path, *target;
} DEV_LINKS[] = {
    {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"},
    {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
    {"/dev/ptmx", "pts/ptmx"},
};

/* A shared map of /dev/zero is memory that only a cgroup counts. /dev/full reads the same and
 * can't be mapped; writing to it is refused. */
static const char *node_source(const struct builder *b, const char *node)
{
    bool is_zero = strcmp(node, "/dev/zero") == 0;

    return is_zero && !b->facts->cgroup_memory ? "/dev/full" : node;
}

static void add_dev(struct builder *b)
{
    builder_dir(b, "/dev/pts", 0755, 0);
    builder_dir(b, "/dev/shm", 01777, 0);
    for (size_t i = 0; i < ARRAY_LEN(DEV_LINKS); i++)
        builder_symlink(b, DEV_LINKS[i].path, DEV_LINKS[i].target);
    for (size_t i = 0; i < ARRAY_LEN(DEV_NODES); i++) {
        builder_file(b, DEV_NODES[i], 0666, 0, "", 0);
        /* Not nodev, or the node would not open. */
        builder_bind(b, builder_source(b, node_source(b, DEV_NODES[i]), -1), DEV_NODES[i],
                     PLAN_NOSUID | PLAN_NOEXEC);
    }
    builder_op(b, PLAN_OP_DEVPTS, "/dev/pts");
}

/* The places of the one writable tmpfs; noexec as Docker has them. */
static const struct {
    const char *dir, *path;
    uint32_t mode, flags;
} DATA_PLACES[] = {
    {"work", "/work", 0755, PLAN_NOSUID | PLAN_NODEV},
    {"tmp", "/tmp", 01777, PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC},
    {"shm", "/dev/shm", 01777, PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC},
};

static void add_data(struct builder *b)
{
    for (size_t i = 0; i < ARRAY_LEN(DATA_PLACES); i++) {
        builder_dir(b, DATA_PLACES[i].path, DATA_PLACES[i].mode, 0);
        if (!is_bound(b->request, DATA_PLACES[i].path))
            builder_bind_data(b, DATA_PLACES[i].dir, DATA_PLACES[i].path, DATA_PLACES[i].flags);
    }
}

/* Writes where in the host root `target` really is, as far as its links are ours. */
static void follow_links(const struct builder *b, const char *target, char *ret_path, size_t size)
{
    const char *prefix = "", *rest = target;

    for (size_t i = 0; is_host_root(b) && i < b->facts->entries_len; i++) {
        const struct facts_entry *entry = &b->facts->entries[i];
        size_t len = strlen(entry->name);
        if (entry->present && entry->is_link && strncmp(target + 1, entry->name, len) == 0 &&
            (target[1 + len] == '/' || target[1 + len] == '\0')) {
            prefix = entry->target;
            rest = target + 1 + len;
        }
    }
    if (is_host_root(b) && strncmp(target, VAR_TMP "/", strlen(VAR_TMP "/")) == 0) {
        prefix = "tmp";
        rest = target + strlen(VAR_TMP);
    }
    while (*prefix == '/')
        prefix++;
    (void)snprintf(ret_path, size, "%s%s%s", *prefix != '\0' ? "/" : "", prefix, rest);
}

/* A mount point below /work, /tmp or /dev/shm lies in the data tmpfs, unless that place is a
 * bind itself: then the point must exist in its source. What is there anyway, /etc/hosts say, is
 * a mount point as it is. */
static void add_mount_point(struct builder *b, const char *target, bool is_dir)
{
    char at[FACTS_PATH_MAX + 128], path[sizeof(at) + 8];
    uint32_t flags = 0;

    follow_links(b, target, at, sizeof(at));
    (void)snprintf(path, sizeof(path), "%s", at);
    for (size_t i = 0; i < ARRAY_LEN(DATA_PLACES); i++) {
        size_t len = strlen(DATA_PLACES[i].path);
        if (strncmp(at, DATA_PLACES[i].path, len) != 0 || at[len] != '/')
            continue;
        if (is_bound(b->request, DATA_PLACES[i].path))
            return;
        flags = PLAN_IN_DATA;
        (void)snprintf(path, sizeof(path), "%s%s", DATA_PLACES[i].dir, at + len);
    }
    if (flags == 0 && builder_has(b, path))
        return;
    if (is_dir)
        builder_dir(b, path, 0755, flags);
    else
        builder_file(b, path, 0644, flags, "", 0);
}

/* --python: its prefix (and that of what it links to) at its own place. */
static void add_prefixes(struct builder *b)
{
    for (size_t i = 0; i < ARRAY_LEN(b->facts->prefixes); i++) {
        const char *prefix = b->facts->prefixes[i];
        if (prefix[0] == '\0')
            continue;
        add_mount_point(b, prefix, true);
        builder_bind(b, builder_source(b, prefix, -1), prefix, BIND_FLAGS);
    }
}

static void add_binds(struct builder *b)
{
    for (size_t i = 0; i < b->request->binds_len; i++) {
        const struct bind *bind = &b->request->binds[i];
        const struct facts_bind *fact = &b->facts->binds[i];
        uint32_t flags = PLAN_NOSUID | PLAN_NODEV | (bind->writable ? 0U : PLAN_READONLY);

        add_mount_point(b, bind->target, fact->is_dir);
        builder_bind(b, builder_source(b, bind->source, fact->host_index), bind->target, flags);
    }
}

/* World-readable or not, nothing a program needs: kernel addresses, keys, the host's devices and
 * command line. What is writable there belongs to the host's root, who is nobody in a box, and
 * /proc/sys is read-only for everybody. */
static const struct {
    enum plan_op_kind kind;
    const char *path;
} MASKS[] = {
    {PLAN_OP_MASK, "/proc/kcore"},         {PLAN_OP_MASK, "/proc/keys"},
    {PLAN_OP_MASK, "/proc/key-users"},     {PLAN_OP_MASK, "/proc/timer_list"},
    {PLAN_OP_MASK, "/proc/latency_stats"}, {PLAN_OP_MASK, "/proc/sched_debug"},
    {PLAN_OP_MASK, "/proc/kmsg"},          {PLAN_OP_MASK, "/proc/kallsyms"},
    {PLAN_OP_MASK, "/proc/acpi"},          {PLAN_OP_MASK, "/proc/scsi"},
    {PLAN_OP_MASK, "/proc/asound"},        {PLAN_OP_MASK, "/proc/interrupts"},
    {PLAN_OP_MASK, "/proc/config.gz"},     {PLAN_OP_MASK, "/proc/cmdline"},
    {PLAN_OP_READONLY, "/proc/sys"},
};

static void add_proc(struct builder *b)
{
    builder_dir(b, "/proc", 0555, 0);
    builder_op(b, PLAN_OP_PROC, "/proc");
    for (size_t i = 0; i < ARRAY_LEN(MASKS); i++)
        builder_mask(b, MASKS[i].kind, MASKS[i].path);
}

void plan_add_root(struct builder *b)
{
    bool host = is_host_root(b);
    bool overlay = !host || b->request->writable_root;

    b->header.root_kind = overlay ? PLAN_ROOT_OVERLAY : PLAN_ROOT_TMPFS;
    if (b->request->writable_root)
        b->header.flags |= PLAN_FLAG_WRITABLE;
    if (!host)
        builder_lower(b, builder_source(b, b->request->rootfs, b->facts->rootfs_host_index));
    add_skeleton(b);
    builder_dir(b, "/run", 0755, 0);
    if (host) {
        add_host_entries(b);
        add_host_etc(b);
        builder_dir(b, "/var", 0755, 0);
        builder_symlink(b, VAR_TMP, "/tmp");
    }
    add_proc(b);
    add_dev(b);
    add_data(b);
    add_prefixes(b); /* one below /tmp is mounted over it */
    add_binds(b);
}
