/*
 * seccomp.h - system call profiles as BPF.
 *
 * A profile is a JSON file in the format that Docker uses (hutch-policy(5)). The shipped ones
 * are compiled when hutch is built (tools/policy) and cost a run nothing; a user's file goes
 * through libseccomp, loaded for that, when it is asked for. Nothing here installs a filter:
 * init does, from the plan.
 *
 * Names begin with policy_, because seccomp_ (seccomp_load() too) is libseccomp's.
 */
#ifndef HUTCH_KERNEL_SECCOMP_H
#define HUTCH_KERNEL_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hutch.h"

#define POLICY_FILE_MAX_BYTES (1U << 20)
/* The kernel's bound (BPF_MAXINSNS). */
#define POLICY_MAX_INSNS 4096U

/* Who keeps the box's limits. Where no cgroup does, the rules of policy/watchdog.json stand before
 * every profile's own: no memory that no process's numbers show, no other CPUs. */
enum policy_variant { POLICY_CGROUP, POLICY_WATCHDOG, POLICY_VARIANTS };

/* A filter: `insns` points into the shipped table or into `owned`. */
struct policy_program {
    const struct sock_filter *insns;
    struct sock_filter *owned;
    unsigned short len;
};

struct policy_code {
    const struct sock_filter *insns;
    unsigned short len;
};

/* One row a shipped profile, made at build time. */
struct policy_shipped {
    const char *name;    /* "tool" */
    const char *comment; /* one line */
    const char *json;    /* the file's text, NUL-terminated */
    size_t json_len;
    bool internal; /* not for a request: what is under others or before them, init's filter */
    struct policy_code code[POLICY_VARIANTS];
};
extern const struct policy_shipped POLICY_SHIPPED[];
extern const size_t POLICY_SHIPPED_LEN;

/* NULL if there is none of that name. Internal ones are found too. */
const struct policy_shipped *policy_shipped_find(const char *name);

/* The program's filter for a profile: a shipped name that isn't internal, or a file (text with a
 * '/' or ending in .json), read on the host with the caller's rights. A file's filter always
 * stands on policy/floor.json. The caller frees *ret. Errors: HUTCH_STAGE_REQUEST for an unknown
 * name and for a file that can't be read or isn't a profile; HUTCH_STAGE_POLICY otherwise. */
int policy_load(const char *name_or_path, bool watchdog, struct policy_program *ret,
                struct hutch_error *err);
/* init's own filter; needs no free. */
struct policy_program policy_init_program(void);
void policy_program_free(struct policy_program *program);

/* True for a profile that starts its program by execveat(PLAN_EXEC_FD) and a secret, and then
 * allows no exec at all (seccomp_secret.h). */
bool policy_exec_by_fd(const char *name_or_path);

/* True if the kernel would load it. */
bool policy_valid(const struct sock_filter *insns, size_t len);
/* What the filter answers to one call: the kernel's interpreter in small. SECCOMP_RET_KILL_PROCESS
 * for a program that the kernel wouldn't have loaded. */
uint32_t policy_eval(const struct sock_filter *insns, size_t len, const struct seccomp_data *data);

enum policy_abi { POLICY_ABI_X86_64, POLICY_ABI_X32, POLICY_ABI_I386, POLICY_ABIS };
#define POLICY_COUNT_NUMBERS 1024U

/* "x86-64", "x32", "i386"; static storage. */
const char *policy_abi_name(enum policy_abi abi);
/* True if some arguments make the filter answer ALLOW (or LOG, which lets the call through). Every
 * branch on an argument counts as possible, so the answer never errs towards "no". */
bool policy_reachable(const struct sock_filter *insns, size_t len, enum policy_abi abi,
                      unsigned number);
/* How many of the numbers 0..1023 are reachable, in all ABIs; each ABI's in ret_by_abi. */
unsigned policy_count(const struct policy_program *program, unsigned ret_by_abi[POLICY_ABIS]);

#endif
