/*
 * probe.h - what this machine gives a box, found out by doing, and what is in the way, by cause.
 *
 * Two halves. Observing acts: it reads settings and tries each namespace, mount and system call on
 * its own, in children that end at once, so that nothing of the caller changes. Explaining decides:
 * it turns what was observed into findings, all of them at once. A test explains machines that it
 * doesn't have.
 *
 * For `hutch doctor` alone: the children are copies of the process, so it must have one thread.
 */
#ifndef HUTCH_KERNEL_PROBE_H
#define HUTCH_KERNEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hutch.h"
#include "kernel/cgroup.h"

/* ---- findings ---- */

enum finding_severity {
    FINDING_WARNING, /* boxes can be had, with less or for fewer purposes */
    FINDING_BLOCKER, /* no box can be had */
};

#define FINDING_TEXT 400
#define FINDINGS_MAX 64

struct finding {
    const char *id;    /* "max-user-namespaces"; static storage */
    const char *layer; /* a layer of the receipt, or what else of a run it concerns */
    enum finding_severity severity;
    char cause[FINDING_TEXT];
    char remedy[FINDING_TEXT];
};

struct findings {
    struct finding items[FINDINGS_MAX];
    size_t len;
};

/* Adds one, unless there is one of that id and layer. The caller fills the texts; NULL if there
 * is nothing to fill. */
struct finding *findings_add(struct findings *findings, const char *id, const char *layer,
                             enum finding_severity severity);
bool findings_have_layer(const struct findings *findings, const char *layer);
/* How many there are of a severity. */
size_t findings_count(const struct findings *findings, enum finding_severity severity);

/* ---- observations ---- */

/* An errno that nobody knows, because what it depends on failed. */
#define PROBE_NOT_TRIED (-1)
/* A setting that this kernel doesn't have. */
#define PROBE_ABSENT (-1)

enum probe_ns {
    PROBE_NS_USER,
    PROBE_NS_PID,
    PROBE_NS_MOUNT,
    PROBE_NS_NET,
    PROBE_NS_IPC,
    PROBE_NS_UTS,
    PROBE_NS_CGROUP,
    PROBE_NS_TIME,
    PROBE_NS_COUNT,
};

struct probe_ns_state {
    int error;       /* of making one (inside a fresh user namespace): 0, errno, PROBE_NOT_TRIED */
    bool filtered;   /* a seccomp filter answers for the kernel */
    int64_t maximum; /* user.max_*_namespaces, PROBE_ABSENT */
};

/* What init does first in a box, each tried in fresh user, mount, pid and uts namespaces. */
enum probe_step {
    PROBE_STEP_MAP,     /* writing the id maps */
    PROBE_STEP_PRIVATE, /* making propagation private */
    PROBE_STEP_TMPFS,
    PROBE_STEP_CLONE, /* a detached copy of /usr */
    PROBE_STEP_PROC,
    PROBE_STEP_DEVPTS,
    PROBE_STEP_ATTACH, /* the tmpfs over the root */
    PROBE_STEP_OVERLAY,
    PROBE_STEP_COUNT,
};

/* System calls without which no box can be built. */
#define PROBE_CALLS_MAX 32
struct probe_call {
    const char *name;
    int error; /* EPERM and the like, ENOSYS; 0: the kernel itself has looked at it */
};

/* libnl's look at a fresh network namespace. */
struct probe_net {
    int error;                  /* 0, errno, PROBE_NOT_TRIED */
    const char *doing;          /* what failed; static storage */
    bool has_loopback;          /* there is an interface lo... */
    bool loopback_up;           /* ...and it could be brought up */
    char others[128];           /* names of other interfaces that are up */
    char library[FINDING_TEXT]; /* why libnl can't be loaded, or "" */
};

struct probe {
    char kernel[96]; /* uname's release */
    unsigned major, minor;
    uint32_t euid;
    bool privileged; /* CAP_SYS_ADMIN here */

    bool has_proc;
    int seccomp_mode;      /* of this process: 0 none, 2 a filter */
    char proc_covers[256]; /* mounts that hide parts of /proc, separated by blanks */
    bool proc_readonly;
    bool chrooted;
    bool id_unmapped; /* our own ids mean nothing in our user namespace */

    int64_t unprivileged_userns_clone; /* Debian's; PROBE_ABSENT elsewhere */
    int64_t apparmor_restrict_userns;  /* Ubuntu's */
    char apparmor[64];                 /* the profile that this process is under, or "" */
    int64_t memfd_noexec;
    char core_pattern; /* its first character, or 0 */

    uint64_t open_files, processes, core; /* hard limits; UINT64_MAX: none */

    struct probe_ns_state ns[PROBE_NS_COUNT];
    int step_errors[PROBE_STEP_COUNT];
    struct probe_call calls[PROBE_CALLS_MAX];
    size_t calls_len;
    int clone3_error; /* 0, ENOSYS, or what a filter answers */
    int memfd_error;  /* an executable memory file */
    int seccomp_error, landlock_error;
    struct probe_net net;

    bool has_cgroup; /* a place was found */
    char cgroup_cause[CGROUP_CAUSE_TEXT];

    bool has_newuidmap;
    char libseccomp[FINDING_TEXT]; /* why it can't be loaded, or "" */
};

/* Looks at everything. */
void probe_observe(struct probe *ret_probe);
/* Pure. */
void probe_explain(const struct probe *probe, struct findings *findings);

/* The name that a namespace's sysctl and a finding have: "user", "pid", "mnt", ... */
const char *probe_ns_name(enum probe_ns ns);
/* Pure: the mounts over parts of /proc in a mountinfo text, separated by blanks, and whether the
 * last /proc is read-only. */
void probe_proc_covers(const char *mountinfo, char *ret_covers, size_t size, bool *ret_readonly);

/* ---- probe_child.c, probe_net.c: for probe_observe() ---- */

void probe_namespaces(struct probe *probe);
void probe_steps(struct probe *probe);
void probe_network(struct probe_net *ret_net);

/* Runs fn(arg) in a copy of this process with these CLONE_NEW* flags and waits for its end; what
 * it finds goes through memory that both share. 0 or a negative errno. */
int probe_child(uint64_t namespaces, void (*fn)(void *arg), void *arg);

/* ---- probe_inside.c: in the box ---- */

/* What a box must refuse; each tried by the command itself, as the box's program. */
struct probe_attempt {
    const char *name;
    const char *what; /* for people: what was refused */
};
enum probe_attempt_index {
    PROBE_ATTEMPT_NETWORK,
    PROBE_ATTEMPT_HOST_FILE,
    PROBE_ATTEMPT_ENVIRONMENT,
    PROBE_ATTEMPT_USR_WRITE,
    PROBE_ATTEMPT_MOUNT,
    PROBE_ATTEMPT_USER_NS,
    PROBE_ATTEMPT_ROOT_ID,
    PROBE_ATTEMPTS_COUNT,
};
extern const struct probe_attempt PROBE_ATTEMPTS[PROBE_ATTEMPTS_COUNT];

/* What the host has put out for the box to find. */
struct probe_baits {
    int port;             /* a listener on 127.0.0.1 */
    const char *file;     /* a readable file */
    const char *variable; /* an environment variable */
};
/* True if the attempt got through. */
bool probe_try(enum probe_attempt_index attempt, const struct probe_baits *baits);

#endif
