/* test_library.c - libhutch in a host of its own: threads, loops, cancelling, fds. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hutch.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/command.h"
#include "support/deny.h"
#include "support/host.h"

TestSuite(library, .timeout = 200);

static struct hutch_request *request_command(const char *const *argv)
{
    struct hutch_request *request = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_new(HUTCH_VERB_RUN, &request, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_command(request, argv, &err), 0, "%s", err.message);
    return request;
}

static struct hutch_request *request_python(enum hutch_verb verb, const char *code)
{
    struct hutch_request *request = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_new(verb, &request, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_code(request, "python", code, strlen(code), &err), 0, "%s",
                 err.message);
    return request;
}

static void set(struct hutch_request *request, const char *option, const char *value)
{
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_set(request, option, value, &err), 0, "%s", err.message);
}

static struct hutch_result *finish_with_poll(struct hutch_run *run)
{
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    int done = 0;
    while (done == 0) {
        struct pollfd fd = {.fd = hutch_run_fd(run), .events = POLLIN};
        cr_assert_eq(poll(&fd, 1, 60000), 1, "the run's fd stays silent");
        done = hutch_run_step(run, &err);
    }
    cr_assert_eq(done, 1, "%s", err.message);
    cr_assert_eq(hutch_run_finish(run, &result, &err), 0, "%s", err.message);
    return result;
}

Test(library, run_returns_everything_of_a_result)
{
    struct hutch_request *request =
        request_python(HUTCH_VERB_RUN, "open('f', 'w').write('data'); print('out')");
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    const char *name;
    const void *data;
    size_t len;
    cr_assert_eq(hutch_run(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_reason(result), "exit", "%s", hutch_result_json(result, NULL));
    cr_assert_eq(hutch_result_ok(result), 1);
    cr_assert_eq(hutch_result_exit_status(result), 0);
    cr_assert(memcmp(hutch_result_stream(result, 1, &len), "out\n", 4) == 0 && len == 4);
    cr_assert_eq(hutch_result_file_count(result), 1);
    cr_assert_eq(hutch_result_file(result, 0, &name, &data, &len), 0);
    cr_assert(strcmp(name, "f") == 0 && len == 4 && memcmp(data, "data", 4) == 0);
    cr_assert_neq(hutch_result_file(result, 1, &name, &data, &len), 0);
    cr_assert_null(hutch_result_error(result));
    hutch_result_free(result);
    hutch_request_free(request);
}

Test(library, exec_and_validate)
{
    static const char ARGS[] = "{\"n\":1180591620717411303424}";
    struct hutch_request *request = request_python(HUTCH_VERB_EXEC, "return args['n'] * 2");
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_set_args(request, ARGS, strlen(ARGS), &err), 0, "%s", err.message);
    cr_assert_eq(hutch_exec(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_output(result, NULL), "2361183241434822606848", "%s",
                     hutch_result_json(result, NULL));
    hutch_result_free(result);
    cr_assert_eq(hutch_validate(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_reason(result), "exit");
    hutch_result_free(result);
    hutch_request_free(request);
    request = request_python(HUTCH_VERB_EXEC, "import os");
    cr_assert_eq(hutch_validate(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_reason(result), "invalid");
    cr_assert(strstr(hutch_result_error(result), "import 'os'"));
    hutch_result_free(result);
    hutch_request_free(request);
}

Test(library, many_runs_in_one_poll_loop)
{
    enum { RUNS = 6 };
    struct hutch_request *requests[RUNS];
    struct hutch_run *runs[RUNS];
    struct hutch_error err = {0};
    for (int i = 0; i < RUNS; i++) {
        requests[i] = request_command(LIST("sh", "-c", text_format("sleep 0.2; exit %d", i)));
        cr_assert_eq(hutch_run_start(requests[i], &runs[i], &err), 0, "%s", err.message);
    }
    struct hutch_result *early = NULL;
    cr_assert_eq(hutch_run_finish(runs[0], &early, &err), -EAGAIN);
    for (int left = RUNS, done[RUNS] = {0}; left > 0;) {
        struct pollfd fds[RUNS];
        for (int i = 0; i < RUNS; i++)
            fds[i] = (struct pollfd){.fd = done[i] ? -1 : hutch_run_fd(runs[i]), .events = POLLIN};
        cr_assert_gt(poll(fds, RUNS, 60000), 0);
        for (int i = 0; i < RUNS; i++) {
            if (!fds[i].revents)
                continue;
            done[i] = hutch_run_step(runs[i], &err);
            cr_assert_geq(done[i], 0, "%s", err.message);
            left -= done[i];
        }
    }
    for (int i = 0; i < RUNS; i++) {
        struct hutch_result *result = NULL;
        cr_assert_eq(hutch_run_finish(runs[i], &result, &err), 0, "%s", err.message);
        cr_assert_eq(hutch_result_exit_status(result), i);
        hutch_result_free(result);
        hutch_run_free(runs[i]);
        hutch_request_free(requests[i]);
    }
}

Test(library, a_step_never_blocks)
{
    struct hutch_request *request = request_command(LIST("sleep", "1"));
    struct hutch_run *run = NULL;
    struct hutch_error err = {0};
    double slowest = 0;
    int done = 0;
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    while (done == 0) {
        double before = now_ms();
        done = hutch_run_step(run, &err);
        slowest = now_ms() - before > slowest ? now_ms() - before : slowest;
        sleep_ms(1);
    }
    cr_assert_eq(done, 1, "%s", err.message);
    cr_assert_lt(slowest, 500 * slow(), "a step took %.0f ms", slowest);
    hutch_run_free(run);
    hutch_request_free(request);
}

Test(library, limits_hold_though_the_hosts_loop_stalls)
{
    struct hutch_request *request = request_command(LIST("sleep", "600"));
    struct hutch_run *run = NULL;
    struct hutch_error err = {0};
    processes_watch();
    set(request, "timeout", "0.5");
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    /* Nobody steps; the box ends itself. */
    const char *left = processes_left(20000);
    cr_assert_null(left, "%s", left);
    struct hutch_result *result = finish_with_poll(run);
    cr_assert_str_eq(hutch_result_reason(result), "timeout", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_run_free(run);
    hutch_request_free(request);
}

