/*
 * hutch.h - run code nobody trusts in fresh Linux namespaces, get a JSON result.
 *
 * Four steps:
 *
 *   struct hutch_error err;
 *   struct hutch_request *req = NULL;
 *   struct hutch_result *res = NULL;
 *   hutch_request_new(HUTCH_VERB_RUN, &req, &err);                    1. a request
 *   hutch_request_set_code(req, "python", code, code_len, &err);      2. what to run
 *   hutch_request_set(req, "memory", "256M", &err);                   3. limits, by option name
 *   hutch_run(req, &res, &err);                                       4. run it
 *   puts(hutch_result_json(res, NULL));
 *
 * Rules that hold for every call:
 *  - A call that can fail returns 0 or a negative errno and, when `err` is not NULL, fills it.
 *    On failure outputs (`ret_*`) are left untouched.
 *  - A failure of the code that was run is never an error here: it is a result. Errors are
 *    the caller's (HUTCH_STAGE_REQUEST: bad request) or ours (every other stage).
 *  - `_free(NULL)` is fine. Strings and buffers passed in are copied unless a call says otherwise.
 *  - The library keeps no global state, starts no thread, installs no signal handler, prints
 *    nothing and never exits. Different requests and runs may be used from different threads;
 *    one object must not be used from two threads at once.
 */
#ifndef HUTCH_H
#define HUTCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HUTCH_VERSION "0.1.0"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Where a failure happened. HUTCH_STAGE_REQUEST means that the caller asked for something
 * that can't be done as asked; every other stage is a failure of ours or of the host. */
enum hutch_stage {
    HUTCH_STAGE_NONE = 0,
    HUTCH_STAGE_REQUEST,
    HUTCH_STAGE_PLAN,
    HUTCH_STAGE_HOST,
    HUTCH_STAGE_POLICY,
    HUTCH_STAGE_CGROUP,
    HUTCH_STAGE_LAUNCH,
    HUTCH_STAGE_SETUP,
    HUTCH_STAGE_SUPERVISE,
    HUTCH_STAGE_COLLECT,
    HUTCH_STAGE_RESULT,
};

#define HUTCH_ERROR_TEXT 480

/* Fixed size, so that it needs no allocation and fits one write from init to the host. */
struct hutch_error {
    int code;                       /* negative errno */
    int stage;                      /* enum hutch_stage */
    char message[HUTCH_ERROR_TEXT]; /* what was done, to what, why it failed, the remedy */
};

enum hutch_verb {
    HUTCH_VERB_RUN = 0,  /* a script or a command: stdout, stderr and files come back */
    HUTCH_VERB_EXEC = 1, /* the body of a function: JSON args in, a JSON value out */
};

/* What the caller asks for. Filled by the calls below, checked as a whole when it is run. */
struct hutch_request;
/* What came back. */
struct hutch_result;
/* A run under way. */
struct hutch_run;

/* The library's version, as "MAJOR.MINOR.PATCH"; static storage. */
const char *hutch_version(void);

/* Makes an empty request with the defaults of its verb. The caller frees it. */
int hutch_request_new(enum hutch_verb verb, struct hutch_request **ret_request,
                      struct hutch_error *err);

/* Makes a request from one JSON request document (docs/protocol.md). Members that the verb
 * doesn't know are an error that names them. */
int hutch_request_from_json(enum hutch_verb verb, const char *json, size_t json_len,
                            struct hutch_request **ret_request, struct hutch_error *err);

void hutch_request_free(struct hutch_request *request);

/* The code to run. `language` is "python", "javascript" or "bash" (exec: python only); NULL
 * means python. Code is at most 16 MiB and must not contain NUL. */
int hutch_request_set_code(struct hutch_request *request, const char *language, const void *code,
                           size_t code_len, struct hutch_error *err);

/* run: the command to run in place of code; a NULL-terminated list. */
int hutch_request_set_command(struct hutch_request *request, const char *const *argv,
                              struct hutch_error *err);

/* run: one more argument for the script, after its name. */
int hutch_request_add_arg(struct hutch_request *request, const char *arg, struct hutch_error *err);

/* exec: the args object as JSON text; it reaches the code digit for digit. */
int hutch_request_set_args(struct hutch_request *request, const char *json, size_t json_len,
                           struct hutch_error *err);

/* exec: one more module that the code may import. */
int hutch_request_allow_import(struct hutch_request *request, const char *module,
                               struct hutch_error *err);

/* An input file below /work. `name` is relative, without `..`, and not the code file's;
 * `mode` gives the execute bit (0100), the rest of it is ignored. */
int hutch_request_add_file(struct hutch_request *request, const char *name, const void *data,
                           size_t data_len, unsigned mode, struct hutch_error *err);

/* What the program reads on its standard input (default: empty). */
int hutch_request_set_stdin(struct hutch_request *request, const void *data, size_t data_len,
                            struct hutch_error *err);

/* The same from a file descriptor, read while the program runs. The caller keeps the fd open
 * until the run is freed; it is never handed into the box. */
