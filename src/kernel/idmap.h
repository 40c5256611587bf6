/* idmap.h - idmapped mounts: a host directory whose owner's files are the box's own. */
#ifndef HUTCH_KERNEL_IDMAP_H
#define HUTCH_KERNEL_IDMAP_H

#include <stdint.h>
#include <sys/stat.h>

#include "hutch.h"

/* What a path of the caller's leads to, held so that nobody can put something else in its place:
 * opened once, without magic links, and through a link in its last part only if that link is the
 * caller's own (or root's, in root's sticky directories). `option` names it in errors. */
int idmap_open(const char *option, const char *path, int *ret_fd, struct stat *ret_stat,
               struct hutch_error *err);

/* A detached mount of what source_fd is, with everything mounted in it, in which files of its
 * owner belong to host_id and what the box makes belongs to that owner on disk. */
int idmap_mount(int source_fd, const struct stat *owner, const char *path, uint32_t host_id,
                int *ret_fd, struct hutch_error *err);

#endif
