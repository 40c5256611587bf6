#include "base/dl.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

static int fail(struct hutch_error *err, enum hutch_stage stage, const char *soname,
                const char *package)
{
    const char *why = dlerror();
    return error_set(err, stage, ENOENT, "load %s: %s; install the package %s", soname,
                     why ? why : "unknown cause", package);
}

int dl_open(const char *soname, const char *package, const struct dl_symbol *symbols,
            size_t symbols_len, enum hutch_stage stage, void **ret_handle, struct hutch_error *err)
{
    void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(err, stage, soname, package);
    for (size_t i = 0; i < symbols_len; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            int r = fail(err, stage, soname, package);
            (void)dlclose(handle);
            return r;
        }
        memcpy(symbols[i].slot, &address, sizeof(address));
    }
    *ret_handle = handle;
    return 0;
}

void dl_close(void *handle)
{
    if (handle)
        (void)dlclose(handle);
}
