/*
 * collect.h - the files that a box left in /work, read when nothing in it is alive any more.
 */
#ifndef HUTCH_BOX_COLLECT_H
#define HUTCH_BOX_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hutch.h"
#include "request/request.h"

struct collected_file {
    char *name; /* relative to /work; bytes, not necessarily UTF-8 */
    size_t name_len;
    char *data;
    size_t data_len;
    uint64_t size; /* of the whole file; data is cut when it is less */
    bool executable;
};

struct skipped_file {
    char *name;
    size_t name_len;
    const char *why; /* "symlink", "fifo", "socket", "device", "directory depth", "unreadable" */
};

struct collected {
    struct collected_file *files;
    size_t files_len;
    struct skipped_file *skipped;
    size_t skipped_len;
    bool cut; /* a bound was reached: there is more that isn't listed */
};

struct collect_bounds {
    size_t files_max; /* files and skipped, each */
    unsigned depth_max;
    uint64_t bytes_max;   /* all data together */
    uint64_t entries_max; /* directory entries looked at */
};
extern const struct collect_bounds COLLECT_BOUNDS;

/* Walks work_fd (a directory fd; stays the caller's), without following anything, without
 * blocking, only regular files, mode-000 entries made readable first. Left out: the code file,
 * and input files of `request` whose bytes did not change. Sorted by name. */
int collect_files(int work_fd, const struct hutch_request *request,
                  const struct collect_bounds *bounds, struct collected *ret,
                  struct hutch_error *err);
void collected_free(struct collected *collected);

#endif
