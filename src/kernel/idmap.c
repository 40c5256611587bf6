/* idmap.c - mount_setattr(2) with MOUNT_ATTR_IDMAP. */
#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>

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

int idmap_mount(const char *path, uint32_t owner_uid, uint32_t owner_gid, uint32_t host_id,
                int *ret_fd, struct hutch_error *err)
{
    _cleanup_close_ int map_fd = -1;
    _cleanup_close_ int tree = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP};
    int r = userns_open(owner_uid, owner_gid, host_id, &map_fd, err);
    long n;

    if (r < 0)
        return r;
    tree =
        (int)sys_call(__NR_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) {
        r = tree;
        tree = -1;
        return error_errno(err, HUTCH_STAGE_HOST, r, "open %s as a mount", path);
    }
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
