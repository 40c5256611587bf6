/* builder.h - grows a plan block: texts and data first, tables behind them, the header last. */
#ifndef HUTCH_PLAN_BUILDER_H
#define HUTCH_PLAN_BUILDER_H

#include "base/buf.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "plan/wire.h"

struct builder {
    const struct hutch_request *request;
    const struct facts *facts;
    enum plan_purpose purpose;
    struct plan_header header;
    struct buf block; /* the header's room, texts, data */
    struct buf argv, env, path_dirs, sources, lower, ops, masks, rlimits, access; /* tables */
    struct buf made; /* the directories and the root's files so far, "rpath\0fpath\0" */
};

void builder_init(struct builder *b, const struct hutch_request *request, enum plan_purpose purpose,
                  const struct facts *facts);
void builder_free(struct builder *b);
#define _cleanup_builder_ _cleanup_(builder_free)

uint32_t builder_text(struct builder *b, const char *text);
uint32_t builder_data(struct builder *b, const void *data, size_t len);
/* Operations; paths may start with '/', which is cut. Parents are made where they are missing. */
void builder_dir(struct builder *b, const char *path, uint32_t mode, uint32_t flags);
void builder_file(struct builder *b, const char *path, uint32_t mode, uint32_t flags,
                  const void *data, size_t len);
/* True if the root has that directory or file by now. */
bool builder_has(const struct builder *b, const char *path);
void builder_symlink(struct builder *b, const char *path, const char *target);
void builder_bind(struct builder *b, uint32_t source, const char *path, uint32_t flags);
void builder_bind_data(struct builder *b, const char *dir, const char *path, uint32_t flags);
void builder_op(struct builder *b, enum plan_op_kind kind, const char *path);
void builder_mask(struct builder *b, enum plan_op_kind kind, const char *path);
/* A mount source: a host path, or the host's detached mount of that index. */
uint32_t builder_source(struct builder *b, const char *path, int host_index);
void builder_lower(struct builder *b, uint32_t source);
void builder_argv(struct builder *b, const char *text);
void builder_env(struct builder *b, const char *name, const char *value);
void builder_env_text(struct builder *b, const char *pair);
void builder_path_dir(struct builder *b, const char *dir);
void builder_rlimit(struct builder *b, uint32_t resource, uint64_t value, bool exact);
void builder_access(struct builder *b, const char *path, enum plan_access access);
/* Joins everything; the block is then in *ret_block. */
int builder_finish(struct builder *b, struct buf *ret_block, struct hutch_error *err);

/* root.c, process.c: the parts of a plan. */
void plan_add_root(struct builder *b);
int plan_add_payload(struct builder *b, struct hutch_error *err);
void plan_add_process(struct builder *b);

#endif
