/*
 * facts.h - what a plan needs to know about this host, gathered once for a run
 * (kernel/facts.c) and then only read. Plain data: a test writes it by hand.
 */
#ifndef HUTCH_PLAN_FACTS_H
#define HUTCH_PLAN_FACTS_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layer.h"
#include "plan/wire.h"

#define FACTS_CPU_WORDS PLAN_CPU_WORDS
#define FACTS_PATH_MAX 4096
#define FACTS_PREFIXES 4

/* An entry of the host's "/" that the host root file system shows: /usr and its links. */
struct facts_entry {
    char name[16];
    bool present;
    bool is_link;
    char target[128]; /* of the link */
};
#define FACTS_ENTRIES_MAX 8

/* A --bind or --ro-bind, as the host has it. */
struct facts_bind {
    bool is_dir;
    int host_index; /* which detached mount of the host's it is; -1: init opens the path */
};

struct facts {
    enum plan_mode mode;
    uint32_t euid, egid; /* the caller's */
    uint32_t host_id;    /* root mode: the box's own */
    bool keeps_groups;   /* self-map mode and the caller has supplementary groups */

    struct facts_entry entries[FACTS_ENTRIES_MAX];
    size_t entries_len;
    uint32_t etc_present; /* bit i: PLAN_HOST_ETC[i] exists */
    char localtime[256];  /* target of /etc/localtime, or "" */

    char interpreter[FACTS_PATH_MAX]; /* absolute path in the box, or "" (a command) */
    char prefixes[FACTS_PREFIXES]
                 [FACTS_PATH_MAX]; /* directories that --python needs bound, or "" */

    struct facts_bind *binds; /* one for each of the request's */
    int rootfs_host_index;    /* as in facts_bind, for --rootfs DIR */
    uint32_t host_sources;    /* how many detached mounts the host hands over */

    bool cgroup_memory, cgroup_pids, cgroup_cpu; /* kept by a cgroup */
    bool cgroup_deferred;                        /* entered after clone */
    uint64_t cpu_mask[FACTS_CPU_WORDS];          /* what the caller may run on */
    unsigned cpus;                               /* bits set in it */
    bool core_fixed_at_zero; /* the hard limit of core files is 0: 1 can't be set */

    const struct sock_filter *seccomp, *init_seccomp;
    unsigned short seccomp_len, init_seccomp_len;
    bool exec_by_fd;
    bool seccomp_kills; /* the profile ends a program for a call; else SIGSYS is its own doing */
    bool core_socket;   /* kernel.core_pattern hands crashes to a socket of the host's */

    layer_mask layers;   /* namespaces that this run makes, and the other layers to put on */
    uint64_t skip_steps; /* the test build's switches */
    uint32_t fault_call;
};

/* Host files of /etc that programs need, bound read-only where they exist. */
extern const char *const PLAN_HOST_ETC[];
extern const size_t PLAN_HOST_ETC_LEN;
/* Names in "/" that the host root file system shows. */
extern const char *const PLAN_HOST_ENTRIES[];
extern const size_t PLAN_HOST_ENTRIES_LEN;

#endif