int hutch_request_set_stdin_fd(struct hutch_request *request, int fd, struct hutch_error *err);

/* Passes the program's output on to these fds as it comes (-1: don't); the output cap counts
 * all the same, and the result's `stdout` and `stderr` stay empty for a stream passed on. The
 * caller keeps the fds open until the run is freed. A reader that is slow holds up the program,
 * never the caller's loop; one that is gone ends the run. */
int hutch_request_set_output_fds(struct hutch_request *request, int stdout_fd, int stderr_fd,
                                 struct hutch_error *err);

/* Sets one option by the name it has on the command line, without the dashes: "timeout" "5",
 * "memory" "256M", "env" "K=V", "ro-bind" "/data:/data", "require" "memory,pids". Options that
 * take no value take "1". Units, ranges and defaults: hutch(1). Lists grow with each call. */
int hutch_request_set(struct hutch_request *request, const char *option, const char *value,
                      struct hutch_error *err);

/* Runs the request and waits for the result; everything of the box is gone when it returns.
 * Returns 0 whenever there is a result, also when the program failed or could not be started:
 * then its reason is "setup" or "request". A negative errno means that there is none (out of
 * memory, a NULL request). */
int hutch_run(const struct hutch_request *request, struct hutch_result **ret_result,
              struct hutch_error *err);

/* exec, the same way. */
int hutch_exec(const struct hutch_request *request, struct hutch_result **ret_result,
               struct hutch_error *err);

/* The static check alone, in a box. Returns 0 and a result with reason "exit" and `success`
 * true (nothing found) or reason "invalid" and the findings as its error. */
int hutch_validate(const struct hutch_request *request, struct hutch_result **ret_result,
                   struct hutch_error *err);

/* What would be done, as JSON, without doing it. The caller frees *ret_json with free(). */
int hutch_plan(const struct hutch_request *request, char **ret_json, size_t *ret_len,
               struct hutch_error *err);

/*
 * For hosts with a loop of their own:
 *
 *   hutch_run_start(req, &run, &err);
 *   poll hutch_run_fd(run) for input, then hutch_run_step(run) until it returns 1
 *   hutch_run_finish(run, &res, &err);
 *   hutch_run_free(run);
 *
 * The request must stay alive until hutch_run_free().
 */
int hutch_run_start(const struct hutch_request *request, struct hutch_run **ret_run,
                    struct hutch_error *err);
/* The fd to poll for input; owned by the run. */
int hutch_run_fd(const struct hutch_run *run);
/* Does what can be done without blocking: 0 go on polling, 1 the result is there, negative errno.
 */
int hutch_run_step(struct hutch_run *run, struct hutch_error *err);
/* Ends the box now; the result (reason "signal", SIGKILL) follows through hutch_run_step(). */
int hutch_run_cancel(struct hutch_run *run, struct hutch_error *err);
/* Takes the result out; -EAGAIN before hutch_run_step() returned 1. The caller frees it. The
 * last of the box may still be ending then: hutch_run_free() waits for that. */
int hutch_run_finish(struct hutch_run *run, struct hutch_result **ret_result,
                     struct hutch_error *err);
/* Ends the box if it still runs, waits until nothing of it is left, frees the run. */
void hutch_run_free(struct hutch_run *run);
/* The same for a process that exits right afterwards: when every process of the box has ended and
 * only the kernel's own work is left (its mounts), that isn't waited for. */
void hutch_run_leave(struct hutch_run *run);

/* The result as one line of JSON (docs/protocol.md); owned by the result, NUL-terminated,
 * `ret_len` may be NULL. */
const char *hutch_result_json(const struct hutch_result *result, size_t *ret_len);
/* The result's reason: "exit", "signal", "timeout", "cpu_time", "memory", "output", "syscall",
 * "no_result", "protocol", "invalid", "request" or "setup"; static storage. */
const char *hutch_result_reason(const struct hutch_result *result);
/* The exit status that the command maps this result to (hutch(1), EXIT STATUS). */
int hutch_result_exit_status(const struct hutch_result *result);
/* 1 if the program exited 0 in its limits (run) or returned a value (exec), else 0. */
int hutch_result_ok(const struct hutch_result *result);
/* One stream's bytes as they were kept (1 stdout, 2 stderr); owned by the result. */
const void *hutch_result_stream(const struct hutch_result *result, int stream, size_t *ret_len);
/* exec: the value as JSON text, NULL if there is none; owned by the result. */
const char *hutch_result_output(const struct hutch_result *result, size_t *ret_len);
/* What failed, in words; NULL if nothing did; owned by the result. */
const char *hutch_result_error(const struct hutch_result *result);
/* The produced files: their number, and one of them by index (data owned by the result). */
size_t hutch_result_file_count(const struct hutch_result *result);
int hutch_result_file(const struct hutch_result *result, size_t index, const char **ret_name,
                      const void **ret_data, size_t *ret_len);
void hutch_result_free(struct hutch_result *result);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
