#include "base/buf.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAP = 256, READ_CHUNK = 4 * 1024 };

void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = BUF(buf->max);
}

static size_t limit(const struct buf *buf)
{
    return buf->max && buf->max < SIZE_MAX / 2 ? buf->max : SIZE_MAX / 2;
}

char *buf_reserve(struct buf *buf, size_t len)
{
    if (buf->failed)
        return NULL;
    if (len > limit(buf) - buf->len) {
        buf->failed = -E2BIG;
        return NULL;
    }
    /* One byte more than asked, for the NUL of buf_take() and buf_printf(). */
    size_t need = buf->len + len + 1;
    if (need > buf->cap) {
        size_t cap = buf->cap ? buf->cap : FIRST_CAP;
        while (cap < need)
            cap *= 2;
        char *data = realloc(buf->data, cap);
        if (!data) {
            buf->failed = -ENOMEM;
            return NULL;
        }
        buf->data = data;
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void buf_put(struct buf *buf, const void *data, size_t len)
{
    char *to = buf_reserve(buf, len);
    if (!to || len == 0)
        return;
    memcpy(to, data, len);
    buf->len += len;
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char small[256];
    int len = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (len < 0) {
        if (!buf->failed)
            buf->failed = -EINVAL;
    } else if ((size_t)len < sizeof(small)) {
        buf_put(buf, small, (size_t)len);
    } else {
        char *to = buf_reserve(buf, (size_t)len);
        if (to) {
            (void)vsnprintf(to, (size_t)len + 1, format, again);
            buf->len += (size_t)len;
        }
    }
    va_end(again);
}

char *buf_take(struct buf *buf, size_t *ret_len)
{
    char *end = buf_reserve(buf, 0);
    if (!end)
        return NULL;
    *end = '\0';
    char *data = take_ptr(buf->data);
    if (ret_len)
        *ret_len = buf->len;
    *buf = BUF(buf->max);
    return data;
}

/* Waits for a caller's fd that happens to be non-blocking (a shared terminal often is). */
static int wait_readable(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    return poll(&pollfd, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

int buf_read_fd(struct buf *buf, int fd, size_t max)
{
    size_t start = buf->len;
    char probe;
    for (;;) {
        size_t left = max - (buf->len - start);
        /* At the bound one more byte is asked for, only to tell a full file from a longer one. */
        size_t want = left == 0 ? 1 : left < READ_CHUNK ? left : READ_CHUNK;
        char *to = left == 0 ? &probe : buf_reserve(buf, want);
        if (!to)
            return buf->failed;
        ssize_t n = read(fd, to, want);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EAGAIN) {
            int r = wait_readable(fd);
            if (r < 0)
                return r;
        } else if (n < 0 && errno != EINTR) {
            return -errno;
        } else if (n > 0) {
            if (left == 0)
                return -EFBIG;
            buf->len += (size_t)n;
        }
    }
}
