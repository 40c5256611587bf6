/*
 * supervise.c - the host's loop around a box: one epoll set, never blocking.
 *
 * Everything the box can do to this loop is bounded: packets from init have a fixed size, streams
 * are kept to their cap and counted beyond it, the result document is bounded, and there is
 * always a wall limit, kept here and by init both.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "box/document.h"
#include "box/run.h"
#include "plan/steps.h"

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
/* Building a box takes a millisecond; a machine in trouble gets this long. */
#define SETUP_LIMIT_NS (30 * NS_PER_S)
/* Init keeps the wall limit too, and can say what was used until then; the host waits this much
 * longer for it. */
#define INIT_FIRST_NS (40 * NS_PER_MS)
/* Read at a time, and at most this often in a row before other fds have their turn. */
#define READ_BYTES 65536
#define READS_IN_A_ROW 16
/* Looks at what is ready in one step: a box that floods its output mustn't keep a host's loop
 * from its other boxes. */
#define ROUNDS_IN_A_STEP 8

enum source {
    SOURCE_CONTROL,
    SOURCE_PIDFD,
    SOURCE_TIMER,
    SOURCE_OUT,
    SOURCE_ERR,
    SOURCE_RESULT,
    SOURCE_STDIN,
    SOURCE_STDIN_SOURCE
};

int64_t run_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int add_fd(struct hutch_run *run, int fd, enum source source, uint32_t events,
                  struct hutch_error *err)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    if (fd >= 0 && epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "watch a file descriptor");
    return 0;
}

