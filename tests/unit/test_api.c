/*
 * test_api.c - what hutch.h promises: NULLs, failures that leave outputs alone, the order of
 * calls, and hosts that do odd things with their children, signals and descriptors. The host is
 * this process: the library makes its boxes without changing it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hutch.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/host.h"
#include "support/sample.h"
#include "support/spawn.h"

TestSuite(api, .timeout = 120);

static struct hutch_error err;

static struct hutch_result *run_of(const struct hutch_request *request)
{
    struct hutch_result *result = NULL;
    cr_assert_eq(hutch_run(request, &result, &err), 0, "%s", err.message);
    return result;
}

/* Runs a shell script and expects that reason and exit status. */
static void expect_run(const char *script, const char *timeout, const char *reason, int status)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "-c", script));
    sample_set(request, "timeout", timeout);
    struct hutch_result *result = run_of(request);
    cr_expect(strcmp(hutch_result_reason(result), reason) == 0 &&
                  hutch_result_exit_status(result) == status,
              "%s: %s", script, hutch_result_json(result, NULL));
    hutch_result_free(result);
}

static void expect_value(void)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return 6 * 7");
    struct hutch_result *result = NULL;
    cr_assert_eq(hutch_exec(request, &result, &err), 0, "%s", err.message);
    const char *output = hutch_result_output(result, NULL);
    cr_expect(output && strcmp(output, "42") == 0, "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
}

/* One of each way to end. */
static void expect_every_end(void)
{
    expect_run("echo x; exit 7", "30", "exit", 7);
    expect_run("kill -KILL $$", "30", "signal", 137);
    expect_run("sleep 60 & sleep 60", "0.2", "timeout", 124);
    expect_run("sleep 60 & exit 0", "30", "exit", 0);
    expect_value();
}

