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
/* What init gets to end the box and to say what it used, when it is asked to. */
#define ASKED_NS (250 * NS_PER_MS)
/* Read at a time, and at most this often in a row before other fds have their turn. */
#define READ_BYTES 65536
#define READS_IN_A_ROW 16
/* Looks at what is ready in one step: a box that floods its output mustn't keep a host's loop
 * from its other boxes. */
#define ROUNDS_IN_A_STEP 8

int64_t run_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int run_poll(struct hutch_run *run, int fd, enum run_source source, uint32_t events,
             struct hutch_error *err)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    if (fd >= 0 && epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "watch a file descriptor");
    return 0;
}

void run_set_timer(struct hutch_run *run, int64_t at_ns)
{
    struct itimerspec timer = {.it_value = {at_ns / NS_PER_S, at_ns % NS_PER_S}};

    (void)timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

int run_watch(struct hutch_run *run, struct hutch_error *err)
{
    const struct {
        int fd;
        enum run_source source;
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
    run_set_timer(run, run->deadline_ns);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        int fd = fds[i].source == SOURCE_STDIN ? run->stdin_fd : fds[i].fd;
        int r = run_poll(run, fd, fds[i].source, fds[i].events, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static bool is_over(const struct hutch_run *run)
{
    /* Init's report comes when it has killed and reaped every process of the box: what is left
     * is init itself, which can't fork any more. */
    return run->is_dead || run->init_ended;
}

/* The first reason counts, and none when the program has ended already: a host that looks late,
 * or whose reader is slow, has ended nothing. Only a flood may be seen after the end. */
static void blame(struct hutch_run *run, enum run_ended_by by)
{
    if (run->ended_by == RUN_BY_PROGRAM && (!is_over(run) || by == RUN_BY_OUTPUT))
        run->ended_by = by;
}

/* PID 1's death takes everything in its namespace along; the cgroup's kill is a second way to the
 * same end. */
void run_kill(struct hutch_run *run, enum run_ended_by by)
{
    blame(run, by);
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

/* ---- init's packets -------------------------------------------------------------------------- */

static void started(struct hutch_run *run)
{
    run->state = RUN_RUNNING;
    run->running_ns = run_now_ns();
    run->deadline_ns =
        run->running_ns + INIT_FIRST_NS + (int64_t)run->request->limits.timeout_ms * NS_PER_MS;
    run_set_timer(run, run->deadline_ns);
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

/* A host that was held up finds several things at once: what init has said comes first, whether
 * that the program has started or that it has ended. */
static void hear_init(struct hutch_run *run)
{
    struct pollfd init = {.fd = run->pidfd, .events = POLLIN};
    const bool ended = poll(&init, 1, 0) > 0;

    read_control(run);
    if (ended)
        reap(run);
}

/* Init is asked to end the box and to say what it used. */
static void ask_init(struct hutch_run *run)
{
    if (run->state != RUN_RUNNING)
        return;
    run->state = RUN_ENDING;
    (void)!send(run->control_fd, "", 1, MSG_NOSIGNAL);
}

void run_end(struct hutch_run *run, enum run_ended_by by)
{
    const int64_t asked_until = run_now_ns() + ASKED_NS;

    hear_init(run);
    blame(run, by);
    if (run->state == RUN_STARTING) { /* nothing was used yet */
        run_kill(run, by);
        return;
    }
    ask_init(run);
    if (asked_until < run->deadline_ns) {
        run->deadline_ns = asked_until;
        run_set_timer(run, asked_until);
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
    hear_init(run);
    if (is_over(run))
        return;
    if (now >= run->deadline_ns) {
        if (run->state == RUN_STARTING)
            result_fail(run->result, REASON_SETUP, "init did not build the box within 30 seconds");
        run_kill(run, RUN_BY_WALL);
        return;
    }
    run_set_timer(run, check_cpu_time(run, now));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void handle_event(struct hutch_run *run, enum run_source source)
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
        streams_read(run, &run->outputs[source - SOURCE_OUT]);
        return;
    case SOURCE_READER:
        streams_reader_ready(run);
        return;
    case SOURCE_RESULT:
        streams_read_result(run);
        return;
    case SOURCE_STDIN:
        streams_feed(run);
        return;
    case SOURCE_STDIN_SOURCE:
        streams_source_ready(run);
        return;
    }
}

int run_step(struct hutch_run *run, struct hutch_error *err)
{
    struct epoll_event events[8];
    int n = 1;

    if (run->state == RUN_DONE)
        return 1;
    for (int round = 0; round < ROUNDS_IN_A_STEP && n > 0; round++) {
        n = epoll_wait(run->epoll_fd, events, ARRAY_LEN(events), 0);
        for (int i = 0; i < n; i++)
            handle_event(run, (enum run_source)events[i].data.u32);
        if (run->answered) /* exec: the value is whole */
            ask_init(run);
        if (is_over(run))
            break;
    }
    if (n < 0 && errno != EINTR)
        return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "wait for the box");
    if (!is_over(run) || !streams_drain(run))
        return 0;
    run->state = RUN_DONE;
    if (run->pass_on_error != 0)
        n = error_errno(err, HUTCH_STAGE_SUPERVISE, run->pass_on_error,
                        "pass the program's output on");
    else
        n = run_conclude(run, err);
    if (n < 0) { /* half a result must never be handed out */
        hutch_result_free(take_ptr(run->result));
        return n;
    }
    return 1;
}