/* Steps for a while, then stands still until long after the limit. */
static struct hutch_result *look_late(const char *command, double limit_s)
{
    struct hutch_request *request = request_command(LIST("sh", "-c", command));
    struct hutch_run *run = NULL;
    struct hutch_error err = {0};
    char limit[32];
    (void)snprintf(limit, sizeof(limit), "%.1f", limit_s);
    set(request, "timeout", limit);
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    for (double end = now_ms() + limit_s * 200; now_ms() < end; sleep_ms(1))
        cr_assert_eq(hutch_run_step(run, &err), 0, "%s", err.message);
    sleep_ms((unsigned)(limit_s * 1200));
    struct hutch_result *result = finish_with_poll(run);
    hutch_run_free(run);
    hutch_request_free(request);
    return result;
}

Test(library, a_host_that_looks_late_makes_no_timeout_of_a_program_that_ended)
{
    const double limit_s = 1 + slow() / 5;
    char command[64];
    (void)snprintf(command, sizeof(command), "sleep %.1f; exit 3", limit_s / 2);
    struct hutch_result *result = look_late(command, limit_s);
    cr_assert_str_eq(hutch_result_reason(result), "exit", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    (void)snprintf(command, sizeof(command), "sleep %.1f; kill -SEGV $$", limit_s / 2);
    result = look_late(command, limit_s);
    cr_assert_str_eq(hutch_result_reason(result), "signal", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
}

Test(library, cancel_and_free_end_a_run)
{
    struct hutch_request *request = request_command(LIST("sleep", "600"));
    struct hutch_run *run = NULL;
    struct hutch_error err = {0};
    processes_watch();
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_run_cancel(run, &err), 0, "%s", err.message);
    struct hutch_result *result = finish_with_poll(run);
    cr_assert_str_eq(hutch_result_reason(result), "signal", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_run_free(run);
    expect_nothing_left();
    cr_assert_eq(hutch_run_start(request, &run, &err), 0, "%s", err.message);
    hutch_run_free(run);
    expect_nothing_left();
    hutch_request_free(request);
}

Test(library, stdin_and_output_go_through_the_callers_fds)
{
    int in[2], out[2];
    char text[64] = "";
    struct hutch_request *request = request_command(LIST("sh", "-c", "cat; echo err >&2"));
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    cr_assert_eq(write(in[1], "through", 7), 7);
    close(in[1]);
    cr_assert_eq(hutch_request_set_stdin_fd(request, in[0], &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_output_fds(request, out[1], -1, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_run(request, &result, &err), 0, "%s", err.message);
    close(out[1]);
    cr_assert_eq(read(out[0], text, sizeof text - 1), 7);
    cr_assert_str_eq(text, "through");
    size_t len;
    (void)hutch_result_stream(result, 1, &len);
    cr_assert_eq(len, 0);
    (void)hutch_result_stream(result, 2, &len);
    cr_assert_eq(len, 4);
    hutch_result_free(result);
    hutch_request_free(request);
}

static void *run_true(void *arg)
{
    struct hutch_request *request = request_command(LIST("sh", "-c", "exit 0"));
    struct hutch_result *result = NULL;
    (void)arg;
    long status = -1;
    if (hutch_run(request, &result, NULL) == 0)
        status = hutch_result_exit_status(result);
    hutch_result_free(result);
    hutch_request_free(request);
    return (void *)status;
}

Test(library, sixteen_threads_start_a_box_at_once)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_true, NULL), 0);
    for (int i = 0; i < 16; i++) {
        void *status;
        pthread_join(threads[i], &status);
        cr_expect_eq((long)status, 0, "thread %d: %ld", i, (long)status);
    }
}

Test(library, sixteen_threads_without_clone3)
{
    struct deny deny = {.numbers = {SYS_clone3}, .error = ENOSYS};
    pthread_t threads[16];
    child_deny(&deny); /* for this process and its threads, from here on */
    for (int i = 0; i < 16; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_true, NULL), 0);
    for (int i = 0; i < 16; i++) {
        void *status;
        pthread_join(threads[i], &status);
        cr_expect_eq((long)status, 0, "thread %d: %ld", i, (long)status);
    }
}

