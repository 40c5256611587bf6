/* seccomp_file.h - a user's profile: read, translated by libseccomp, put on the floor. */
#ifndef HUTCH_KERNEL_SECCOMP_FILE_H
#define HUTCH_KERNEL_SECCOMP_FILE_H

#include "base/buf.h"
#include "kernel/seccomp.h"

/* A policy is a file's path if it has a '/' or ends in .json. */
bool policy_is_path(const char *name_or_path);

/* policy_load() for a path. */
int policy_load_file(const char *path, enum policy_variant variant, struct policy_program *ret,
                     struct hutch_error *err);
/* The same for a text; `notes` (may be NULL) gets a line for everything in it that has no effect.
 */
int policy_load_text(const char *name, const char *json, size_t json_len,
                     enum policy_variant variant, struct policy_program *ret, struct buf *notes,
                     struct hutch_error *err);
/* Reads a profile's file: a regular one, of at most POLICY_FILE_MAX_BYTES. */
int policy_read_file(const char *path, struct buf *buf, struct hutch_error *err);

#endif
