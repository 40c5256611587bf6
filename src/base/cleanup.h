/* cleanup.h - every resource has one owner and ends with its scope. */
#ifndef HUTCH_BASE_CLEANUP_H
#define HUTCH_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_ptr(void *p)
{
    free(*(void **)p);
}
/* close() is never retried: on Linux the fd is gone whatever it answers. */
static inline void cleanup_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(cleanup_free_ptr)
#define _cleanup_close_ _cleanup_(cleanup_close_fd)

/* Moves a resource out of a cleanup variable. */
#define take_ptr(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
/* Closes a stored fd and marks it closed. */
static inline void close_fd(int *fd)
{
    cleanup_close_fd(fd);
    *fd = -1;
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
