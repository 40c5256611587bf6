/*
 * drive.c - the loop around a run: its own fd, and the signals that end it. A reader of our
 * output that went away ends it only when something is written to it, as with any program.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/error.h"
#include "cli/cli.h"

int drive_signals(void)
{
    /* SIGPIPE too: its default would end us before the box. */
    static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ENDING); i++)
        sigaddset(&set, ENDING[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* SIGPIPE also comes from a program in the box that doesn't read its input. */
static bool reader_is_gone(void)
{
    struct pollfd fds[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
    return poll(fds, ARRAY_LEN(fds), 0) > 0 &&
           ((fds[0].revents | fds[1].revents) & (POLLERR | POLLHUP));
}

static int ending_signal(int signals, bool watch)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    if (info.ssi_signo == SIGPIPE && !(watch && reader_is_gone()))
        return 0;
    return (int)info.ssi_signo;
}

/* The end of the box follows through the run's fd like any other. */
static int end_box(struct hutch_run *run, int signal, int *ret_signal, struct hutch_error *err)
{
    if (*ret_signal || !signal)
        return 0;
    *ret_signal = signal;
    return hutch_run_cancel(run, err);
}

int drive_run(struct hutch_run *run, int signals, bool watch, int *ret_signal,
              struct hutch_error *err)
{
    struct pollfd fds[] = {
        {.fd = hutch_run_fd(run), .events = POLLIN},
        {.fd = signals, .events = POLLIN},
    };
    *ret_signal = 0;
    for (;;) {
        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "poll");
        int r = 0;
        if (fds[1].revents)
            r = end_box(run, ending_signal(signals, watch), ret_signal, err);
        if (r == 0 && fds[0].revents)
            r = hutch_run_step(run, err);
        if (r > 0 && !*ret_signal) /* SIGPIPE may come with the very last output */
            *ret_signal = ending_signal(signals, watch);
        if (r != 0)
            return r < 0 ? r : 0;
    }
}
