/*
 * cgroup.h - one cgroup v2 directory per box: where it can be had, its limits, what it counted,
 * its end.
 *
 * Order of events for a run:
 *
 *   cgroup_find()      looks only: the place, the controllers it can give (facts for the plan)
 *   cgroup_create()    the leaf with every limit written, before there is a process
 *   clone3(CLONE_INTO_CGROUP, cg.dir_fd)
 *   cgroup_adopt()     only if cg.deferred: the child is there and waits for its go-ahead
 *   cgroup_usage(), cgroup_cpu_usec()  while it runs and when it has ended
 *   cgroup_kill(), cgroup_destroy()
 *
 * A place is found through /proc/self/cgroup and /proc/self/mountinfo; no path is assumed:
 *
 *   slice      root, whole tree: hutch.slice below the root of the mount, gone with its last box
 *   delegated  a subtree that was handed to us and that we sit in (a systemd unit with
 *              Delegate=yes, a container with a writable cgroupfs of its own). Where the kernel's
 *              "no internal processes" rule demands it the processes in it are moved into
 *              `hutch-host` next to the boxes first, and put back when the last box is gone.
 *   scope      a transient scope with Delegate=yes, asked from the caller's systemd over D-Bus.
 *              The kernel lets no plain user move anything from a login session into it, so only
 *              systemd can: the box's first process is made outside, handed to systemd while it
 *              still waits for its plan, then put into the leaf. That is `deferred`. systemd
 *              removes a scope, and every count in it, as soon as it is empty; so a second
 *              waiting process, the keeper, stays in it until cgroup_destroy().
 *
 * Boxes are directories named hutch-PID-RANDOM, locked (cgroup_sweep.c) for as long as their owner
 * lives. Nothing else is ever killed or removed. Each cgroup_create() removes what dead owners
 * left. No global state; any number of threads and processes may do all of this at once.
 */
#ifndef HUTCH_KERNEL_CGROUP_H
#define HUTCH_KERNEL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "hutch.h"

/* Controllers, as bits. */
#define CGROUP_MEMORY (1U << 0)
#define CGROUP_PIDS (1U << 1)
#define CGROUP_CPU (1U << 2)
#define CGROUP_ALL (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU)

#define CGROUP_CAUSE_TEXT 320
#define CGROUP_PATH_TEXT 4096 /* PATH_MAX: the kernel shows no longer one */
#define CGROUP_UNKNOWN UINT64_MAX

/* 0: no limit of this kind. */
struct cgroup_limits {
    uint64_t memory_bytes;
    uint64_t pids;       /* one more where no cgroup counts memory: the watchdog's thread */
    uint64_t cpus_milli; /* 500 is half a CPU */
};

enum cgroup_kind {
    CGROUP_NONE_HERE,
    CGROUP_SLICE,
    CGROUP_DELEGATED,
    CGROUP_SCOPE,
};

/* Where boxes would go. */
struct cgroup_place {
    enum cgroup_kind kind;
    int fd;               /* the directory above the boxes (slice: the mount's root); or -1 */
    unsigned controllers; /* what it can give, of those that were wanted */
    char path[CGROUP_PATH_TEXT]; /* the same directory, for people */
    bool asked;                  /* cgroup*.c only: systemd had to be asked; worth a mark */
};

/* A process that does nothing but wait, and ends when the other end of hold_fd is closed (so it
 * doesn't outlive us). No exit signal: it is waited for with __WALL. */
struct cgroup_keeper {
    pid_t pid;
    int pidfd;
    int hold_fd;
};

#define CGROUP_PLACE ((struct cgroup_place){.fd = -1})
void cgroup_place_close(struct cgroup_place *place);
#define _cleanup_cgroup_place_ _cleanup_(cgroup_place_close)

struct cgroup {
    /* The leaf, for CLONE_INTO_CGROUP; -1 while deferred and before cgroup_adopt(). */
    int dir_fd;
    /* cgroup.events and memory.events: POLLPRI when they change ("populated 0", an OOM kill).
     * -1 where there is none. */
    int events_fd;
    int memory_events_fd;
    unsigned controllers; /* whose limits are in force */
    enum cgroup_kind kind;
    /* True: clone without CLONE_INTO_CGROUP, call cgroup_adopt() before the go-ahead; the box's
     * cgroup namespace is then to be made by the child itself after the go-ahead, else it shows
     * where the box lies on the host. */
    bool deferred;
    char name[48];
    char path[CGROUP_PATH_TEXT]; /* of the leaf, for people */

