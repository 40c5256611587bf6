/* userns.h - which ids a box gets, and the maps that the host writes for it. */
#ifndef HUTCH_KERNEL_USERNS_H
#define HUTCH_KERNEL_USERNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "hutch.h"
#include "plan/facts.h"

/*
 * Chooses the mode and fills mode, euid, egid, host_id, keeps_groups of *facts. Root mode: the
 * caller has CAP_SETUID and CAP_SETGID and a host id of `range` ("FIRST:COUNT" or NULL: 90
 * million from 1,900,000,000, above what systemd's dynamic and container ranges use) lies in
 * both of its id maps and in nobody's /etc/subuid or /etc/subgid; the id is random. Else
 * self-map mode, unless that would map the initial namespace's root: an error with the remedy.
 */
int userns_choose(const char *range, struct facts *facts, struct hutch_error *err);

/* Whether a user id means anybody in our own namespace; true if that can't be read. Ids that
 * don't are shown as 65534. */
bool userns_has_uid(uint32_t uid);

/* Writes both maps of a waiting process: id `inside` is `host_id`. */
int userns_write_maps(pid_t pid, uint32_t inside, uint32_t host_id, struct hutch_error *err);

/* A user namespace in which on-disk id `disk_uid` (`disk_gid`) is `host_id`, for an idmapped
 * mount. Makes and ends a process of its own. */
int userns_open(uint32_t disk_uid, uint32_t disk_gid, uint32_t host_id, int *ret_fd,
                struct hutch_error *err);

#endif