static void set_timer(struct hutch_run *run, int64_t at_ns)
{
    struct itimerspec timer = {.it_value = {at_ns / NS_PER_S, at_ns % NS_PER_S}};

    (void)timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

int run_watch(struct hutch_run *run, struct hutch_error *err)
{
    const struct {
        int fd;
        enum source source;
        uint32_t events;
    } fds[] = {
        {run->control_fd, SOURCE_CONTROL, EPOLLIN}, {run->pidfd, SOURCE_PIDFD, EPOLLIN},
        {run->timer_fd, SOURCE_TIMER, EPOLLIN},     {run->outputs[0].fd, SOURCE_OUT, EPOLLIN},
        {run->outputs[1].fd, SOURCE_ERR, EPOLLIN},  {run->result_fd, SOURCE_RESULT, EPOLLIN},
        {run->stdin_fd, SOURCE_STDIN, EPOLLOUT},
    };

    if (run->request->stdin_fd < 0 && run->request->stdin_len == 0)
        close_fd(&run->stdin_fd); /* nothing to read: end of file at once */
    run->deadline_ns = run->started_ns + SETUP_LIMIT_NS;
    set_timer(run, run->deadline_ns);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        int fd = fds[i].source == SOURCE_STDIN ? run->stdin_fd : fds[i].fd;
        int r = add_fd(run, fd, fds[i].source, fds[i].events, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* The first reason counts. PID 1's death takes everything in its namespace along; the cgroup's
 * kill is a second way to the same end. */
void run_kill(struct hutch_run *run, enum run_ended_by by)
{
    if (run->ended_by == RUN_BY_PROGRAM)
        run->ended_by = by;
    if (run->is_dead || run->pidfd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, run->pidfd, SIGKILL, NULL, 0);
    if (run->cgroup.dir_fd >= 0)
        (void)cgroup_kill(&run->cgroup, NULL);
}

static void reap(struct hutch_run *run)
{
    siginfo_t info;

    if (run->is_dead || run->pidfd < 0)
        return;
    while (waitid((idtype_t)P_PIDFD, (id_t)run->pidfd, &info, WEXITED | __WALL) < 0 &&
           errno == EINTR)
        ;
    run->is_dead = true;
}

void run_teardown(struct hutch_run *run)
{
    if (run->pidfd >= 0 && !run->is_dead) {
        (void)syscall(SYS_pidfd_send_signal, run->pidfd, SIGKILL, NULL, 0);
        reap(run);
    }
    (void)cgroup_destroy(&run->cgroup, 5000, NULL);
    cgroup_close(&run->cgroup);
}

/* ---- streams --------------------------------------------------------------------------------- */

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

/* The reader is gone (`hutch run ... | head`): nobody wants the rest, as SIGPIPE would say. */
static void reader_is_gone(struct hutch_run *run, struct output *output)
{
    output->pass_on_fd = -1;
    run_kill(run, RUN_BY_CANCEL);
}

static void pass_on(struct hutch_run *run, struct output *output, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write_quietly(output->pass_on_fd, data, len);
        if (n < 0 &&
            errno == EAGAIN) { /* the caller's fd is non-blocking: it may block all the same */
            struct pollfd fd = {.fd = output->pass_on_fd, .events = POLLOUT};
            (void)poll(&fd, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            reader_is_gone(run, output);
            return;
        } else if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
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
    if (!output->stream->passed_on)
        buf_put(&output->stream->kept, data, keep);
    else if (output->pass_on_fd >= 0)
        pass_on(run, output, data, keep);
    if (output->stream->passed_on && output->pass_on_fd >= 0 && keep < len)
        check_reader(run, output);
    if (output->stream->total > cap && run->request->flood == FLOOD_KILL)
        run_kill(run, RUN_BY_OUTPUT);
}

static void read_output(struct hutch_run *run, struct output *output)
{
    char data[READ_BYTES];

    for (int i = 0; output->fd >= 0 && i < READS_IN_A_ROW; i++) {
        ssize_t n = read(output->fd, data, sizeof(data));
        if (n > 0)
            take_output(run, output, data, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_fd(&output->fd);
        else
            return;
    }
}

static void read_result(struct hutch_run *run)
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
    (void)add_fd(run, run->request->stdin_fd, SOURCE_STDIN_SOURCE, EPOLLIN, NULL);
    return false;
}

static void wait_for_program_again(struct hutch_run *run)
{
    (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->request->stdin_fd, NULL);
    (void)add_fd(run, run->stdin_fd, SOURCE_STDIN, EPOLLOUT, NULL);
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

static void feed_stdin(struct hutch_run *run)
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

/* ---- init's packets -------------------------------------------------------------------------- */

static void started(struct hutch_run *run)
{
    run->state = RUN_RUNNING;
    run->running_ns = run_now_ns();
    run->deadline_ns =
        run->running_ns + INIT_FIRST_NS + (int64_t)run->request->limits.timeout_ms * NS_PER_MS;
    set_timer(run, run->deadline_ns);
}

static const char *exec_failure(int error)
{
    return error == ENOENT ? "not found in the box (a command's libraries and interpreter must be "
                             "there too)"
                           : error_text(error);
}

static void setup_failed(struct hutch_run *run, const struct init_message *m)
{
    struct hutch_result *result = run->result;

    if (m->kind == INIT_MESSAGE_NO_EXEC) {
        result->exec_error = m->error;
        result_fail(result, REASON_SETUP, "%s: %s", m->text, exec_failure(m->error));
    } else {
        result_fail(result, REASON_SETUP,
                    "set up the box: step %s: %s: %s (`hutch doctor` looks for the cause)",
                    plan_step_name(m->step), m->text, error_text(m->error));
    }
    run_kill(run, RUN_BY_PROGRAM);
}

static void layer_missing(struct hutch_run *run, const struct init_message *m)
{
    if (m->layer < LAYER_COUNT)
        receipt_missing(&run->result->receipt, (enum layer)m->layer, "off", "%s: %s", m->text,
                        error_text(m->error));
}

static void handle_message(struct hutch_run *run, struct init_message *m)
{
    m->text[sizeof(m->text) - 1] = '\0';
    switch (m->kind) {
    case INIT_MESSAGE_STARTED:
        started(run);
        return;
    case INIT_MESSAGE_FAILED:
    case INIT_MESSAGE_NO_EXEC:
        setup_failed(run, m);
        return;
    case INIT_MESSAGE_MISSING:
        layer_missing(run, m);
        return;
    case INIT_MESSAGE_ENDED:
        run->end = *m;
        run->init_ended = true;
        return;
    case INIT_MESSAGE_NO_FAULT:
        receipt_note(&run->result->receipt, "fault injection: the call was not reached");
        return;
    default:
        return;
    }
}

static void take_fd_from(struct hutch_run *run, struct msghdr *header)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    int fd = -1;

    if (control == NULL || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
        control->cmsg_len < CMSG_LEN(sizeof(fd)))
        return;
    memcpy(&fd, CMSG_DATA(control), sizeof(fd));
    close_fd(&run->work_fd);
    run->work_fd = fd;
}

static void read_control(struct hutch_run *run)
{
    while (run->control_fd >= 0) {
        struct init_message message;
        char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
        struct iovec vector = {&message, sizeof(message)};
        struct msghdr header = {.msg_iov = &vector,
                                .msg_iovlen = 1,
                                .msg_control = control,
                                .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(run->control_fd, &header, MSG_CMSG_CLOEXEC);
        if (n == (ssize_t)sizeof(message)) {
            take_fd_from(run, &header);
            handle_message(run, &message);
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->control_fd, NULL);
        return;
    }
}

/* ---- limits that the host keeps -------------------------------------------------------------- */

/* CPU time from the cgroup: the earliest moment at which it can be used up is the next look. */
static int64_t check_cpu_time(struct hutch_run *run, int64_t now)
{
    const uint64_t limit_us = run->request->limits.cpu_time_ms * 1000;
    const int64_t cpus = (int64_t)(run->host.facts.cpus > 0 ? run->host.facts.cpus : 1);
    uint64_t used;

    if (limit_us == 0 || run->cgroup.dir_fd < 0 || run->state != RUN_RUNNING)
        return run->deadline_ns;
    used = cgroup_cpu_usec(&run->cgroup);
    if (used == CGROUP_UNKNOWN)
        return run->deadline_ns;
    if (used >= limit_us) {
        run_kill(run, RUN_BY_CPU);
        return run->deadline_ns;
    }
    now += (int64_t)(limit_us - used) * 1000 / cpus + NS_PER_MS;
    return now < run->deadline_ns ? now : run->deadline_ns;
}

static void check_time(struct hutch_run *run)
{
    const int64_t now = run_now_ns();
    uint64_t ticks;

    (void)!read(run->timer_fd, &ticks, sizeof(ticks));
    if (now >= run->deadline_ns) {
        if (run->state == RUN_STARTING)
            result_fail(run->result, REASON_SETUP, "init did not build the box within 30 seconds");
        run_kill(run, RUN_BY_WALL);
        return;
    }
    set_timer(run, check_cpu_time(run, now));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void handle_event(struct hutch_run *run, enum source source)
{
    switch (source) {
    case SOURCE_CONTROL:
        read_control(run);
        if (run->state == RUN_RUNNING && run->request->limits.cpu_time_ms != 0)
            check_time(run);
        return;
    case SOURCE_PIDFD:
        read_control(run); /* what init said before it went */
        reap(run);
        (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->pidfd, NULL);
        return;
    case SOURCE_TIMER:
        check_time(run);
        return;
    case SOURCE_OUT:
    case SOURCE_ERR:
        read_output(run, &run->outputs[source - SOURCE_OUT]);
        return;
    case SOURCE_RESULT:
        read_result(run);
        return;
    case SOURCE_STDIN:
        feed_stdin(run);
        return;
    case SOURCE_STDIN_SOURCE:
        wait_for_program_again(run);
        return;
    }
}

/* Nothing is alive: what is in the pipes is all there will be. */
static void drain(struct hutch_run *run)
{
    for (int i = 0; i < 2; i++)
        while (run->outputs[i].fd >= 0) {
            int left = 0;
            if (ioctl(run->outputs[i].fd, FIONREAD, &left) < 0 || left == 0)
                close_fd(&run->outputs[i].fd);
            else
                read_output(run, &run->outputs[i]);
        }
    read_result(run);
}

/* exec: the value is whole. Init is asked to end the box and to say what it used. */
static void end_answered(struct hutch_run *run)
{
    if (run->state != RUN_RUNNING)
        return;
    run->state = RUN_ENDING;
    (void)!send(run->control_fd, "", 1, MSG_NOSIGNAL);
}

static bool is_over(const struct hutch_run *run)
{
    /* Init's report comes when it has killed and reaped every process of the box: what is left
     * is init itself, which can't fork any more. */
    return run->is_dead || run->init_ended;
}

int run_step(struct hutch_run *run, struct hutch_error *err)
{
    struct epoll_event events[8];
    int n = 1;

    if (run->state == RUN_DONE)
        return 1;
    for (int round = 0; round < ROUNDS_IN_A_STEP && n > 0 && !is_over(run); round++) {
        n = epoll_wait(run->epoll_fd, events, ARRAY_LEN(events), 0);
        for (int i = 0; i < n; i++)
            handle_event(run, (enum source)events[i].data.u32);
        if (run->answered)
            end_answered(run);
    }
    if (n < 0 && errno != EINTR)
        return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "wait for the box");
    if (!is_over(run))
        return 0;
    drain(run);
    run->state = RUN_DONE;
    n = run_conclude(run, err);
    if (n < 0) { /* half a result must never be handed out */
        hutch_result_free(take_ptr(run->result));
        return n;
    }
    return 1;
}
