/*
 * wire.h - the plan as init reads it: plain data in one block, no pointers.
 *
 * The host writes the block into a sealed memfd; init maps it, checks every offset against its
 * size once (kernel/step/check.c) and then only reads it. Text is NUL-terminated and named by its
 * offset in the block; offset 0 (the header) means "none". Paths in operations are relative to
 * the new root and have no `..`.
 *
 * Only <stdint.h>: this header is compiled into the freestanding init too.
 */
#ifndef HUTCH_PLAN_WIRE_H
#define HUTCH_PLAN_WIRE_H

#include <stdint.h>

#define PLAN_MAGIC 0x6e6c7068U
#define PLAN_VERSION 1U
#define PLAN_MAX_BYTES (1U << 31)

/* Fixed fd numbers in init; the launcher puts them there. */
enum plan_fd {
    PLAN_FD_STDIN = 0,
    PLAN_FD_STDOUT = 1,
    PLAN_FD_STDERR = 2,
    PLAN_FD_RESULT = 3, /* the program's too, when it has a result channel */
    PLAN_FD_CONTROL = 4,
    PLAN_FD_PLAN = 5,
    PLAN_FD_HOST = 6,    /* a pidfd of the host */
    PLAN_FD_SOURCES = 7, /* then the host's detached mounts, header.host_sources of them */
};
#define PLAN_HOST_SOURCES_MAX 32U
/* Mount sources of either kind: the host's /usr, /etc and /dev need some twenty of them. */
#define PLAN_SOURCES_MAX 96U
/* Where the interpreter of an exec-by-fd profile is opened: above the hard limit of open files
 * that the program then gets, so that the number can never be filled again. */
#define PLAN_EXEC_FD 1023
#define PLAN_EXEC_NOFILE 1000U

enum plan_mode {
    PLAN_MODE_ROOT = 1, /* the host writes the id maps: a host id of its own */
    PLAN_MODE_SELF = 2, /* init maps the caller's own id */
};

struct plan_span {
    uint32_t offset; /* bytes from the start of the block, 8-aligned */
    uint32_t count;  /* elements */
};

enum plan_op_kind {
    PLAN_OP_DIR = 1,   /* path, mode */
    PLAN_OP_FILE,      /* path, mode, data */
    PLAN_OP_SYMLINK,   /* path -> text */
    PLAN_OP_BIND,      /* source index -> path */
    PLAN_OP_BIND_DATA, /* text: a directory of the data tmpfs -> path */
    PLAN_OP_PROC,      /* a fresh procfs -> path */
    PLAN_OP_DEVPTS,    /* a private devpts -> path */
    PLAN_OP_MASK,      /* hide path, if it exists, behind an empty file or directory */
    PLAN_OP_READONLY,  /* make path, if it exists, read-only */
    PLAN_OP_KINDS,
};

enum plan_op_flags {
    PLAN_READONLY = 1U << 0,
    PLAN_NOSUID = 1U << 1,
    PLAN_NODEV = 1U << 2,
    PLAN_NOEXEC = 1U << 3,
    PLAN_IN_DATA = 1U << 4, /* DIR, FILE: below the data tmpfs, not in the root's tree */
};

struct plan_op {
    uint32_t kind;
    uint32_t flags;
    uint32_t mode;
    uint32_t path;
    uint32_t text;   /* SYMLINK: target; BIND_DATA: directory */
    uint32_t source; /* BIND: index into the sources */
    uint32_t data;   /* FILE: offset of its bytes */
    uint32_t data_len;
};

/* A mount source: a host path, or (path 0) the next of the host's detached mounts. */
struct plan_source {
    uint32_t path;
    uint32_t host_index;
};

enum plan_root { PLAN_ROOT_TMPFS = 1, PLAN_ROOT_OVERLAY = 2 };

struct plan_rlimit {
    uint32_t resource;
    uint32_t exact; /* 1: set to the value itself, even if the soft limit is below it */
    uint64_t value; /* lowered to, soft and hard; never raised */
};

enum plan_access {
    PLAN_ACCESS_READ = 1,
    PLAN_ACCESS_WRITE = 2,
    PLAN_ACCESS_DEVICES = 3, /* a directory of device files */
    PLAN_ACCESS_FILE = 4,    /* one file or device: read and written */
    PLAN_ACCESS_KINDS,
};
struct plan_access_rule {
    uint32_t path; /* absolute, in the new root */
    uint32_t access;
};