static void *start_and_leave(void *arg)
{
    struct hutch_run *run = NULL;
    (void)hutch_run_start(arg, &run, NULL);
    return run;
}

Test(library, a_run_outlives_the_thread_that_started_it)
{
    struct hutch_request *request =
        request_command(LIST("sh", "-c", "sleep 0.5; echo done; exit 7"));
    pthread_t thread;
    void *run;
    cr_assert_eq(pthread_create(&thread, NULL, start_and_leave, request), 0);
    pthread_join(thread, &run);
    cr_assert_not_null(run);
    struct hutch_result *result = finish_with_poll(run);
    cr_assert_eq(hutch_result_exit_status(result), 7, "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_run_free(run);
    hutch_request_free(request);
}

Test(library, callers_signals_and_children_are_left_alone)
{
    struct spawn bystander = {.argv = LIST("true")};
    struct child child;
    sigset_t before = {0}, after = {0}; /* calls fill a part of them */
    struct sigaction action;
    spawn_start(&bystander, &child);
    sigprocmask(SIG_SETMASK, NULL, &before);
    run_true(NULL);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < NSIG; sig++)
        cr_assert_eq(sigismember(&before, sig), sigismember(&after, sig), "signal %d", sig);
    sigaction(SIGCHLD, NULL, &action);
    cr_assert_eq(action.sa_handler, SIG_DFL);
    struct output o;
    spawn_finish(&child, &o); /* its exit status was not taken by somebody else */
    cr_assert_eq(o.exit_code, 0);
}

Test(library, bad_requests_are_results_or_errors_of_the_request_stage)
{
    struct hutch_request *request = NULL;
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    cr_assert_lt(hutch_request_from_json(HUTCH_VERB_EXEC, "{\"bogus\":1}", 11, &request, &err), 0);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert(strstr(err.message, "bogus"));
    cr_assert_null(request);
    cr_assert_lt(hutch_run(NULL, &result, &err), 0);
    cr_assert_eq(hutch_request_new(HUTCH_VERB_RUN, &request, &err), 0);
    cr_assert_lt(hutch_request_set(request, "memory", "lots", &err), 0);
    cr_assert(strstr(err.message, "memory"));
    cr_assert_lt(hutch_request_set(request, "memory", "lots", NULL), 0);
    cr_assert_lt(hutch_request_set_code(request, "python", "a\0b", 3, &err), 0);
    int code = hutch_run(request, &result, &err); /* nothing to run */
    cr_assert(code < 0 || strcmp(hutch_result_reason(result), "request") == 0);
    hutch_result_free(result);
    hutch_request_free(request);
    hutch_request_free(NULL);
    hutch_result_free(NULL);
    hutch_run_free(NULL);
}

Test(library, plan_is_json_without_a_run)
{
    struct hutch_request *request = request_command(LIST("true"));
    struct hutch_error err = {0};
    char *json = NULL;
    size_t len = 0;
    cr_assert_eq(hutch_plan(request, &json, &len, &err), 0, "%s", err.message);
    cr_assert(json[0] == '{' && strlen(json) == len);
    free(json);
    hutch_request_free(request);
}

static double median_of_runs(int runs)
{
    double times[64];
    for (int i = 0; i < runs; i++) {
        double before = now_ms();
        cr_assert_eq((long)run_true(NULL), 0);
        times[i] = now_ms() - before;
        for (int k = i; k > 0 && times[k] < times[k - 1]; k--) {
            double swap = times[k];
            times[k] = times[k - 1];
            times[k - 1] = swap;
        }
    }
    return times[runs / 2];
}

Test(library, a_large_host_starts_boxes_as_fast_as_a_small_one)
{
    size_t size = (size_t)1 << 30;
    double small = median_of_runs(21);
    char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    double large = median_of_runs(21);
    munmap(memory, size);
    /* Copying the page tables of 1 GiB takes 15 ms and more. */
    cr_assert_lt(large, small + 8 * slow(), "%.2f ms small, %.2f ms large", small, large);
}
