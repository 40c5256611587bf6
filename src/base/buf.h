/* buf.h - a growing byte buffer that never grows past its bound. */
#ifndef HUTCH_BASE_BUF_H
#define HUTCH_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "cleanup.h"

/* `failed` is sticky: after the first failed put nothing more is added, and one check at the
 * end is enough. -ENOMEM: no memory; -E2BIG: the bound was reached. */
struct buf {
    char *data;
    size_t len, cap;
    size_t max; /* 0: SIZE_MAX / 2 */
    int failed; /* 0 or negative errno */
};

#define BUF(max_bytes) ((struct buf){.max = (max_bytes)})

void buf_free(struct buf *buf);
#define _cleanup_buf_ _cleanup_(buf_free)

void buf_put(struct buf *buf, const void *data, size_t len);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `len` more bytes and returns where they go; the caller adds to buf->len. */
char *buf_reserve(struct buf *buf, size_t len);
/* Adds a NUL that doesn't count in len and hands the data out; NULL if the buffer has failed. */
char *buf_take(struct buf *buf, size_t *ret_len);
/* Reads fd to its end; at most `max` bytes, else -EFBIG. */
int buf_read_fd(struct buf *buf, int fd, size_t max);

#endif