#define PLAN_CPU_WORDS 16U /* 1,024 CPUs, what a plain sched_getaffinity(2) mask holds */

enum plan_flags {
    PLAN_FLAG_RESULT_FD = 1U << 0,  /* the program keeps PLAN_FD_RESULT */
    PLAN_FLAG_EXEC_BY_FD = 1U << 1, /* program is opened at PLAN_EXEC_FD */
    PLAN_FLAG_WRITABLE = 1U << 2,   /* the root is writable */
};

struct plan_header {
    uint32_t magic;
    uint32_t version;
    uint32_t size; /* of the whole block */
    uint32_t flags;
    uint32_t mode;     /* enum plan_mode */
    uint32_t layers;   /* layers that this plan puts on (enum layer bits) */
    uint32_t required; /* of these, the ones without which init refuses */
    uint32_t host_sources;
    uint32_t uid, gid;                 /* inside */
    uint32_t outside_uid, outside_gid; /* self-map: the caller's ids */
    uint32_t root_kind;                /* enum plan_root */
    uint32_t hostname;
    uint32_t workdir;
    uint32_t program;          /* absolute path, or a name to look for in path_dirs */
    struct plan_span argv;     /* uint64_t text offsets, 0 at the end: become pointers in place */
    struct plan_span env;      /* the same */
    struct plan_span affinity; /* uint64_t words: the caller's CPUs, of which the program gets... */
    struct plan_span path_dirs; /* uint32_t text offsets: where a bare program name is looked for */
    struct plan_span sources;   /* struct plan_source */
    struct plan_span lower;     /* uint32_t source indexes, topmost first, below our skeleton */
    struct plan_span ops;       /* struct plan_op: what stands in the root */
    struct plan_span masks;     /* struct plan_op: done last */
    struct plan_span rlimits;   /* struct plan_rlimit */
    struct plan_span access;    /* struct plan_access_rule */
    struct plan_span seccomp;   /* struct sock_filter: the program's */
    struct plan_span init_seccomp; /* struct sock_filter: init's own */
    uint64_t scratch_bytes;        /* size= of the tmpfs that the root's own files are made in */
    uint64_t data_bytes;           /* size= of the one writable tmpfs */
    uint64_t data_inodes;
    uint64_t wall_ms;
    uint64_t cpu_time_ms;  /* 0: none, or kept by the host from the cgroup */
    uint64_t memory_bytes; /* the sampler's limit; 0: the cgroup keeps it */
    uint32_t cpus;         /* ...this many, counted from the one it starts on; 0: all */
    uint32_t nice;         /* given to the box's threads when the sampler is in a hurry */
    uint32_t reserved;     /* 0: keeps what follows aligned without a hole */
    uint32_t fault_call;   /* the test build only: 1 + the set-up call that fails */
    uint64_t skip_steps;   /* the test build only: steps left out, by number */
};

/* init -> host, one packet each. */
enum init_message_kind {
    INIT_MESSAGE_WORK = 1, /* carries an fd of /work; before any code runs */
    INIT_MESSAGE_STARTED,  /* the program's exec succeeded */
    INIT_MESSAGE_FAILED,   /* a step failed: the box was not built, no code ran */
    INIT_MESSAGE_MISSING,  /* an optional layer is not on */
    INIT_MESSAGE_NO_EXEC,  /* the program could not be executed: error */
    INIT_MESSAGE_ENDED,    /* the program ended, or init ended it */
    INIT_MESSAGE_NO_FAULT, /* the test build: the call to fail was never reached */
};

enum init_ended_by { INIT_ENDED_ITSELF, INIT_ENDED_WALL, INIT_ENDED_CPU, INIT_ENDED_MEMORY };

struct init_message {
    uint32_t kind;
    uint32_t step;  /* FAILED */
    uint32_t layer; /* MISSING */
    int32_t error;  /* positive errno */
    int32_t status; /* ENDED: the wait status */
    uint32_t ended_by;
    uint64_t memory_peak_bytes; /* sampled; 0: not sampled */
    uint64_t cpu_us;
    uint64_t pids_peak;
    char text[192]; /* FAILED, MISSING: the object */
};

#endif
