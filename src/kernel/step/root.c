/*
 * root.c - the box's file system.
 *
 * In order: every propagation is made private; host paths are cloned into detached mounts while
 * we are still the caller (a private home can't be entered afterwards); one scratch tmpfs is put
 * over the old root, so that mount points exist only in memory that is ours; the root's own
 * files are made in its `tree`; the root is mounted (the tree itself, or an overlay with the
 * tree on top, which is what makes a hostile symlink at a mount point harmless); the plan's
 * mounts are attached to it; masks; pivot. The old root and the scratch tmpfs are then gone.
 */
#include "kernel/step/mount.h"
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/mount.h>

#define SYS_EEXIST 17
#define SYS_ENOENT 2
#define SYS_EIO 5
#define UMOUNT_DETACH 2 /* MNT_DETACH */

/* Must: come before any mount, or ours would appear on the host. */
int step_private_mounts(struct step_state *s)
{
    s->object = "mount propagation";
    return (int)step_call(__NR_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0);
}

/* Must: see the host's paths as the caller sees them. Mustn't: attach anything yet. */
int step_open_sources(struct step_state *s)
{
    const struct plan_source *sources = plan_at(s, s->plan->sources.offset);

    for (uint32_t i = 0; i < s->plan->sources.count; i++) {
        int fd;
        if (sources[i].path != 0) {
            s->object = plan_text(s, sources[i].path);
            fd = mount_clone(AT_FDCWD, s->object);
        } else {
            fd = PLAN_FD_SOURCES + (int)sources[i].host_index;
        }
        if (fd < 0)
            return fd;
        s->source_fds[i] = fd;
    }
    return 0;
}

static int make_dir(int dir_fd, const char *path, uint32_t mode)
{
    long r = step_call(__NR_mkdirat, dir_fd, path, mode);

    return r < 0 && r != -SYS_EEXIST ? (int)r : 0;
}

