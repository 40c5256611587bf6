/*
 * streams.c - what goes in and out of a box while it runs: output kept or passed on, standard
 * input, the result document.
 *
 * Nothing here blocks the host's loop, whoever is slow. A caller's fd is written only when it has
 * room, and no more than a pipe with any room takes; while it has none the box's pipe is left
 * alone, so that the program waits for its reader as it would outside, its limits still running.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "box/document.h"
#include "box/run.h"

/* Read at a time, and at most this often in a row before other fds have their turn. */
#define READ_BYTES 65536
#define READS_IN_A_ROW 16

/* A reader that is gone is an answer here, not a reason for the host to die: SIGPIPE is held back
 * for this one write, whatever the host does with it. */
static ssize_t write_quietly(int fd, const char *data, size_t len)
{
    const struct timespec no_time = {0};
    sigset_t pipe_signal, before;
    ssize_t n;
    int error;

    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    n = write(fd, data, len);
    error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&before, SIGPIPE))
        (void)sigtimedwait(&pipe_signal, NULL, &no_time);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void stop_passing_on(struct output *output)
{
    output->pass_on_fd = -1;
    output->chunk_len = output->chunk_sent = 0;
}

/* The reader is gone (`hutch run ... | head`): nobody wants the rest, as SIGPIPE would say. */
static void reader_is_gone(struct hutch_run *run, struct output *output)
{
    stop_passing_on(output);
    run_end(run, RUN_BY_CANCEL);
}

void streams_drop(struct hutch_run *run)
{
    for (int i = 0; i < 2; i++)
        stop_passing_on(&run->outputs[i]);
}

static bool has_room(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLOUT};

    return poll(&pollfd, 1, 0) != 0; /* an error is found by the write */
}

static void wait_for_reader(struct hutch_run *run, struct output *output)
{
    if (output->waits)
        return;
    output->waits = true;
    if (output->fd >= 0)
        (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, output->fd, NULL);
    /* Both streams may have the same fd: then it is watched once, and wakes both. */
    (void)run_poll(run, output->pass_on_fd, SOURCE_READER, EPOLLOUT, NULL);
}

/* True when nothing waits to be passed on any more. */
static bool flush(struct hutch_run *run, struct output *output)
{
    while (output->pass_on_fd >= 0 && output->chunk_sent < output->chunk_len) {
        ssize_t n = 0;
        if (has_room(output->pass_on_fd))
            n = write_quietly(output->pass_on_fd, output->chunk + output->chunk_sent,
                              output->chunk_len - output->chunk_sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            if (errno != EPIPE)
                run->pass_on_error = errno; /* a full disk, say: output must not vanish */
            reader_is_gone(run, output);
            return true;
        }
        if (n <= 0) {
            wait_for_reader(run, output);
            return false;
        }
        output->chunk_sent += (size_t)n;
    }
    return true;
}

/* Behind the cap nothing is written any more, so no write can tell that the reader is gone. */
static void check_reader(struct hutch_run *run, struct output *output)
{
    struct pollfd fd = {.fd = output->pass_on_fd};

    if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLHUP)) != 0)
        reader_is_gone(run, output);
}

/* Keeps (or passes on) what the cap leaves room for, counts the rest. */
static void take_output(struct hutch_run *run, struct output *output, const char *data, size_t len)
{
    const uint64_t cap = run->request->limits.max_output_bytes;
    uint64_t room = output->stream->total < cap ? cap - output->stream->total : 0;
    size_t keep = len < room ? len : (size_t)room;

    output->stream->total += len;
    if (!output->stream->passed_on) {
        buf_put(&output->stream->kept, data, keep);
    } else if (output->pass_on_fd >= 0) {
        memcpy(output->chunk, data, keep); /* read in chunks of that size */
        output->chunk_len = keep;
        output->chunk_sent = 0;
        if (keep < len)
            check_reader(run, output);
    }
    if (output->stream->total > cap && run->request->flood == FLOOD_KILL)
        run_end(run, RUN_BY_OUTPUT);
}

