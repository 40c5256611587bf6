/*
 * init.h - PID 1 of a box: one freestanding program, run from a sealed memfd.
 *
 * Order of events: main.c maps and checks the plan and waits for the go-ahead; steps.c builds
 * the box and starts the program; loop.c then reaps, keeps the wall limit (and, where there is
 * no cgroup, the memory limit: watch.c), and ends the box. Nothing here allocates.
 */
#ifndef HUTCH_BOX_INIT_INIT_H
#define HUTCH_BOX_INIT_INIT_H

#include "kernel/step/step.h"
#include "plan/steps.h"

struct init {
    struct step_state steps;
    int program_pid;
    int told_pipe; /* what failed in the program's process; ends without a byte at its exec */
    int signal_fd;
    int proc_fd; /* the box's /proc, opened before the filter */
    int64_t deadline_ns;
    uint64_t socket_bytes; /* what one socket can hold */
    int hurried; /* the box has been reniced, so that the sampler gets its turn */
    uint64_t cpu_raw_us, cpu_gone_us; /* the last sum, and what vanished from it meanwhile */
    uint64_t memory_peak;
    uint64_t pids_peak;
};

/* steps.c: 0, or the host has been told what failed. */
int init_build(struct init *init);
int init_guard(struct init *init);
int init_hear_program(struct init *init);

struct poll_fd {
    int fd;
    short events, revents;
};

/* loop.c: ends with the box. */
void init_loop(struct init *init) __attribute__((noreturn));
int64_t init_now_ns(void);

/* watch.c: how the box stands. */
struct watch_sample {
    uint64_t memory_bytes;
    uint64_t cpu_us;
    uint64_t pids; /* threads included */
    uint64_t processes;
};
int watch_open(struct init *init);
/* True if the plan asks for the sampler. */
int watch_wanted(const struct init *init);
void watch_sample(struct init *init, struct watch_sample *ret_sample);
/* How long the next sample can wait. */
int64_t watch_interval_ns(const struct init *init, const struct watch_sample *sample);

/* report.c: packets to the host. */
void report_failed(const struct step_state *s, unsigned step, int error);
void report_missing(struct step_state *s, enum layer layer, int error);
/* Negative errno if it couldn't be sent (an fd can be one too many in flight: unix(7)). */
int report_message(const struct init_message *message, int fd);
void init_exit(int status) __attribute__((noreturn));

#endif
