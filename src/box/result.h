/*
 * result.h - what came back from one run, as the supervisor fills it and as JSON shows it.
 *
 * Filled only from what the kernel says (wait status, cgroup counters, our own kills) and from
 * bounded data of the box (output, files, the value); no verdict is taken from the box.
 */
#ifndef HUTCH_BOX_RESULT_H
#define HUTCH_BOX_RESULT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/layer.h"
#include "box/collect.h"
#include "request/request.h"

enum reason {
    REASON_EXIT,
    REASON_SIGNAL,
    REASON_TIMEOUT,
    REASON_CPU_TIME,
    REASON_MEMORY,
    REASON_OUTPUT,
    REASON_SYSCALL,
    REASON_NO_RESULT,
    REASON_PROTOCOL,
    REASON_INVALID,
    REASON_REQUEST,
    REASON_SETUP,
    REASON_COUNT,
};
const char *reason_name(enum reason reason);

#define RECEIPT_CAUSE_TEXT 320

/* One layer as it really was. `how` is "on", "cgroup", "watchdog", "rlimit", "affinity" or "off";
 * static storage. `cause` is why it isn't there, or not in the kernel's hands. */
struct receipt_layer {
    const char *how;
    char cause[RECEIPT_CAUSE_TEXT];
};

struct receipt {
    struct receipt_layer layers[LAYER_COUNT];
    char notes[8][160]; /* things a reader should know ("the caller's supplementary groups ...") */
    size_t notes_len;
};

/* Puts a layer on record; formats the cause. */
void receipt_on(struct receipt *receipt, enum layer layer, const char *how);
void receipt_missing(struct receipt *receipt, enum layer layer, const char *how, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
void receipt_note(struct receipt *receipt, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void receipt_put_json(struct buf *buf, const struct receipt *receipt);

struct usage {
    uint64_t wall_us; /* from the program's start to its end */
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t memory_limit_bytes;
    uint64_t pids_peak;
    uint64_t pids_denied;
    bool sampled; /* source: "sampled", else "cgroup" */
};

struct stream {
    struct buf kept; /* at most max_output_bytes */
    uint64_t total;  /* what was written */
    bool passed_on;  /* went to the caller's fd: not in the JSON's text */
};

struct hutch_result {
    enum hutch_verb verb;
    enum reason reason;
    int exit_code;   /* when reason is exit */
    int signal;      /* when reason is signal (or syscall: SIGSYS) */
    int exit_status; /* what the command exits with; set by result_finish() */
    struct stream out, err;
    struct collected files;
    struct usage usage;
    struct receipt receipt;
    bool has_receipt;     /* false: nothing was built (request, setup before the box) */
    uint64_t duration_us; /* of the whole call; 0: usage.wall_us */
    struct limits limits; /* the request's: for the words of an error */
    char *error;          /* what failed, in words, or NULL */
    char *value;          /* exec: the value's JSON text, or NULL */
    size_t value_len;
    bool omit_file_data; /* JSON without the files' data */
    int exec_error;      /* errno of a program that couldn't be executed: 126 or 127 */
    char *json;
    size_t json_len;
};

/* An empty result for a request; the limits are copied from it. NULL (a request that could not
 * even be read): a result of verb run; the caller sets another. NULL if there is no memory. */
struct hutch_result *result_new(const struct hutch_request *request);
/* Sets reason and error text; formats. Replaces an earlier text. */
void result_fail(struct hutch_result *result, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills `error` from the reason where nothing has set it: for every reason but an exit. */
void result_describe(struct hutch_result *result);
/* Drops a character that a stream's cut split, fills error and exit_status, writes the JSON;
 * call once, last. */
int result_finish(struct hutch_result *result, struct hutch_error *err);

/* result_json.c: the one line of JSON, shaped by the verb. */
void result_put_json(struct buf *buf, const struct hutch_result *result);

#endif
