/*
 * run.h - a run under way: what launch makes, supervise drives and finish turns into a result.
 *
 * Order of events (launch.c, supervise.c, verdict.c):
 *   facts, cgroup, profile, plan -> sealed memfd; pipes; clone; id maps; go-ahead
 *   STARTING  init builds the box; a failure it reports ends the run with reason setup
 *   RUNNING   streams, stdin, result document, limits that the host keeps
 *   ENDING    the program has ended or was ended: everything in the box dies
 *   DONE      the result is there; of the box only init may still be exiting
 */
#ifndef HUTCH_BOX_RUN_H
#define HUTCH_BOX_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "box/result.h"
#include "kernel/cgroup.h"
#include "kernel/facts.h"
#include "plan/plan.h"

enum run_state { RUN_STARTING, RUN_RUNNING, RUN_ENDING, RUN_DONE };

/* What ended the program, where it wasn't the program itself. */
enum run_ended_by { RUN_BY_PROGRAM, RUN_BY_WALL, RUN_BY_CPU, RUN_BY_OUTPUT, RUN_BY_CANCEL };

/* Bytes that a pipe with any room takes without blocking (PIPE_BUF). */
#define PASS_ON_BYTES 4096

struct output {
    int fd;                    /* our end of the pipe, -1 at its end */
    int pass_on_fd;            /* the caller's fd, or -1 */
    bool waits;                /* for the caller's fd: the pipe is left alone meanwhile */
    char chunk[PASS_ON_BYTES]; /* read from the pipe, not yet passed on */
    size_t chunk_len, chunk_sent;
    struct stream *stream;
};

/* What woke the loop. */
enum run_source {
    SOURCE_CONTROL,
    SOURCE_PIDFD,
    SOURCE_TIMER,
    SOURCE_OUT,
    SOURCE_ERR,
    SOURCE_READER, /* a caller's fd that output is passed on to can be written again */
    SOURCE_RESULT,
    SOURCE_STDIN,
    SOURCE_STDIN_SOURCE, /* the caller's fd that standard input comes from has something */
};

struct hutch_run {
    const struct hutch_request *request;
    enum plan_purpose purpose;
    enum run_state state;
    struct hutch_result *result;

    struct host_facts host;
    struct cgroup cgroup;
    char cgroup_cause[CGROUP_CAUSE_TEXT];
    char namespace_cause[HUTCH_ERROR_TEXT]; /* why --allow-missing let namespaces go */

    pid_t pid;
    int pidfd;      /* init */
    int control_fd; /* packets from init */
    int epoll_fd;
    int timer_fd;
    int work_fd;  /* the box's /work, from init */
    int stdin_fd; /* our end of the program's standard input, -1 when closed */
    size_t stdin_sent;
    char stdin_chunk[4096]; /* from request->stdin_fd, not yet written */
    size_t stdin_chunk_len, stdin_chunk_sent;
    struct output outputs[2];
    int pass_on_error; /* why output could not be passed on, when its reader is still there */
    int result_fd;
    struct buf document;

    int64_t started_ns; /* the call */
    int64_t running_ns; /* the program's exec */
    int64_t deadline_ns;
    enum run_ended_by ended_by;
    bool is_dead;    /* init is reaped: nothing of the box is alive */
    bool init_ended; /* init's report about the program is in `end` */
    bool answered;   /* exec: the document is whole */
    struct init_message end;
};

/* launch.c: everything up to the go-ahead. Negative: nothing is left behind but the run itself,
 * whose result then says why (reason request or setup). */
int run_launch(struct hutch_run *run, struct hutch_error *err);
/* Facts, cgroup place and profile without a box: what a plan needs. */
int run_prepare_plan(const struct hutch_request *request, enum plan_purpose purpose,
                     struct host_facts *facts, struct buf *ret_block, struct hutch_error *err);

/* supervise.c */
int run_watch(struct hutch_run *run, struct hutch_error *err); /* puts the fds into the epoll set */
int run_step(struct hutch_run *run, struct hutch_error *err);
void run_kill(struct hutch_run *run, enum run_ended_by by);
/* The same, but init is asked first and says what the box used; it is killed if it doesn't end. */
void run_end(struct hutch_run *run, enum run_ended_by by);
/* Waits until nothing is left of the box, removes its cgroup. */
void run_teardown(struct hutch_run *run);
int64_t run_now_ns(void);
int run_poll(struct hutch_run *run, int fd, enum run_source source, uint32_t events,
             struct hutch_error *err);
void run_set_timer(struct hutch_run *run, int64_t at_ns); /* CLOCK_MONOTONIC */

/* streams.c: the program's streams; none of these blocks. */
void streams_read(struct hutch_run *run, struct output *output);
void streams_reader_ready(struct hutch_run *run);
void streams_read_result(struct hutch_run *run);
void streams_feed(struct hutch_run *run);
void streams_source_ready(struct hutch_run *run);
/* Once nothing in the box is alive: takes what is left in the pipes. False while a caller's fd
 * can't be written. */
bool streams_drain(struct hutch_run *run);
/* Gives up what is not passed on yet. */
void streams_drop(struct hutch_run *run);

/* verdict.c: reason, usage, files and receipt from what the kernel said. */
int run_conclude(struct hutch_run *run, struct hutch_error *err);
void run_receipt(struct hutch_run *run);
/* A result for a run that never became a box. */
void run_fail(struct hutch_run *run, const struct hutch_error *why);

#endif
