/*
 * step.h - the set-up steps of a box, each written once.
 *
 * Every step takes the checked plan and the state that steps hand on, does one thing in order,
 * and returns 0 or a negative errno with `state->object` naming what it was doing it to. None
 * allocates, none uses libc, none keeps a global: init runs them, and whatever builds a box from
 * inside another process can run them too.
 */
#ifndef HUTCH_KERNEL_STEP_STEP_H
#define HUTCH_KERNEL_STEP_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/layer.h"
#include "plan/wire.h"

struct step_state {
    const char *block; /* the mapped plan; starts with its header */
    const struct plan_header *plan;
    int source_fds[PLAN_SOURCES_MAX]; /* detached mounts, -1 when moved or unused */
    int scratch_fd;                   /* our tmpfs, over the old root */
    int tree_fd;                      /* where the root's own files are made */
    int root_fd;                      /* the new root */
    int data_fd;                      /* the one writable tmpfs */
    int work_fd;                      /* its work directory, handed to the host at the end */
    uint64_t exec_secret;             /* lets the one exec of an exec-by-fd profile through */
    const char *object;               /* what the failing call was about */
    /* Called for a wanted layer that could not be put on. */
    void (*missing)(struct step_state *state, enum layer layer, int error);
};

static inline const void *plan_at(const struct step_state *s, uint32_t offset)
{
    return s->block + offset;
}
static inline const char *plan_text(const struct step_state *s, uint32_t offset)
{
    return s->block + offset;
}
static inline int plan_has(const struct step_state *s, enum layer layer)
{
    return (s->plan->layers & LAYER_BIT(layer)) != 0;
}

/* What to do about a layer that failed: refuse if it is required, else say so and go on. */
static inline int step_optional(struct step_state *s, enum layer layer, int error)
{
    if (error == 0 || (s->plan->required & LAYER_BIT(layer)) != 0)
        return error;
    s->missing(s, layer, -error);
    return 0;
}

/* ids.c */
int step_self_map(struct step_state *s);
int step_become_user(struct step_state *s);
/* process.c */
int step_time_namespace(struct step_state *s);
int step_cgroup_namespace(struct step_state *s);
int step_oom_score(struct step_state *s);
int step_non_dumpable(struct step_state *s);
int step_host_name(struct step_state *s);
int step_loopback(struct step_state *s);
int step_socket_buffers(struct step_state *s);
int step_rlimits(struct step_state *s);
/* mount.c, root.c */
int step_private_mounts(struct step_state *s);
int step_open_sources(struct step_state *s);
int step_scratch(struct step_state *s);
int step_make_tree(struct step_state *s);
int step_mount_root(struct step_state *s);
int step_fill_root(struct step_state *s);
int step_no_user_namespaces(struct step_state *s);
int step_mask(struct step_state *s);
int step_pivot(struct step_state *s);
int step_detach_old_root(struct step_state *s);
int step_workdir(struct step_state *s);
/* program.c: in the program's process, just before exec */
int step_signals(struct step_state *s);
int step_session(struct step_state *s);
int step_schedule(struct step_state *s);
int step_drop_bounding(struct step_state *s);
int step_lock_securebits(struct step_state *s);
int step_drop_capabilities(struct step_state *s);
int step_no_new_privs(struct step_state *s);
int step_landlock(struct step_state *s);
int step_exec_fd(struct step_state *s);
int step_program_fds(struct step_state *s);
int step_seccomp(struct step_state *s);
/* Installs a filter of the plan on the calling thread. */
int step_install_filter(struct step_state *s, struct plan_span filter);
/* Returns only if the program can't be executed: the errno of the attempt that counts. */
int step_exec(struct step_state *s);

/* check.c: 0 if every offset, count and kind of the block stays inside it, else -EINVAL. The one
 * check; after it the steps index without looking. */
int plan_check(const void *block, size_t size);

/* text.c: the few string functions that the steps need */
size_t text_len(const char *text);
int text_equal(const char *a, const char *b);
/* Appends to buf at *len, never past cap-1, always NUL-terminated. */
void text_add(char *buf, size_t cap, size_t *len, const char *text);
void text_add_number(char *buf, size_t cap, size_t *len, uint64_t value);
/* Writes text to the file at path (relative to dir_fd) in one write; negative errno. */
int text_write_file(int dir_fd, const char *path, const char *text);

#endif
