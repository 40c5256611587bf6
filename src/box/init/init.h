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

/* What init's two threads share where memory is watched (watch_exact.c). */
struct watch_exact {
    int proc_fd;           /* the second thread's own */
    int ask_fd, answer_fd; /* eventfds */
    int asked;
    uint64_t maps_max;               /* that a process may have */
    uint64_t maps_bytes;             /* what the kernel needs for those there are */
    int64_t looked_ns, look_took_ns; /* at the maps */
    long stack;
};

/* What a box has done: sums over its processes. */
struct box_effort {
    uint64_t rough_bytes, fault_bytes, run_ns;
};

/* Whether it is above its limit (watch_doubt.c). */
struct doubt {
    int asked;                     /* and there is no answer yet */
    int outdated;                  /* the answer to come: it was asked for in an earlier doubt */
    int over;                      /* the box was below its limit meanwhile */
    int fresh;                     /* known_bytes came just now */
    uint64_t known_bytes;          /* the last answer; 0: none */
    uint64_t highest_pid;          /* when it was asked for */
    struct box_effort last, since; /* as last seen; what was added since the question */
};

struct init {
    struct step_state steps;
    int program_pid;
    int told_pipe; /* what failed in the program's process; ends without a byte at its exec */
    int signal_fd;
    int proc_fd; /* the box's /proc, opened before the filter */
    int64_t deadline_ns;
    struct watch_exact exact;
    struct doubt doubt;
    uint64_t socket_bytes; /* what one socket can hold */
    unsigned hurried;      /* rounds since the box is reniced, so that the sampler gets its turn */
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
    uint64_t largest_bytes; /* the largest process */
    uint64_t older_bytes;   /* processes up to doubt.highest_pid */
    uint64_t highest_pid;
    int undecided; /* what the memory is at most will be known soon */
};
int watch_open(struct init *init);
/* True if the plan asks for the sampler. */
int watch_wanted(const struct init *init);
void watch_sample(struct init *init, struct watch_sample *ret_sample);
/* How long the next sample can wait. */
int64_t watch_interval_ns(const struct init *init, const struct watch_sample *sample);

/* watch_exact.c: its second thread. exact_open() comes before init's filter, exact_start() after.
 */
int exact_open(struct init *init);
int exact_start(struct init *init);
/* The answer is what the processes hold, what they share counted once; it must have come before the
 * next question. False if it isn't there in time. */
void exact_ask(struct init *init);
int exact_answer(struct init *init, unsigned within_ms, uint64_t *ret_bytes);
/* What the kernel holds for the maps, by the last look. */
uint64_t exact_maps_bytes(const struct init *init);

/* watch_doubt.c: sets what the sample holds, where its rough sum is above the limit; `rest` is what
 * is no process's. It stays as it is if the box could get too far before that is known. */
void doubt_before_round(struct init *init);
void doubt_settle(struct init *init, uint64_t rest, struct watch_sample *sample);
void doubt_is_over(struct init *init);

/* report.c: packets to the host. */
void report_failed(const struct step_state *s, unsigned step, int error);
void report_missing(struct step_state *s, enum layer layer, int error);
/* Negative errno if it couldn't be sent (an fd can be one too many in flight: unix(7)). */
int report_message(const struct init_message *message, int fd);
void init_exit(int status) __attribute__((noreturn));

#endif