/* ---- NULLs and failures ---- */

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        err = (struct hutch_error){0};                                                             \
        cr_expect_eq((call), -EINVAL, "%s", #call);                                                \
        cr_expect(err.code == -EINVAL && err.stage == HUTCH_STAGE_REQUEST && err.message[0],       \
                  "%s: code %d, stage %d: %s", #call, err.code, err.stage, err.message);           \
    } while (0)

Test(api, setters_refuse_null)
{
    _cleanup_request_ struct hutch_request *run = sample_command(LIST("id"));
    _cleanup_request_ struct hutch_request *exec =
        sample_code(HUTCH_VERB_EXEC, "python", "return 1");
    static const char *const ARGV[] = {"id", NULL};
    REFUSED(hutch_request_set_code(NULL, "python", "x", 1, &err));
    REFUSED(hutch_request_set_code(run, "python", NULL, 1, &err));
    REFUSED(hutch_request_set_command(NULL, ARGV, &err));
    REFUSED(hutch_request_set_command(run, NULL, &err));
    REFUSED(hutch_request_add_arg(NULL, "x", &err));
    REFUSED(hutch_request_add_arg(run, NULL, &err));
    REFUSED(hutch_request_set_args(NULL, "{}", 2, &err));
    REFUSED(hutch_request_set_args(exec, NULL, 2, &err));
    REFUSED(hutch_request_allow_import(NULL, "math", &err));
    REFUSED(hutch_request_allow_import(exec, NULL, &err));
    REFUSED(hutch_request_add_file(NULL, "f", "x", 1, 0, &err));
    REFUSED(hutch_request_add_file(run, NULL, "x", 1, 0, &err));
    REFUSED(hutch_request_add_file(run, "f", NULL, 1, 0, &err));
    REFUSED(hutch_request_set_stdin(NULL, "x", 1, &err));
    REFUSED(hutch_request_set_stdin(run, NULL, 1, &err));
    REFUSED(hutch_request_set_stdin_fd(NULL, 0, &err));
    REFUSED(hutch_request_set_stdin_fd(run, -1, &err));
    REFUSED(hutch_request_set_output_fds(NULL, 1, 2, &err));
    REFUSED(hutch_request_set(NULL, "memory", "1G", &err));
    REFUSED(hutch_request_set(run, NULL, "1G", &err));
    REFUSED(hutch_request_set(run, "memory", NULL, &err));
    cr_expect_eq(hutch_request_set(run, "memory", NULL, NULL), -EINVAL, "without an error to fill");
}

Test(api, calls_that_run_refuse_null_and_leave_their_outputs)
{
    char mark;
    struct hutch_result *result = (void *)&mark;
    struct hutch_request *request = (void *)&mark;
    struct hutch_run *run = (void *)&mark;
    char *json = &mark;
    size_t len = 99;
    REFUSED(hutch_run(NULL, &result, &err));
    REFUSED(hutch_exec(NULL, &result, &err));
    REFUSED(hutch_validate(NULL, &result, &err));
    REFUSED(hutch_plan(NULL, &json, &len, &err));
    REFUSED(hutch_run_start(NULL, &run, &err));
    REFUSED(hutch_run_step(NULL, &err));
    REFUSED(hutch_run_cancel(NULL, &err));
    REFUSED(hutch_run_finish(NULL, &result, &err));
    REFUSED(hutch_request_new((enum hutch_verb)7, &request, &err));
    REFUSED(hutch_request_from_json(HUTCH_VERB_RUN, "{", 1, &request, &err));
    cr_expect_eq(hutch_run_fd(NULL), -1);
    cr_expect(result == (void *)&mark && request == (void *)&mark && run == (void *)&mark &&
              json == &mark && len == 99);
    hutch_request_free(NULL);
    hutch_result_free(NULL);
    hutch_run_free(NULL);
}

Test(api, verbs_that_dont_fit_are_refused)
{
    _cleanup_request_ struct hutch_request *run = sample_command(LIST("id"));
    struct hutch_result *result = NULL;
    REFUSED(hutch_exec(run, &result, &err));
    REFUSED(hutch_validate(run, &result, &err));
    REFUSED(hutch_request_set_args(run, "{}", 2, &err));
    REFUSED(hutch_request_allow_import(run, "math", &err));
    cr_assert_null(result);
}

/* A plan fails with an error; a run of the same has a result that says the same. */
static void expect_stage(const struct hutch_request *request, enum hutch_stage stage,
                         const char *reason, const char *word)
{
    char *json = NULL;
    size_t len = 0;
    err = (struct hutch_error){0};
    cr_expect_lt(hutch_plan(request, &json, &len, &err), 0, "%s", word);
    cr_expect(err.stage == (int)stage && strstr(err.message, word), "stage %d: %s", err.stage,
              err.message);
    cr_expect(json == NULL && len == 0);
    struct hutch_result *result = run_of(request);
    cr_expect(strcmp(hutch_result_reason(result), reason) == 0 &&
                  strstr(hutch_result_error(result), word),
              "%s", hutch_result_json(result, NULL));
    cr_expect_eq(hutch_result_ok(result), 0);
    cr_expect_eq(hutch_result_exit_status(result), strcmp(reason, "request") == 0 ? 2 : 125);
    hutch_result_free(result);
}

Test(api, refusals_have_their_stage)
{
    struct hutch_request *nothing = NULL;
    cr_assert_eq(hutch_request_new(HUTCH_VERB_RUN, &nothing, &err), 0);
    expect_stage(nothing, HUTCH_STAGE_REQUEST, "request", "nothing to run");
    hutch_request_free(nothing);
    _cleanup_request_ struct hutch_request *bind = sample_command(LIST("id"));
    sample_set(bind, "ro-bind", "/there-is-none:/data");
    expect_stage(bind, HUTCH_STAGE_REQUEST, "request", "/there-is-none");
    _cleanup_request_ struct hutch_request *device = sample_command(LIST("id"));
    sample_set(device, "ro-bind", "/dev/null:/data");
    expect_stage(device, HUTCH_STAGE_REQUEST, "request", "/dev/null");
    _cleanup_request_ struct hutch_request *python =
        sample_code(HUTCH_VERB_RUN, "python", "print()");
    sample_set(python, "python", "/there-is-none/python");
    expect_stage(python, HUTCH_STAGE_REQUEST, "request", "/there-is-none/python");
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    _cleanup_request_ struct hutch_request *empty = sample_code(HUTCH_VERB_RUN, "bash", "echo");
    sample_set(empty, "rootfs", dir.path);
    expect_stage(empty, HUTCH_STAGE_HOST, "setup", "no interpreter for bash");
}

/* ---- the order of calls ---- */

static struct hutch_run *start(const struct hutch_request *request)
{
    struct hutch_run *run = NULL;
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    cr_assert_geq(hutch_run_fd(run), 0);
    return run;
}

static void step_to_end(struct hutch_run *run)
{
    int done;
    while ((done = hutch_run_step(run, &err)) == 0) {
        struct pollfd fd = {.fd = hutch_run_fd(run), .events = POLLIN};
        cr_assert_eq(poll(&fd, 1, 60000), 1, "the run's fd stays silent");
    }
    cr_assert_eq(done, 1, "%s", err.message);
}

Test(api, a_result_is_handed_out_once_and_only_at_the_end)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "-c", "exit 3"));
    struct hutch_run *run = start(request);
    struct hutch_result *result = NULL, *second = NULL;
    cr_assert_eq(hutch_run_finish(run, &result, &err), -EAGAIN);
    cr_assert(result == NULL && err.stage == HUTCH_STAGE_RESULT);
    step_to_end(run);
    cr_assert_eq(hutch_run_step(run, &err), 1, "a step behind the end");
    cr_assert_eq(hutch_run_finish(run, &result, &err), 0);
    cr_assert_eq(hutch_run_finish(run, &second, &err), -EAGAIN);
    cr_assert_null(second);
    cr_assert_eq(hutch_run_step(run, &err), 1);
    cr_assert_eq(hutch_run_cancel(run, &err), 0);
    hutch_run_free(run);
    cr_assert_eq(hutch_result_exit_status(result), 3, "the result outlives its run");
    hutch_result_free(result);
}

