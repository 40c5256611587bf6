/*
 * seccomp_profile.h - a profile as it was read, and its way to BPF. Shared by the build-time
 * compiler (tools/policy), which calls libseccomp directly, and by the library, which calls it
 * through dlopen: the compiler takes libseccomp as a table of functions.
 */
#ifndef HUTCH_KERNEL_SECCOMP_PROFILE_H
#define HUTCH_KERNEL_SECCOMP_PROFILE_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "hutch.h"

#define PROFILE_ARGS_MAX 32U

struct profile_rule {
    char **names;
    size_t names_len;
    uint32_t action;   /* SCMP_ACT_*, with its errno */
    int refused_errno; /* ALLOW with args: what other arguments get; 0: the default action */
    struct scmp_arg_cmp args[PROFILE_ARGS_MAX];
    unsigned args_len;
    bool skipped; /* includes or excludes say that it isn't for here */
};

struct profile {
    uint32_t default_action;
    char *comment; /* may be NULL */
    struct profile_rule *rules;
    size_t rules_len, rules_cap;
};

void profile_free(struct profile *profile);
#define _cleanup_profile_ _cleanup_(profile_free)

/* Reads the text of a profile into *profile (empty before). `name` is what errors call it.
 * `notes` (may be NULL) gets a line for each thing that was accepted but has no effect here. */
int profile_parse(const char *name, const char *json, size_t json_len, struct profile *profile,
                  struct buf *notes, struct hutch_error *err);

/* The functions of libseccomp that are needed. */
struct profile_lib {
    scmp_filter_ctx (*init)(uint32_t default_action);
    void (*release)(scmp_filter_ctx ctx);
    int (*attr_set)(scmp_filter_ctx ctx, enum scmp_filter_attr attr, uint32_t value);
    int (*rule_add_array)(scmp_filter_ctx ctx, uint32_t action, int number, unsigned args_len,
                          const struct scmp_arg_cmp *args);
    int (*resolve_name)(const char *name);
    int (*export_bpf)(const scmp_filter_ctx ctx, int fd);
};

struct profile_code {
    struct sock_filter *insns; /* owned */
    size_t len;
};
void profile_code_free(struct profile_code *code);
#define _cleanup_profile_code_ _cleanup_(profile_code_free)

/* The number of a call, by libseccomp's function or, where that is older than the call, by a table
 * here. __NR_SCMP_ERROR: nobody knows it; other numbers below 0 aren't of x86-64. */
int profile_number(int (*resolve_name)(const char *name), const char *name);

/* Turns a profile into BPF. The rules of `first` (may be NULL), which refuse and don't allow, stand
 * before its own. `notes` gets a line for each name that nobody knows. */
int profile_compile(const char *name, const struct profile *first, const struct profile *profile,
                    const struct profile_lib *lib, struct profile_code *ret, struct buf *notes,
                    struct hutch_error *err);

/* Appends `next` to `code`, and makes everything in it that answered exactly `action` go on
 * there. */
int profile_chain(struct profile_code *code, uint32_t action, const struct sock_filter *next,
                  size_t next_len, struct hutch_error *err);

#endif