    /* Below: cgroup*.c only. */
    int place_fd;
    int kill_fd; /* its cgroup.kill, locked: the owner lives */
    int cpu_stat_fd;
    struct cgroup_limits limits;
    unsigned wanted;
    void *bus; /* the connection to the caller's systemd */
    struct cgroup_keeper keeper;
};

#define CGROUP                                                                                     \
    ((struct cgroup){.dir_fd = -1,                                                                 \
                     .events_fd = -1,                                                              \
                     .memory_events_fd = -1,                                                       \
                     .place_fd = -1,                                                               \
                     .kill_fd = -1,                                                                \
                     .cpu_stat_fd = -1,                                                            \
                     .keeper = {.pidfd = -1, .hold_fd = -1}})
/* Closes what is open and frees; kills and removes nothing (the next run's sweep would). Fine on
 * CGROUP and after cgroup_destroy(). */
void cgroup_close(struct cgroup *cgroup);
#define _cleanup_cgroup_ _cleanup_(cgroup_close)

/* CGROUP_UNKNOWN: this kernel, or this controller set, has no such number. */
struct cgroup_usage {
    uint64_t memory_peak_bytes; /* memory.peak (5.19) */
    uint64_t memory_bytes;      /* memory.current */
    uint64_t memory_max_events; /* how often the limit held an allocation up */
    uint64_t oom_kills;         /* processes of the box that an OOM killer ended */
    uint64_t cpu_usec;          /* user and system, children that have ended included */
    uint64_t pids_peak;         /* pids.peak (6.1) */
    uint64_t pids_denied;       /* forks and threads refused by the limit */
};

/*
 * Looks for a place and changes nothing. 0: *ret_place is filled (the caller closes it), and if
 * it gives less than `wanted`, `cause` says why (else it is empty). 1: there is none here, and
 * `cause` says why and what to do about it; *ret_place is untouched. Negative: a failure.
 */
int cgroup_find(unsigned wanted, struct cgroup_place *ret_place, char *cause, size_t cause_len,
                struct hutch_error *err);

/*
 * Makes the box's leaf with its limits; `place` is what cgroup_find() found (NULL: finds it
 * itself), and stays the caller's. Returns and `cause` as above; ret->controllers says which
 * limits are in force (deferred: which ones will be; a shortfall makes cgroup_adopt() fail).
 * Memory comes with swap and zswap at 0 and the OOM kill of the whole box.
 */
int cgroup_create(const struct cgroup_place *place, const struct cgroup_limits *limits,
                  unsigned wanted, struct cgroup *ret, char *cause, size_t cause_len,
                  struct hutch_error *err);

/* Deferred only: puts the waiting process into the leaf, which gets its limits now, and the
 * keeper beside it. The keeper is the cgroup's from here on, also on failure. */
int cgroup_adopt(struct cgroup *cgroup, pid_t pid, const struct cgroup_keeper *keeper,
                 struct hutch_error *err);

/* What the kernel has counted so far; valid until cgroup_destroy(). */
int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *ret_usage,
                 struct hutch_error *err);
/* CPU time alone: one system call, for the cpu-time limit. CGROUP_UNKNOWN if it can't be read. */
uint64_t cgroup_cpu_usec(const struct cgroup *cgroup);
/* 1: processes are in it (zombies don't count); 0: none; negative: unknown. One system call. */
int cgroup_populated(const struct cgroup *cgroup);

/* SIGKILL to everything in it, descendants included. Doesn't wait. Never on a failed create. */
int cgroup_kill(struct cgroup *cgroup, struct hutch_error *err);

/* Kills, waits until nothing is left in it, removes it and closes. timeout_ms 0 doesn't wait;
 * -EAGAIN: still populated after that time, *cgroup stays as it was (poll events_fd for POLLPRI
 * and try again). Does nothing on CGROUP. */
int cgroup_destroy(struct cgroup *cgroup, int timeout_ms, struct hutch_error *err);

#endif