Test(api, cancel_ends_a_run_once)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sleep", "600"));
    for (int times = 1; times <= 3; times++) {
        struct hutch_run *run = start(request);
        struct hutch_result *result = NULL;
        for (int i = 0; i < times; i++)
            cr_assert_eq(hutch_run_cancel(run, &err), 0);
        step_to_end(run);
        cr_assert_eq(hutch_run_finish(run, &result, &err), 0);
        cr_expect(strcmp(hutch_result_reason(result), "signal") == 0 &&
                      hutch_result_exit_status(result) == 137,
                  "%s", hutch_result_json(result, NULL));
        hutch_result_free(result);
        hutch_run_free(run);
    }
}

Test(api, cancel_after_the_end_changes_nothing)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("true"));
    struct hutch_run *run = start(request);
    struct hutch_result *result = NULL;
    step_to_end(run);
    cr_assert_eq(hutch_run_cancel(run, &err), 0);
    cr_assert_eq(hutch_run_finish(run, &result, &err), 0);
    cr_assert_str_eq(hutch_result_reason(result), "exit");
    hutch_result_free(result);
    hutch_run_free(run);
}

Test(api, a_run_that_cant_start_is_done_at_once)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("id"));
    sample_set(request, "ro-bind", "/there-is-none:/data");
    struct hutch_run *run = start(request);
    struct pollfd fd = {.fd = hutch_run_fd(run), .events = POLLIN};
    struct hutch_result *result = NULL;
    cr_assert_eq(poll(&fd, 1, 10000), 1, "nobody would step it");
    cr_assert_eq(hutch_run_step(run, &err), 1);
    cr_assert_eq(hutch_run_finish(run, &result, &err), 0);
    cr_assert_str_eq(hutch_result_reason(result), "request");
    hutch_result_free(result);
    hutch_run_free(run);
}

Test(api, runs_are_freed_in_every_state)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return 1");
    processes_watch();
    const char *before = fds_now();
    hutch_run_free(start(request));
    struct hutch_run *stepped = start(request);
    (void)hutch_run_step(stepped, &err);
    hutch_run_free(stepped);
    struct hutch_run *done = start(request); /* its result is never taken out */
    step_to_end(done);
    hutch_run_free(done);
    expect_nothing_left();
    cr_assert_str_eq(fds_now(), before);
}

Test(api, a_request_can_be_run_again_and_twice_at_once)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "-c", "echo x"));
    struct hutch_run *first = start(request), *second = start(request);
    struct hutch_run *both[] = {first, second};
    for (int i = 0; i < 2; i++) {
        struct hutch_result *result = NULL;
        size_t len;
        step_to_end(both[i]);
        cr_assert_eq(hutch_run_finish(both[i], &result, &err), 0);
        cr_assert(memcmp(hutch_result_stream(result, 1, &len), "x\n", 2) == 0 && len == 2);
        hutch_result_free(result);
        hutch_run_free(both[i]);
    }
    hutch_result_free(run_of(request));
}

Test(api, getters_take_what_is_not_there)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("true"));
    struct hutch_result *result = run_of(request);
    size_t len = 99;
    const void *data = "untouched";
    cr_expect_null(hutch_result_stream(result, 0, &len));
    cr_expect_null(hutch_result_stream(result, 3, NULL));
    cr_expect_null(hutch_result_output(result, &len));
    cr_expect_eq(len, 99);
    cr_expect_eq(hutch_result_file(result, 0, NULL, &data, NULL), -EINVAL);
    cr_expect_str_eq(data, "untouched");
    cr_expect_not_null(hutch_result_stream(result, 2, &len));
    cr_expect_eq(len, 0);
    hutch_result_free(result);
}

