/* mount.h - the new mount API as the set-up steps use it: file descriptors, never paths twice. */
#ifndef HUTCH_KERNEL_STEP_MOUNT_H
#define HUTCH_KERNEL_STEP_MOUNT_H

#include "kernel/step/step.h"

struct mount_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* A fresh, detached mount of a file system type; `attributes` are MOUNT_ATTR_ bits. */
int mount_new(const char *type, const struct mount_option *options, size_t options_len,
              unsigned attributes);
/* A detached copy of what is at path below dir_fd, with everything mounted in it. */
int mount_clone(int dir_fd, const char *path);
/* Adds attributes to a detached or attached mount, with everything mounted in it. */
int mount_restrict(int mount_fd, uint32_t plan_flags);
/* Attaches a detached mount at path below dir_fd, resolved inside dir_fd only. */
int mount_attach(int mount_fd, int dir_fd, const char *path);
/* Attaches a detached mount over "/", the one place that every host has. */
int mount_over_root(int mount_fd);
/* Opens path below dir_fd, resolved inside it, without magic links; O_PATH. */
int mount_open(int dir_fd, const char *path);
/* Opens the first `len` bytes of path (0: dir_fd itself) as a directory, beneath dir_fd and through
 * no symlink: what is made there is made inside dir_fd. */
int mount_open_parent(int dir_fd, const char *path, size_t len);

#endif
