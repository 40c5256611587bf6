/*
 * terminal.c - what a box writes must not drive the terminal it is shown on: escape sequences
 * can retitle, repaint and on some terminals type. Control characters are made visible; text,
 * newlines, tabs and carriage returns pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"

/* How long the UTF-8 character that starts with this byte is; 0: none starts so. */
static size_t character_len(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

static void put_character(struct buf *out, const char *text, size_t len)
{
    unsigned char c = (unsigned char)text[0];
    if (c == '\n' || c == '\t' || c == '\r')
        buf_put(out, text, 1);
    else if (c < 0x20 || c == 0x7f)
        buf_printf(out, "^%c", c ^ 0x40);
    else if (c == 0xc2 && (unsigned char)text[1] < 0xa0)
        buf_printf(out, "<U+00%02X>", (unsigned char)text[1]);
    else
        buf_put(out, text, len);
}

size_t terminal_clean(struct buf *out, const char *text, size_t len, bool last)
{
    size_t at = 0;
    while (at < len) {
        size_t want = character_len((unsigned char)text[at]);
        if (want > len - at && !last)
            return at;
        if (want > 0 && want <= len - at && utf8_valid(text + at, want)) {
            put_character(out, text + at, want);
            at += want;
        } else {
            buf_printf(out, "<%02X>", (unsigned char)text[at]);
            at++;
        }
    }
    return at;
}

/* ---- the process in between ---- */

struct stream {
    int from, to;
    char kept[4096]; /* with the started character of the last read in front */
    size_t kept_len;
};

/* false: the stream has ended. */
static bool pump(struct stream *stream)
{
    size_t room = sizeof(stream->kept) - stream->kept_len;
    ssize_t n = read(stream->from, stream->kept + stream->kept_len, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    size_t len = stream->kept_len + (n > 0 ? (size_t)n : 0);
    _cleanup_buf_ struct buf clean = BUF(0);
    size_t used = terminal_clean(&clean, stream->kept, len, n <= 0);
    /* A terminal that is gone: go on reading, so that the box isn't stopped by it. */
    if (!clean.failed && clean.len > 0)
        (void)cli_write(stream->to, clean.data, clean.len);
    memmove(stream->kept, stream->kept + used, len - used);
    stream->kept_len = len - used;
    return n > 0;
}

__attribute__((noreturn)) static void pump_all(struct stream streams[2])
{
    struct pollfd fds[2] = {{.fd = streams[0].from, .events = POLLIN},
                            {.fd = streams[1].from, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            _exit(1);
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd >= 0 && fds[i].revents && !pump(&streams[i]))
                fds[i].fd = -1;
        }
    }
    _exit(0);
}

static int fail(struct terminal *terminal, int error, struct hutch_error *err)
{
    for (int i = 0; i < 2; i++) {
        if (terminal->fds[i] > STDERR_FILENO)
            close_fd(&terminal->fds[i]);
    }
    return error_errno(err, HUTCH_STAGE_SUPERVISE, error, "put a filter before the terminal");
}

int terminal_start(struct terminal *terminal, struct hutch_error *err)
{
    struct stream streams[2] = {{.from = -1, .to = STDOUT_FILENO},
                                {.from = -1, .to = STDERR_FILENO}};
    *terminal = (struct terminal){.fds = {STDOUT_FILENO, STDERR_FILENO}};
    bool needed = false;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (!isatty(streams[i].to))
            continue;
        if (pipe2(ends, O_CLOEXEC) < 0)
            return fail(terminal, errno, err);
        needed = true;
        streams[i].from = ends[0];
        terminal->fds[i] = ends[1];
    }
    if (!needed)
        return 0;
    terminal->pid = fork();
    if (terminal->pid < 0) {
        terminal->pid = 0;
        return fail(terminal, errno, err);
    }
    for (int i = 0; i < 2; i++) {
        if (terminal->pid == 0 && streams[i].from >= 0)
            (void)close(terminal->fds[i]);
        if (terminal->pid > 0)
            close_fd(&streams[i].from);
    }
    if (terminal->pid == 0)
        pump_all(streams);
    return 0;
}

void terminal_finish(struct terminal *terminal)
{
    if (terminal->pid <= 0)
        return;
    for (int i = 0; i < 2; i++) {
        if (terminal->fds[i] > STDERR_FILENO)
            close_fd(&terminal->fds[i]);
    }
    while (waitpid(terminal->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    terminal->pid = 0;
}