/* ---- the host stays as it was ---- */

static const char *host_state(void)
{
    static const char *const LINKS[] = {"user", "pid", "mnt",    "net",
                                        "ipc",  "uts", "cgroup", "time"};
    const char *state = "";
    char target[256], cwd[4096];
    mode_t mask = umask(0);
    (void)umask(mask);
    for (size_t i = 0; i < sizeof LINKS / sizeof LINKS[0]; i++) {
        ssize_t len =
            readlink(text_format("/proc/self/ns/%s", LINKS[i]), target, sizeof target - 1);
        cr_assert_gt(len, 0);
        state = text_format("%s%.*s\n", state, (int)len, target);
    }
    char *status = file_text("/proc/self/status"), *save;
    for (char *line = strtok_r(status, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "Threads", 7) == 0 || strncmp(line, "Sig", 3) == 0 ||
            strncmp(line, "Cap", 3) == 0 || strncmp(line, "NoNewPrivs", 10) == 0 ||
            strncmp(line, "Seccomp:", 8) == 0 || strncmp(line, "Uid", 3) == 0)
            if (strncmp(line, "SigQ", 4) != 0)
                state = text_format("%s%s\n", state, line);
    return text_format("%sumask %o\ncwd %s\nfds %s", state, mask, getcwd(cwd, sizeof cwd),
                       fds_now());
}

Test(api, the_host_is_the_same_afterwards)
{
    _cleanup_request_ struct hutch_request *bad = sample_command(LIST("id"));
    sample_set(bad, "ro-bind", "/there-is-none:/data");
    const char *before = host_state();
    expect_every_end();
    hutch_result_free(run_of(bad));
    cr_assert_str_eq(host_state(), before);
}

/* ---- hosts with ways of their own with children ---- */

Test(api, a_host_that_ignores_sigchld)
{
    cr_assert_neq(signal(SIGCHLD, SIG_IGN), SIG_ERR);
    expect_every_end();
}

static atomic_int taken;

static void wait_for_any(int sig)
{
    int error = errno;
    (void)sig;
    while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
        atomic_fetch_add(&taken, 1);
    errno = error;
}

/* The host doesn't look until somebody else has taken init's status. */
static void expect_ends_though_taken(void)
{
    static const struct {
        const char *script, *reason;
        int status;
    } ENDS[] = {{"echo x; exit 7", "exit", 7},
                {"kill -KILL $$", "signal", 137},
                {"sleep 60 & exec sleep 60", "timeout", 124}};
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        _cleanup_request_ struct hutch_request *request =
            sample_command(LIST("sh", "-c", ENDS[i].script));
        struct hutch_result *result = NULL;
        sample_set(request, "timeout", "5");
        if (strcmp(ENDS[i].reason, "timeout") == 0)
            sample_set(request, "timeout", "0.2");
        atomic_store(&taken, 0);
        struct hutch_run *run = start(request);
        while (atomic_load(&taken) == 0)
            (void)poll(NULL, 0, 5);
        step_to_end(run);
        cr_assert_eq(hutch_run_finish(run, &result, &err), 0);
        cr_expect(strcmp(hutch_result_reason(result), ENDS[i].reason) == 0 &&
                      hutch_result_exit_status(result) == ENDS[i].status,
                  "%s: %s", ENDS[i].script, hutch_result_json(result, NULL));
        hutch_result_free(result);
        hutch_run_free(run);
    }
    expect_every_end();
}

Test(api, a_host_whose_handler_waits_for_any_child)
{
    struct sigaction action = {.sa_handler = wait_for_any};
    cr_assert_eq(sigaction(SIGCHLD, &action, NULL), 0);
    expect_ends_though_taken();
}

static atomic_bool over;

static void *wait_in_a_loop(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        if (waitpid(-1, NULL, __WALL) > 0)
            atomic_fetch_add(&taken, 1);
        else
            sched_yield();
    }
    return NULL;
}

Test(api, a_host_with_a_thread_that_waits_for_any_child)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, wait_in_a_loop, NULL), 0);
    expect_ends_though_taken();
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}

/* ---- SIGPIPE ---- */

