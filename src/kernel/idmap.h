/* idmap.h - idmapped mounts: a host directory whose owner's files are the box's own. */
#ifndef HUTCH_KERNEL_IDMAP_H
#define HUTCH_KERNEL_IDMAP_H

#include <stdint.h>

#include "hutch.h"

/* A detached mount of host path `path`, with everything mounted in it, in which files of its
 * owner belong to host_id and what the box makes belongs to that owner on disk. */
int idmap_mount(const char *path, uint32_t owner_uid, uint32_t owner_gid, uint32_t host_id,
                int *ret_fd, struct hutch_error *err);

#endif
