/* idmap.c - mount_setattr(2) with MOUNT_ATTR_IDMAP. */
#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kernel/step/sys.h"
#include "kernel/userns.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

static int open_path(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                           .resolve = RESOLVE_NO_MAGICLINKS};

    return (int)sys_call(__NR_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Somebody else's link, in a directory that he can write, would choose what root hands in. */
static int check_link(const char *option, const char *path, struct hutch_error *err)
{
    _cleanup_close_ int fd = open_path(path, O_NOFOLLOW);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_request(err, "%s: %s: %s", option, path, error_text(fd < 0 ? -fd : errno));
    if (S_ISLNK(st.st_mode) && st.st_uid != geteuid())
        return error_request(err, "%s: %s is a link of user %u's: name what it leads to", option,
                             path, st.st_uid);
    return 0;
}

int idmap_open(const char *option, const char *path, int *ret_fd, struct stat *ret_stat,
               struct hutch_error *err)
{
    _cleanup_close_ int fd = -1;
    int r = check_link(option, path, err);

    if (r < 0)
        return r;
    fd = open_path(path, 0);
    if (fd < 0 || fstat(fd, ret_stat) < 0)
        return error_request(err, "%s: %s: %s", option, path, error_text(fd < 0 ? -fd : errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

int idmap_mount(int source_fd, const struct stat *owner, const char *path, uint32_t host_id,
                int *ret_fd, struct hutch_error *err)
{
    _cleanup_close_ int map_fd = -1;
    _cleanup_close_ int tree = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP};
    int r = userns_open(owner->st_uid, owner->st_gid, host_id, &map_fd, err);
    long n;

    if (r < 0)
        return r;
    n = sys_call(__NR_open_tree, source_fd, "",
                 OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
    if (n < 0)
        return error_errno(err, HUTCH_STAGE_HOST, (int)n, "open %s as a mount", path);
    tree = (int)n;
    attr.userns_fd = (uint64_t)map_fd;
    n = sys_call(__NR_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
    if (n < 0)
        return error_errno(err, HUTCH_STAGE_HOST, (int)n,
                           "give %s to the box as an idmapped mount (its file system must support "
                           "them: ext4, xfs, btrfs, tmpfs since 6.3; use --ro-bind or --file "
                           "instead)",
                           path);
    *ret_fd = take_fd(&tree);
    return 0;
}