static void expect_no_sigpipe(void (*disposition)(int))
{
    struct sigaction now;
    sigset_t pending;
    int out[2];
    static char input[1 << 20];
    _cleanup_request_ struct hutch_request *deaf = sample_command(LIST("sh", "-c", "exec <&-"));
    cr_assert_eq(hutch_request_set_stdin(deaf, input, sizeof input, &err), 0);
    struct hutch_result *result = run_of(deaf);
    cr_expect_str_eq(hutch_result_reason(result), "exit");
    hutch_result_free(result);
    _cleanup_request_ struct hutch_request *loud = sample_command(LIST("yes"));
    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    close(out[0]); /* nobody reads */
    cr_assert_eq(hutch_request_set_output_fds(loud, out[1], -1, &err), 0);
    result = run_of(loud);
    cr_expect_str_eq(hutch_result_reason(result), "signal", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    close(out[1]);
    sigemptyset(&pending);
    cr_expect(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    cr_expect(sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == disposition);
}

Test(api, sigpipe_by_default)
{
    cr_assert_neq(signal(SIGPIPE, SIG_DFL), SIG_ERR);
    expect_no_sigpipe(SIG_DFL);
}

Test(api, sigpipe_ignored)
{
    cr_assert_neq(signal(SIGPIPE, SIG_IGN), SIG_ERR);
    expect_no_sigpipe(SIG_IGN);
    expect_run("yes | head -n 1", "30", "exit", 0); /* not ignored in the box */
}

/* ---- descriptors ---- */

Test(api, a_host_without_standard_streams)
{
    int saved[3], open_after = 0;
    _cleanup_request_ struct hutch_request *request =
        sample_command(LIST("sh", "-c", "cat; echo err >&2; echo data >file; exit 5"));
    struct hutch_result *result = NULL, *exec_result = NULL;
    _cleanup_request_ struct hutch_request *exec =
        sample_code(HUTCH_VERB_EXEC, "python", "return 1");
    cr_assert_eq(hutch_request_set_stdin(request, "in", 2, &err), 0);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
        close(i);
    }
    int r = hutch_run(request, &result, &err);
    int exec_r = hutch_exec(exec, &exec_result, &err);
    for (int i = 0; i < 3; i++) {
        open_after += fcntl(i, F_GETFD) >= 0;
        (void)dup2(saved[i], i);
        close(saved[i]);
    }
    cr_assert_eq(r, 0, "%s", err.message);
    cr_assert_eq(exec_r, 0, "%s", err.message);
    cr_assert_eq(open_after, 0, "the library left %d descriptors there", open_after);
    size_t out_len, err_len;
    const char *out = hutch_result_stream(result, 1, &out_len);
    const char *error = hutch_result_stream(result, 2, &err_len);
    cr_assert(hutch_result_exit_status(result) == 5 && out_len == 2 && memcmp(out, "in", 2) == 0 &&
                  err_len == 4 && memcmp(error, "err\n", 4) == 0 &&
                  hutch_result_file_count(result) == 1,
              "%s", hutch_result_json(result, NULL));
    cr_assert_eq(hutch_result_ok(exec_result), 1, "%s", hutch_result_json(exec_result, NULL));
    hutch_result_free(result);
    hutch_result_free(exec_result);
}

Test(api, a_host_with_64_descriptors)
{
    const struct rlimit few = {64, 64};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    expect_run("exit 7", "30", "exit", 7);
    /* exec's profile needs more, and says so. */
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return 1");
    struct hutch_result *result = NULL;
    cr_assert_eq(hutch_exec(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_reason(result), "setup");
    cr_assert(strstr(hutch_result_error(result), "1024"), "%s", hutch_result_error(result));
    hutch_result_free(result);
}

/* From none left to enough: each is a result or an error, and leaks nothing. */
Test(api, a_host_that_runs_out_of_descriptors)
{
    _cleanup_request_ struct hutch_request *request =
        sample_command(LIST("sh", "-c", "echo data >file"));
    int open_fds[64], len = 0;
    bool worked = false;
    const struct rlimit few = {64, 64};
    processes_watch();
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (len < 64 && (open_fds[len] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        len++;
    cr_assert_gt(len, 24);
    while (len > 0) {
        struct hutch_result *result = NULL;
        int r = hutch_run(request, &result, &err);
        if (r == 0) {
            const char *reason = hutch_result_reason(result);
            worked = strcmp(reason, "exit") == 0;
            cr_expect(worked || strcmp(reason, "setup") == 0, "%s",
                      hutch_result_json(result, NULL));
            cr_expect_eq(hutch_result_file_count(result), worked ? 1 : 0, "%s",
                         hutch_result_json(result, NULL));
        } else {
            cr_expect(r == -EMFILE && err.stage != HUTCH_STAGE_REQUEST, "%d: %s", r, err.message);
        }
        hutch_result_free(result);
        close(open_fds[--len]);
        int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
        cr_assert_eq(lowest, open_fds[len], "the library kept a descriptor");
        close(lowest);
    }
    cr_assert(worked);
    expect_nothing_left();
}