static int bounded_tmpfs(uint64_t bytes, uint64_t inodes)
{
    char size[24], count[24];
    size_t size_len = 0, count_len = 0;
    const struct mount_option options[] = {{"size", size}, {"nr_inodes", count}, {"mode", "755"}};

    text_add_number(size, sizeof(size), &size_len, bytes);
    text_add_number(count, sizeof(count), &count_len, inodes);
    return mount_new("tmpfs", options, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* The writable directories, on the one tmpfs that the disk limit counts. */
static const struct {
    const char *path;
    uint32_t mode;
} DATA_DIRS[] = {{"work", 0755}, {"tmp", 01777}, {"shm", 01777}, {"upper", 0755}, {"ovl", 0755}};

static int make_data(struct step_state *s)
{
    int r;

    s->object = "tmpfs of /work and /tmp";
    s->data_fd = bounded_tmpfs(s->plan->data_bytes, s->plan->data_inodes);
    if (s->data_fd < 0)
        return s->data_fd;
    r = mount_attach(s->data_fd, s->scratch_fd, "data");
    for (size_t i = 0; r == 0 && i < sizeof(DATA_DIRS) / sizeof(DATA_DIRS[0]); i++)
        r = make_dir(s->data_fd, DATA_DIRS[i].path, DATA_DIRS[i].mode);
    if (r < 0)
        return r;
    s->work_fd =
        (int)step_call(__NR_openat, s->data_fd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return s->work_fd < 0 ? s->work_fd : 0;
}

/* More than any plan has operations for. */
#define SCRATCH_INODES 8192U

static const char *const SCRATCH_DIRS[] = {"data", "tree", "root", "empty"};

/* Must: set the file mode mask that makes every mode below exact; the program gets 022 later. */
int step_scratch(struct step_state *s)
{
    int r;
    long fd;

    (void)sys_call(__NR_umask, 0);
    s->object = "scratch tmpfs";
    s->scratch_fd = bounded_tmpfs(s->plan->scratch_bytes, SCRATCH_INODES);
    if (s->scratch_fd < 0)
        return s->scratch_fd;
    r = mount_over_root(s->scratch_fd);
    for (size_t i = 0; r == 0 && i < sizeof(SCRATCH_DIRS) / sizeof(SCRATCH_DIRS[0]); i++)
        r = make_dir(s->scratch_fd, SCRATCH_DIRS[i], 0755);
    if (r < 0)
        return r;
    fd = step_call(__NR_openat, s->scratch_fd, "blank", O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (fd < 0)
        return (int)fd;
    sys_close((int)fd);
    s->tree_fd = mount_open(s->scratch_fd, "tree");
    if (s->tree_fd < 0)
        return s->tree_fd;
    return make_data(s);
}

static int make_file(int dir_fd, const char *path, uint32_t mode, const char *data, size_t len)
{
    long fd = step_call(__NR_openat, dir_fd, path,
                        O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode);
    long n = 0;

    if (fd < 0)
        return (int)fd;
    while (len > 0 && (n = step_call(__NR_write, fd, data, len)) > 0) {
        data += n;
        len -= (size_t)n;
    }
    sys_close((int)fd);
    if (n < 0)
        return (int)n;
    return len == 0 ? 0 : -SYS_EIO;
}

static int make_in(struct step_state *s, const struct plan_op *op, int dir, const char *name)
{
    if (op->kind == PLAN_OP_DIR)
        return make_dir(dir, name, op->mode);
    if (op->kind == PLAN_OP_FILE)
        return make_file(dir, name, op->mode, plan_at(s, op->data), op->data_len);
    return (int)step_call(__NR_symlinkat, plan_text(s, op->text), dir, name);
}

/* The directory that the last file was made in: a plan makes them in runs. */
struct parent {
    int fd;
    uint32_t flags;
    const char *path;
    size_t len;
};

static size_t parent_len(const char *path)
{
    size_t len = 0;

    for (size_t i = 0; path[i] != '\0'; i++)
        if (path[i] == '/')
            len = i;
    return len;
}

static int same_parent(const struct parent *p, const char *path, size_t len, uint32_t flags)
{
    if (p->fd < 0 || p->flags != flags || p->len != len)
        return 0;
    for (size_t i = 0; i < len; i++)
        if (p->path[i] != path[i])
            return 0;
    return 1;
}

static int make_one(struct step_state *s, const struct plan_op *op, struct parent *p)
{
    const char *path = plan_text(s, op->path);
    const uint32_t flags = op->flags & PLAN_IN_DATA;
    const size_t len = parent_len(path);

    if (!same_parent(p, path, len, flags)) {
        sys_close(p->fd);
        p->fd = mount_open_parent(flags ? s->data_fd : s->tree_fd, path, len);
        p->flags = flags;
        p->path = path;
        p->len = len;
    }
    if (p->fd < 0)
        return p->fd;
    return make_in(s, op, p->fd, len > 0 ? path + len + 1 : path);
}

static int makes_files(const struct plan_op *op)
{
    return op->kind == PLAN_OP_DIR || op->kind == PLAN_OP_FILE || op->kind == PLAN_OP_SYMLINK;
}

/* Must: be whole before the root is mounted (an overlay's lower layer must not change later). */
int step_make_tree(struct step_state *s)
{
    const struct plan_op *ops = plan_at(s, s->plan->ops.offset);
    struct parent parent = {.fd = -1};
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < s->plan->ops.count; i++) {
        if (!makes_files(&ops[i]))
            continue;
        s->object = plan_text(s, ops[i].path);
        r = make_one(s, &ops[i], &parent);
    }
    sys_close(parent.fd);
    return r;
}

/* lowerdir=tree:lower0:lower1...; relative to scratch, our working directory meanwhile. */
static int attach_lower(struct step_state *s, char *lower, size_t cap)
{
    const uint32_t *indexes = plan_at(s, s->plan->lower.offset);
    size_t len = 0;

    text_add(lower, cap, &len, "tree");
    for (uint32_t i = 0; i < s->plan->lower.count; i++) {
        char name[32];
        size_t name_len = 0;
        int r;
        text_add(name, sizeof(name), &name_len, "lower");
        text_add_number(name, sizeof(name), &name_len, i);
        text_add(lower, cap, &len, ":");
        text_add(lower, cap, &len, name);
        r = make_dir(s->scratch_fd, name, 0755);
        if (r == 0)
            r = mount_attach(s->source_fds[indexes[i]], s->scratch_fd, name);
        if (r < 0)
            return r;
    }
    return 0;
}

static int overlay_root(struct step_state *s)
{
    char lower[256]; /* fsconfig(2) takes 255 bytes */
    const struct mount_option options[] = {
        {"lowerdir", lower}, {"userxattr", 0}, {"upperdir", "data/upper"}, {"workdir", "data/ovl"}};
    int writable = (s->plan->flags & PLAN_FLAG_WRITABLE) != 0;
    int r;

    s->object = "overlay root";
    r = attach_lower(s, lower, sizeof(lower));
    if (r == 0)
        r = (int)step_call(__NR_fchdir, s->scratch_fd);
    if (r < 0)
        return r;
    return mount_new("overlay", options, writable ? 4 : 2, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int step_mount_root(struct step_state *s)
{
    s->object = "root";
    s->root_fd = s->plan->root_kind == PLAN_ROOT_OVERLAY ? overlay_root(s)
                                                         : mount_clone(s->scratch_fd, "tree");
    if (s->root_fd < 0)
        return s->root_fd;
    return mount_attach(s->root_fd, s->scratch_fd, "root");
}

static int attach_restricted(struct step_state *s, int fd, const struct plan_op *op)
{
    int r;

    if (fd < 0)
        return fd;
    r = mount_restrict(fd, op->flags);
    return r < 0 ? r : mount_attach(fd, s->root_fd, plan_text(s, op->path));
}

static int attach_new(struct step_state *s, int fd, const struct plan_op *op)
{
    int r = fd < 0 ? fd : mount_attach(fd, s->root_fd, plan_text(s, op->path));

    sys_close(fd);
    return r;
}

static int bind_data(struct step_state *s, const struct plan_op *op)
{
    int fd = mount_clone(s->data_fd, plan_text(s, op->text));
    int r = attach_restricted(s, fd, op);

    sys_close(fd);
    return r;
}

static int mount_one(struct step_state *s, const struct plan_op *op)
{
    /* The machine has some 3,000 for all boxes and containers together. */
    static const struct mount_option DEVPTS[] = {
        {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "64"}};
    int r;

    switch (op->kind) {
    case PLAN_OP_BIND:
        r = attach_restricted(s, s->source_fds[op->source], op);
        sys_close(s->source_fds[op->source]);
        s->source_fds[op->source] = -1;
        return r;
    case PLAN_OP_BIND_DATA:
        return bind_data(s, op);
    case PLAN_OP_PROC:
        return attach_new(
            s, mount_new("proc", 0, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
            op);
    case PLAN_OP_DEVPTS:
        return attach_new(s, mount_new("devpts", DEVPTS, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
                          op);
    default:
        return 0; /* made before the root was mounted */
    }
}

/* Takes a table's operations in order, up to the first that fails. */
static int each_op(struct step_state *s, struct plan_span span,
                   int (*act)(struct step_state *s, const struct plan_op *op))
{
    const struct plan_op *ops = plan_at(s, span.offset);
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < span.count; i++) {
        s->object = plan_text(s, ops[i].path);
        r = act(s, &ops[i]);
    }
    return r;
}

/* Must: resolve every target inside the new root. */
int step_fill_root(struct step_state *s)
{
    return each_op(s, s->plan->ops, mount_one);
}

/* Must: come after our procfs is there and before /proc/sys becomes read-only. The kernel's
 * interfaces that only a namespace's root can reach stay out of reach in the box. */
int step_no_user_namespaces(struct step_state *s)
{
    s->object = "/proc/sys/user/max_user_namespaces";
    return text_write_file(s->root_fd, "proc/sys/user/max_user_namespaces", "0");
}

#define MODE_TYPE 0170000U
#define MODE_DIR 0040000U

struct sys_stat { /* struct stat of x86-64: st_mode is the fourth member */
    uint64_t dev, ino, nlink;
    uint32_t mode, uid, gid, pad;
    uint64_t rest[14];
};

static int hide(struct step_state *s, int target, const char *path)
{
    struct sys_stat st;
    long r = step_call(__NR_newfstatat, target, "", &st, AT_EMPTY_PATH);
    int fd;

    if (r < 0)
        return (int)r;
    fd = mount_clone(s->scratch_fd, (st.mode & MODE_TYPE) == MODE_DIR ? "empty" : "blank");
    if (fd < 0)
        return fd;
    r = mount_restrict(fd, PLAN_READONLY | PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC);
    if (r == 0)
        r = mount_attach(fd, s->root_fd, path);
    sys_close(fd);
    return (int)r;
}

static int make_readonly(struct step_state *s, const char *path)
{
    int fd = mount_clone(s->root_fd, path);
    int r;

    if (fd < 0)
        return fd;
    r = mount_restrict(fd, PLAN_READONLY | PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC);
    if (r == 0)
        r = mount_attach(fd, s->root_fd, path);
    sys_close(fd);
    return r;
}

static int mask_one(struct step_state *s, const struct plan_op *op)
{
    const char *path = plan_text(s, op->path);
    int target = mount_open(s->root_fd, path);
    int r;

    if (target == -SYS_ENOENT)
        return 0; /* this kernel has no such file: nothing to hide */
    if (target < 0)
        return target;
    r = op->kind == PLAN_OP_MASK ? hide(s, target, path) : make_readonly(s, path);
    sys_close(target);
    return r;
}

int step_mask(struct step_state *s)
{
    return each_op(s, s->plan->masks, mask_one);
}

static int root_readonly(struct step_state *s)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    if (s->plan->flags & PLAN_FLAG_WRITABLE)
        return 0;
    /* Not recursive: /work, /tmp and /dev/shm stay writable. */
    return (int)step_call(__NR_mount_setattr, s->root_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

/* Must: make "/" the box's. The old root is then mounted over it, reachable only by who was there
 * before (pivot_root(2), NOTES), until the next step. */
int step_pivot(struct step_state *s)
{
    long r;

    s->object = "root";
    r = root_readonly(s);
    if (r >= 0)
        r = step_call(__NR_fchdir, s->root_fd);
    if (r >= 0)
        r = step_call(__NR_pivot_root, ".", ".");
    if (r < 0)
        return (int)r;
    sys_close(s->scratch_fd);
    sys_close(s->tree_fd);
    sys_close(s->root_fd);
    s->scratch_fd = s->tree_fd = s->root_fd = -1;
    return 0;
}

/* Must: leave no way to the old root. Two mounts lie over the new one: our scratch tmpfs on top of
 * the old root; "." is always the topmost. */
int step_detach_old_root(struct step_state *s)
{
    long r;

    s->object = "old root";
    r = step_call(__NR_umount2, ".", UMOUNT_DETACH);
    if (r >= 0)
        r = step_call(__NR_umount2, ".", UMOUNT_DETACH);
    if (r >= 0)
        r = step_call(__NR_chdir, "/");
    return (int)r;
}

/* Must: end in a directory that is below "/": one outside the root has a "(unreachable)" path. */
int step_workdir(struct step_state *s)
{
    char path[4096]; /* PATH_MAX: the kernel's own bound */
    long r;

    s->object = plan_text(s, s->plan->workdir);
    r = step_call(__NR_chdir, s->object);
    if (r < 0)
        return (int)r;
    r = step_call(__NR_getcwd, path, sizeof(path));
    if (r < 0)
        return (int)r;
    return path[0] == '/' ? 0 : -SYS_ENOENT;
}
