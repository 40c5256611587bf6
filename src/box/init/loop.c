/*
 * loop.c - PID 1 while the program runs.
 *
 * Wakes for: a child that ended (every orphan is reaped), the control socket or the host's pidfd
 * (the host is gone: so is the box), the wall limit, and the sampler's next look. Ends when the
 * program has ended or a limit was reached; the kernel then kills what is left in the box.
 */
#include "box/init/init.h"
#include "kernel/step/sys.h"

#include <linux/poll.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/time.h>

#define SIGKILL_NUMBER 9
#define SIGCHLD_BIT (1ULL << 16)
#define WAIT_NO_HANG 1
#define WAIT_ALL 0x40000000 /* __WALL */
#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define SFD_CLOSE_ON_EXEC 02000000
#define RUSAGE_OF_CHILDREN (-1)

struct resource_usage {
    int64_t user_s, user_us, system_s, system_us, max_rss_kib;
    int64_t rest[13];
};

int64_t init_now_ns(void)
{
    struct __kernel_timespec now = {0};

    (void)sys_call(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Ends every process of the box and reaps it, so that its usage is counted, then says how the
 * program ended and goes. */
static void end(struct init *init, int status, enum init_ended_by by)
{
    struct init_message message = {.kind = INIT_MESSAGE_ENDED, .status = status, .ended_by = by};
    struct resource_usage usage = {0};

    (void)sys_call(__NR_kill, -1, SIGKILL_NUMBER);
    while (sys_call(__NR_wait4, -1, 0, WAIT_ALL, 0) > 0)
        ;
    (void)sys_call(__NR_getrusage, RUSAGE_OF_CHILDREN, &usage);
    message.cpu_us =
        (uint64_t)((usage.user_s + usage.system_s) * 1000000 + usage.user_us + usage.system_us);
    message.cpu_us = at_least(message.cpu_us, init->cpu_raw_us + init->cpu_gone_us);
    message.memory_peak_bytes = at_least(init->memory_peak, (uint64_t)usage.max_rss_kib << 10);
    message.pids_peak = at_least(init->pids_peak, 1);
    (void)report_message(&message, -1);
    init_exit(0);
}

static void reap(struct init *init)
{
    char info[128]; /* struct signalfd_siginfo */
    int status = 0;
    long pid;

    (void)sys_call(__NR_read, init->signal_fd, info, sizeof(info));
    while ((pid = sys_call(__NR_wait4, -1, &status, WAIT_NO_HANG | WAIT_ALL, 0)) > 0)
        if (pid == init->program_pid)
            end(init, status, INIT_ENDED_ITSELF);
}

/* One byte: the host has what it wants (exec: the value); no byte: the host is gone. */
static void hear_host(struct init *init)
{
    char byte;

    if (sys_call(__NR_read, PLAN_FD_CONTROL, &byte, 1) == 1)
        end(init, SIGKILL_NUMBER, INIT_ENDED_ITSELF);
    init_exit(0);
}

/* 0 or the time until the next look is needed. */
static int64_t check_limits(struct init *init)
{
    const struct plan_header *p = init->steps.plan;
    int64_t left = init->deadline_ns - init_now_ns();
    struct watch_sample sample;
    int64_t next;

    if (left <= 0)
        end(init, SIGKILL_NUMBER, INIT_ENDED_WALL);
    if (!watch_wanted(init))
        return left;
    watch_sample(init, &sample);
    init->memory_peak = at_least(init->memory_peak, sample.memory_bytes);
    init->pids_peak = at_least(init->pids_peak, sample.pids);
    if (p->memory_bytes != 0 && sample.memory_bytes > p->memory_bytes)
        end(init, SIGKILL_NUMBER, INIT_ENDED_MEMORY);
    if (p->cpu_time_ms != 0 && sample.cpu_us > p->cpu_time_ms * 1000)
        end(init, SIGKILL_NUMBER, INIT_ENDED_CPU);
    next = watch_interval_ns(init, &sample);
    return next < left ? next : left;
}

/* Wakes for SIGCHLD only; every other signal stays blocked, as it came from the host. */
static int open_signals(struct init *init)
{
    const uint64_t mask = SIGCHLD_BIT;

    init->signal_fd =
        (int)sys_call(__NR_signalfd4, -1, &mask, sizeof(mask), SFD_CLOSE_ON_EXEC | 04000);
    return init->signal_fd;
}

void init_loop(struct init *init)
{
    enum { CONTROL, HOST, CHILD, FDS };

    if (open_signals(init) < 0)
        init_exit(1);
    init->deadline_ns = init_now_ns() + (int64_t)init->steps.plan->wall_ms * NS_PER_MS;
    for (;;) {
        struct poll_fd fds[FDS] = {[CONTROL] = {PLAN_FD_CONTROL, POLLIN, 0},
                                   [HOST] = {PLAN_FD_HOST, POLLIN, 0},
                                   [CHILD] = {init->signal_fd, POLLIN, 0}};
        int64_t wait = check_limits(init);
        struct __kernel_timespec time = {wait / NS_PER_S, wait % NS_PER_S};

        if (sys_call(__NR_ppoll, fds, FDS, &time, 0, 0) < 0)
            continue;
        if (fds[HOST].revents != 0)
            init_exit(0);
        if (fds[CONTROL].revents != 0)
            hear_host(init);
        if (fds[CHILD].revents != 0)
            reap(init);
    }
}
