/*
 * spawn.h - start a command with everything about it under control, and catch all it answers.
 *
 * For the test processes only: criterion's own threads make fork dangerous for anything but a
 * quick exec, so that is all that happens between the two.
 */
#ifndef HUTCH_TESTS_SPAWN_H
#define HUTCH_TESTS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A NULL-terminated list of strings, as argv and option lists are given. */
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What to start. Everything but argv may stay zero. */
struct spawn {
    const char *const *argv;
    const char *const *env; /* NULL: the test's own */
    const void *input;      /* standard input; NULL: /dev/null */
    size_t input_len;
    const char *cwd;
    unsigned deadline_ms;     /* then SIGKILL; 0: 60 s (times slow()) */
    size_t keep_bytes;        /* most bytes kept of each stream; 0: 64 MiB */
    bool keep_fds;            /* fds from 3 up are inherited where they aren't CLOEXEC */
    bool open_stdin;          /* standard input is a pipe that stays open and empty */
    void (*child)(void *arg); /* runs before the exec; async-signal-safe calls only */
    void *arg;
};

/* What came of it. out and err are NUL-terminated; *_len count what was kept, *_total all. */
struct output {
    char *out, *err;
    size_t out_len, err_len;
    size_t out_total, err_total;
    int exit_code;    /* -1: a signal ended it */
    int signal;       /* 0: none */
    bool late;        /* the deadline passed */
    bool pipe_held;   /* something still held the output open after the command had ended */
    double ms;        /* from the start to the end */
    long max_rss_kib; /* of the command and what it has waited for */
};

/* A command under way. */
struct child {
    pid_t pid;
    int pidfd;
    int in, out, err;
    double started_ms;
    struct spawn spec;
};

/* A broken test environment (no fork, no pipe) fails the test. */
void spawn_start(const struct spawn *spec, struct child *ret_child);
/* Feeds, drains and waits. */
void spawn_finish(struct child *child, struct output *ret_output);
struct output spawn_run(const struct spawn *spec);
/* Reads output until `text` was seen on stdout (what was read is lost) or the time is over. */
bool spawn_await(struct child *child, const char *text, unsigned within_ms);
void spawn_kill(struct child *child, int sig);

void output_free(struct output *output);
#define _cleanup_output_ __attribute__((cleanup(output_free)))

/* Monotonic milliseconds. */
double now_ms(void);
/* How much slower than a plain machine this one is (env HUTCH_TEST_SLOW, at least 1): upper
 * bounds on time are multiplied with it. */
double slow(void);
/* A bound on resident memory in KiB, wider where the sanitizers' shadow counts too. */
long rss_bound(long kib);
void sleep_ms(unsigned ms);

#endif