/* False when there is nothing to read now, or nobody to take it. */
static bool read_some(struct hutch_run *run, struct output *output)
{
    char data[READ_BYTES];
    size_t want = output->pass_on_fd >= 0 ? PASS_ON_BYTES : sizeof(data);
    ssize_t n;

    if (!flush(run, output))
        return false;
    n = read(output->fd, data, want);
    if (n > 0)
        take_output(run, output, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_fd(&output->fd);
    return n > 0;
}

void streams_read(struct hutch_run *run, struct output *output)
{
    for (int i = 0; output->fd >= 0 && i < READS_IN_A_ROW; i++)
        if (!read_some(run, output))
            return;
    (void)flush(run, output);
}

void streams_reader_ready(struct hutch_run *run)
{
    for (int i = 0; i < 2; i++) {
        struct output *output = &run->outputs[i];
        if (!output->waits)
            continue;
        output->waits = false;
        if (output->pass_on_fd >= 0)
            (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, output->pass_on_fd, NULL);
        (void)run_poll(run, output->fd, i == 0 ? SOURCE_OUT : SOURCE_ERR, EPOLLIN, NULL);
        streams_read(run, output);
    }
}

static bool drain_one(struct hutch_run *run, struct output *output)
{
    while (output->fd >= 0) {
        int left = 0;
        if (!flush(run, output))
            return false;
        if (ioctl(output->fd, FIONREAD, &left) < 0 || left == 0)
            close_fd(&output->fd);
        else
            (void)read_some(run, output);
    }
    return flush(run, output);
}

bool streams_drain(struct hutch_run *run)
{
    bool out = drain_one(run, &run->outputs[0]), err = drain_one(run, &run->outputs[1]);

    streams_read_result(run);
    return out && err;
}

void streams_read_result(struct hutch_run *run)
{
    while (run->result_fd >= 0) {
        char *room = buf_reserve(&run->document, READ_BYTES);
        ssize_t n = room != NULL ? read(run->result_fd, room, READ_BYTES) : 0;
        if (n > 0) {
            run->document.len += (size_t)n;
            if (document_complete(run->document.data, run->document.len))
                run->answered = true;
            continue;
        }
        if (room != NULL && n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        close_fd(&run->result_fd);
    }
}

/* ---- standard input -------------------------------------------------------------------------- */

/* The caller's fd may be a terminal or a pipe that has nothing yet. Then the loop waits for it in
 * place of the program's pipe; a regular file can't be waited for and always has something. */
static bool source_has_data(struct hutch_run *run)
{
    struct pollfd fd = {.fd = run->request->stdin_fd, .events = POLLIN};

    if (poll(&fd, 1, 0) != 0)
        return true;
    (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->stdin_fd, NULL);
    (void)run_poll(run, run->request->stdin_fd, SOURCE_STDIN_SOURCE, EPOLLIN, NULL);
    return false;
}

void streams_source_ready(struct hutch_run *run)
{
    (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->request->stdin_fd, NULL);
    (void)run_poll(run, run->stdin_fd, SOURCE_STDIN, EPOLLOUT, NULL);
}

static void refill_stdin(struct hutch_run *run)
{
    ssize_t n = read(run->request->stdin_fd, run->stdin_chunk, sizeof(run->stdin_chunk));

    run->stdin_chunk_sent = 0;
    run->stdin_chunk_len = n > 0 ? (size_t)n : 0;
}

static void next_input(struct hutch_run *run, const char **ret_data, size_t *ret_len)
{
    if (run->request->stdin_fd < 0) {
        *ret_data = (const char *)run->request->stdin_data + run->stdin_sent;
        *ret_len = run->request->stdin_len - run->stdin_sent;
        return;
    }
    if (run->stdin_chunk_sent == run->stdin_chunk_len)
        refill_stdin(run);
    *ret_data = run->stdin_chunk + run->stdin_chunk_sent;
    *ret_len = run->stdin_chunk_len - run->stdin_chunk_sent;
}

void streams_feed(struct hutch_run *run)
{
    const char *data = NULL;
    size_t len = 0;
    ssize_t n;

    if (run->request->stdin_fd >= 0 && run->stdin_chunk_sent == run->stdin_chunk_len &&
        !source_has_data(run))
        return;
    next_input(run, &data, &len);
    if (len == 0) {
        close_fd(&run->stdin_fd);
        return;
    }
    n = write_quietly(run->stdin_fd, data, len);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            close_fd(&run->stdin_fd);
        return;
    }
    run->stdin_sent += (size_t)n;
    run->stdin_chunk_sent += (size_t)n;
}
