/*
 * dl.h - libraries that only some runs need (libseccomp for a user's profile, libnl for network
 * probes) are loaded when they are first needed, so that no other run pays for them at start.
 */
#ifndef HUTCH_BASE_DL_H
#define HUTCH_BASE_DL_H

#include <stddef.h>

#include "hutch.h"

/* One row a function: its name, and where its address goes. */
struct dl_symbol {
    const char *name;
    void *slot; /* a pointer to a function pointer */
};

/* Loads `soname` and fills every slot; `package` is the Debian package that the error names as
 * the remedy. Never unloaded by us before dl_close(). */
int dl_open(const char *soname, const char *package, const struct dl_symbol *symbols,
            size_t symbols_len, enum hutch_stage stage, void **ret_handle, struct hutch_error *err);
void dl_close(void *handle);

#endif
