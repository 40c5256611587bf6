/* mount.c - the new mount API (mount_setattr(2), move_mount(2), fsopen(2)), wrapped once. */
#include "kernel/step/mount.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#define AT_TREE_RECURSIVE 0x8000 /* AT_RECURSIVE */
#define AT_PATH_EMPTY 0x1000     /* AT_EMPTY_PATH */

static long configure(int fs, const struct mount_option *options, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned command = options[i].value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        long r = step_call(__NR_fsconfig, fs, command, options[i].key, options[i].value, 0);
        if (r < 0)
            return r;
    }
    return step_call(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
}

int mount_new(const char *type, const struct mount_option *options, size_t options_len,
              unsigned attributes)
{
    long fs = step_call(__NR_fsopen, type, FSOPEN_CLOEXEC);
    long r;

    if (fs < 0)
        return (int)fs;
    r = configure((int)fs, options, options_len);
    if (r >= 0)
        r = step_call(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
    sys_close((int)fs);
    return (int)r;
}

int mount_clone(int dir_fd, const char *path)
{
    return (int)step_call(__NR_open_tree, dir_fd, path,
                          OPEN_TREE_CLONE | O_CLOEXEC | AT_TREE_RECURSIVE);
}

int mount_restrict(int mount_fd, uint32_t plan_flags)
{
    struct mount_attr attr = {0};

    attr.attr_set = ((plan_flags & PLAN_READONLY) ? MOUNT_ATTR_RDONLY : 0U) |
                    ((plan_flags & PLAN_NOSUID) ? MOUNT_ATTR_NOSUID : 0U) |
                    ((plan_flags & PLAN_NODEV) ? MOUNT_ATTR_NODEV : 0U) |
                    ((plan_flags & PLAN_NOEXEC) ? MOUNT_ATTR_NOEXEC : 0U);
    return (int)step_call(__NR_mount_setattr, mount_fd, "", AT_PATH_EMPTY | AT_TREE_RECURSIVE,
                          &attr, sizeof(attr));
}

int mount_open(int dir_fd, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };

    return (int)step_call(__NR_openat2, dir_fd, path, &how, sizeof(how));
}

int mount_open_parent(int dir_fd, const char *path, size_t len)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    char parent[4096] = ".";

    if (len >= sizeof(parent))
        return -36; /* ENAMETOOLONG */
    for (size_t i = 0; i < len; i++)
        parent[i] = path[i];
    parent[len > 0 ? len : 1] = '\0';
    return (int)step_call(__NR_openat2, dir_fd, parent, &how, sizeof(how));
}

int mount_over_root(int mount_fd)
{
    return (int)step_call(__NR_move_mount, mount_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

int mount_attach(int mount_fd, int dir_fd, const char *path)
{
    int target = mount_open(dir_fd, path);
    long r;

    if (target < 0)
        return target;
    r = step_call(__NR_move_mount, mount_fd, "", target, "",
                  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    sys_close(target);
    return (int)r;
}
