/*
 * spawn.h - processes made without copying the host: one clone3 that borrows the address space
 * until the exec (CLONE_VM|CLONE_VFORK), so that a host of any size and any number of threads
 * pays the same. All of the child's code is here and uses raw system calls only.
 */
#ifndef HUTCH_KERNEL_SPAWN_H
#define HUTCH_KERNEL_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "hutch.h"
#include "plan/wire.h"

#define SPAWN_FDS_MAX (PLAN_FD_SOURCES + PLAN_HOST_SOURCES_MAX)

struct spawn {
    uint64_t namespaces;    /* CLONE_NEW* */
    int cgroup_fd;          /* -1: stays where the caller is */
    int exe_fd;             /* the sealed init */
    int fds[SPAWN_FDS_MAX]; /* becomes fd i of the child; -1: none */
    unsigned fds_len;
};

/* Starts init. *ret_in_cgroup says whether it was born in cgroup_fd (an old clone can't: then
 * the caller moves it before the go-ahead). The child has no exit signal: wait with __WALL. */
int spawn_init(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd, int *ret_in_cgroup,
               struct hutch_error *err);

/* A process that only waits, in new namespaces; end it with spawn_end(). */
int spawn_waiting(uint64_t namespaces, pid_t *ret_pid, int *ret_pidfd, struct hutch_error *err);
/* Kills and reaps it. */
void spawn_end(pid_t pid, int pidfd);

#endif
