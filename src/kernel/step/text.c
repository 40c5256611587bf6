/* text.c - the few string functions that the set-up steps need without libc. */
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>

size_t text_len(const char *text)
{
    size_t len = 0;
    while (text[len] != '\0')
        len++;
    return len;
}

int text_equal(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

void text_add(char *buf, size_t cap, size_t *len, const char *text)
{
    while (*text != '\0' && *len + 1 < cap)
        buf[(*len)++] = *text++;
    buf[*len] = '\0';
}

void text_add_number(char *buf, size_t cap, size_t *len, uint64_t value)
{
    char digits[21];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    text_add(buf, cap, len, digits + at);
}

int text_write_file(int dir_fd, const char *path, const char *text)
{
    size_t len = text_len(text);
    long fd = step_call(__NR_openat, dir_fd, path, O_WRONLY | O_CLOEXEC, 0);
    long n;

    if (fd < 0)
        return (int)fd;
    n = step_call(__NR_write, fd, text, len);
    sys_close((int)fd);
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : -5; /* EIO: a short write to a proc file means it was refused */
}
