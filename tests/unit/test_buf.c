#include "base/buf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

Test(buf, puts_and_takes)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    buf_puts(&buf, "ab");
    buf_put(&buf, "\0c", 2);
    buf_put(&buf, NULL, 0);
    buf_printf(&buf, "%d", 42);
    size_t len;
    _cleanup_free_ char *data = buf_take(&buf, &len);
    cr_assert_eq(len, 6);
    cr_assert_arr_eq(data, "ab\0c42", 7);
    cr_assert_null(buf.data);
    cr_assert_eq(buf.len, 0);
}

Test(buf, empty_take_is_an_empty_string)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    _cleanup_free_ char *data = buf_take(&buf, NULL);
    cr_assert_str_eq(data, "");
}

Test(buf, long_printf_is_whole)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    buf_printf(&buf, "<%s>", text);
    cr_assert_eq(buf.len, 1001);
    cr_assert_eq(buf.data[1000], '>');
}

Test(buf, bound_is_exact_and_sticky)
{
    _cleanup_buf_ struct buf buf = BUF(4);
    buf_puts(&buf, "1234");
    cr_assert_eq(buf.failed, 0);
    buf_puts(&buf, "5");
    cr_assert_eq(buf.failed, -E2BIG);
    cr_assert_eq(buf.len, 4);
    buf_puts(&buf, "");
    cr_assert_null(buf_take(&buf, NULL));
    cr_assert_null(buf_reserve(&buf, 0));
}

Test(buf, huge_reserve_fails_without_overflow)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    buf_puts(&buf, "x");
    cr_assert_null(buf_reserve(&buf, SIZE_MAX));
    cr_assert_eq(buf.failed, -E2BIG);
}

static int file_of(size_t len)
{
    char name[] = "/tmp/test_buf_XXXXXX";
    int fd = mkstemp(name);
    cr_assert_geq(fd, 0);
    unlink(name);
    cr_assert_eq(ftruncate(fd, (off_t)len), 0);
    return fd;
}

Test(buf, reads_to_the_end)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    _cleanup_close_ int fd = file_of(200000);
    buf_puts(&buf, "x");
    cr_assert_eq(buf_read_fd(&buf, fd, 200000), 0);
    cr_assert_eq(buf.len, 200001);
}

Test(buf, one_byte_over_the_bound_is_refused)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    _cleanup_close_ int fd = file_of(1001);
    cr_assert_eq(buf_read_fd(&buf, fd, 1000), -EFBIG);
    _cleanup_buf_ struct buf empty = BUF(0);
    _cleanup_close_ int nothing = file_of(0);
    cr_assert_eq(buf_read_fd(&empty, nothing, 0), 0);
}

Test(buf, read_errors_come_back)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    cr_assert_eq(buf_read_fd(&buf, -1, 10), -EBADF);
    _cleanup_close_ int fd = open("/", O_RDONLY | O_CLOEXEC);
    cr_assert_eq(buf_read_fd(&buf, fd, 10), -EISDIR);
}

Test(buf, nonblocking_fd_is_waited_for)
{
    int fds[2];
    cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        for (int i = 0; i < 3; i++) {
            ssize_t n = write(fds[1], "abc", 3);
            usleep(1000); /* so that the reader runs dry in between */
            if (n != 3)
                _exit(1);
        }
        _exit(0);
    }
    close(fds[1]);
    _cleanup_buf_ struct buf buf = BUF(0);
    cr_assert_eq(buf_read_fd(&buf, fds[0], 100), 0);
    cr_assert_eq(buf.len, 9);
    close(fds[0]);
}
