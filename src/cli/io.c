/*
 * io.c - reading what the words name, writing what they asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"

int cli_write(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
            if (poll(&pollfd, 1, -1) < 0 && errno != EINTR)
                return -errno;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

void cli_message(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0)
        return;
    size_t used = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    for (size_t i = 0; i < used; i++) {
        if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t')
            text[i] = ' ';
    }
    _cleanup_buf_ struct buf line = BUF(0);
    buf_puts(&line, "hutch: ");
    (void)terminal_clean(&line, text, used, true);
    buf_puts(&line, "\n");
    if (!line.failed)
        (void)cli_write(STDERR_FILENO, line.data, line.len);
}

int cli_failed(const struct hutch_error *err)
{
    cli_message("%s", err->message);
    return err->stage == HUTCH_STAGE_REQUEST ? CLI_USAGE : CLI_FAILED;
}

int cli_print(const char *data, size_t len)
{
    int r = data ? cli_write(STDOUT_FILENO, data, len) : -ENOMEM;
    if (r == 0)
        return CLI_OK;
    cli_message("write standard output: %s", strerrordesc_np(-r));
    return CLI_FAILED;
}

int cli_print_line(const char *data, size_t len)
{
    _cleanup_buf_ struct buf line = BUF(0);
    if (data)
        buf_put(&line, data, len);
    buf_puts(&line, "\n");
    return cli_print(data && !line.failed ? line.data : NULL, line.len);
}

/* ---- reading ---- */

/* A shell's <(...): it has a writer, or its end has been reached. */
static bool is_unnamed_pipe(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

static int refuse_kind(const char *path, int fd, mode_t mode, bool pipes, struct hutch_error *err)
{
    if (S_ISDIR(mode))
        return error_request(err, "read '%.300s': it is a directory", path);
    if (S_ISFIFO(mode) && !pipes && !is_unnamed_pipe(fd))
        return error_request(
            err, "read '%.300s': it is a pipe; give - and put it on standard input", path);
    if (S_ISSOCK(mode) || S_ISBLK(mode))
        return error_request(err, "read '%.300s': it is not a file", path);
    return 0;
}

int cli_open(const char *path, bool pipes, int *ret_fd, mode_t *ret_mode, struct hutch_error *err)
{
    /* Non-blocking, so that a FIFO nobody writes to is refused rather than waited for. */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (pipes ? 0 : O_NONBLOCK);
    _cleanup_close_ int fd = open(path, flags);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, HUTCH_STAGE_REQUEST, errno, "read '%.300s'", path);
    int r = refuse_kind(path, fd, st.st_mode, pipes, err);
    if (r < 0)
        return r;
    if (ret_mode)
        *ret_mode = st.st_mode;
    *ret_fd = take_fd(&fd);
    return 0;
}

int cli_read(const char *path, size_t max, struct buf *buf, mode_t *ret_mode,
             struct hutch_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    _cleanup_close_ int opened = -1;
    if (!standard) {
        int r = cli_open(path, false, &opened, ret_mode, err);
        if (r < 0)
            return r;
    }
    const char *name = standard ? "standard input" : path;
    int r = buf_read_fd(buf, standard ? STDIN_FILENO : opened, max);
    if (r == -EFBIG)
        return error_request(err, "read '%.300s': it has more than %zu bytes", name, max);
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_REQUEST, r, "read '%.300s'", name);
    return 0;
}
