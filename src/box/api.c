/*
 * api.c - hutch.h's calls that run something: the handle form, and the simple form on top of it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "box/document.h"
#include "box/run.h"

static void run_init(struct hutch_run *run, const struct hutch_request *request,
                     enum plan_purpose purpose)
{
    *run = (struct hutch_run){
        .request = request,
        .purpose = purpose,
        .cgroup = CGROUP,
        .pidfd = -1,
        .control_fd = -1,
        .epoll_fd = -1,
        .timer_fd = -1,
        .work_fd = -1,
        .stdin_fd = -1,
        .result_fd = -1,
        .document = BUF(DOCUMENT_MAX_BYTES + 65536),
        .outputs = {{.fd = -1, .pass_on_fd = request->stdout_fd},
                    {.fd = -1, .pass_on_fd = request->stderr_fd}},
        .started_ns = run_now_ns(),
    };
    host_facts_init(&run->host);
}

static int attach_result(struct hutch_run *run, struct hutch_error *err)
{
    run->result = result_new(run->request);
    if (run->result == NULL)
        return error_oom(err, HUTCH_STAGE_RESULT);
    run->outputs[0].stream = &run->result->out;
    run->outputs[1].stream = &run->result->err;
    for (int i = 0; i < 2; i++) {
        run->outputs[i].stream->passed_on = run->outputs[i].pass_on_fd >= 0;
        run->outputs[i].stream->kept.max = (size_t)run->request->limits.max_output_bytes + 1;
    }
    return 0;
}

/* The fd to poll exists even for a run that failed at once, so that a host's loop sees it. */
static int open_loop(struct hutch_run *run, struct hutch_error *err)
{
    run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->epoll_fd < 0 || run->timer_fd < 0)
        return error_errno(err, HUTCH_STAGE_SUPERVISE, errno, "make an epoll set and a timer");
    return 0;
}

/* A run that can't go on is done at once: its timer makes the fd readable. */
static int done_at_once(struct hutch_run *run, const struct hutch_error *why,
                        struct hutch_error *err)
{
    struct itimerspec now = {.it_value = {.tv_nsec = 1}};
    struct epoll_event event = {.events = EPOLLIN};

    run_fail(run, why);
    run->state = RUN_DONE;
    (void)timerfd_settime(run->timer_fd, 0, &now, NULL);
    (void)epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, run->timer_fd, &event);
    return result_finish(run->result, err);
}

static int start(struct hutch_run *run, struct hutch_error *err)
{
    struct hutch_error why = {0};
    int r = attach_result(run, err);

    if (r == 0)
        r = open_loop(run, err);
    if (r < 0)
        return r;
    r = request_check(run->request, &why);
    if (r == 0)
        r = run_launch(run, &why);
    if (r == 0)
        r = run_watch(run, &why);
    if (r < 0) {
        run_teardown(run);
        return done_at_once(run, &why, err);
    }
    return 0;
}

static int start_for(const struct hutch_request *request, enum plan_purpose purpose,
                     struct hutch_run **ret_run, struct hutch_error *err)
{
    struct hutch_run *run;
    int r;

    if (request == NULL)
        return error_request(err, "no request was given");
    run = malloc(sizeof(*run));
    if (run == NULL)
        return error_oom(err, HUTCH_STAGE_LAUNCH);
    run_init(run, request, purpose);
    r = start(run, err);
    if (r < 0) {
        hutch_run_free(run);
        return r;
    }
    *ret_run = run;
    return 0;
}

static enum plan_purpose purpose_of(const struct hutch_request *request)
{
    return request != NULL && request->verb == HUTCH_VERB_EXEC ? PLAN_EXEC : PLAN_RUN;
}

int hutch_run_start(const struct hutch_request *request, struct hutch_run **ret_run,
                    struct hutch_error *err)
{
    return start_for(request, purpose_of(request), ret_run, err);
}

static int no_run(struct hutch_error *err)
{
    return error_request(err, "no run was given");
}

int hutch_run_fd(const struct hutch_run *run)
{
    return run != NULL ? run->epoll_fd : -1;
}

int hutch_run_step(struct hutch_run *run, struct hutch_error *err)
{
    return run != NULL ? run_step(run, err) : no_run(err);
}

int hutch_run_cancel(struct hutch_run *run, struct hutch_error *err)
{
    if (run == NULL)
        return no_run(err);
    if (run->state != RUN_DONE) {
        run_end(run, RUN_BY_CANCEL);
        streams_drop(run);     /* a reader that doesn't read must not hold the end up */
        run_set_timer(run, 1); /* long past: the loop takes a step */
    }
    return 0;
}

int hutch_run_finish(struct hutch_run *run, struct hutch_result **ret_result,
                     struct hutch_error *err)
{
    if (run == NULL)
        return no_run(err);
    if (run->state != RUN_DONE || run->result == NULL)
        return error_set(err, HUTCH_STAGE_RESULT, EAGAIN,
                         "there is no result (any more): hutch_run_step() must have returned 1, "
                         "and a result is handed out once");
    *ret_result = take_ptr(run->result);
    return 0;
}

void hutch_run_free(struct hutch_run *run)
{
    if (run == NULL)
        return;
    run_teardown(run);
    close_fd(&run->pidfd);
    close_fd(&run->control_fd);
    close_fd(&run->epoll_fd);
    close_fd(&run->timer_fd);
    close_fd(&run->work_fd);
    close_fd(&run->stdin_fd);
    close_fd(&run->outputs[0].fd);
    close_fd(&run->outputs[1].fd);
    close_fd(&run->result_fd);
    buf_free(&run->document);
    host_facts_free(&run->host);
    hutch_result_free(run->result);
    free(run);
}

void hutch_run_leave(struct hutch_run *run)
{
    /* Init has reported and exits by itself; a cgroup is a directory that must be removed. */
    if (run != NULL && run->init_ended && run->cgroup.dir_fd < 0)
        run->is_dead = true;
    hutch_run_free(run);
}

/* ---- the simple form ------------------------------------------------------------------------- */

static int wait_for(struct hutch_run *run, struct hutch_error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = run->epoll_fd, .events = POLLIN};
        int r = run_step(run, err);
        if (r != 0)
            return r < 0 ? r : 0;
        (void)poll(&fd, 1, -1);
    }
}

static int run_to_end(const struct hutch_request *request, enum plan_purpose purpose,
                      struct hutch_result **ret_result, struct hutch_error *err)
{
    struct hutch_run *run = NULL;
    int r = start_for(request, purpose, &run, err);

    if (r == 0)
        r = wait_for(run, err);
    if (r == 0)
        r = hutch_run_finish(run, ret_result, err);
    hutch_run_free(run);
    return r;
}

int hutch_run(const struct hutch_request *request, struct hutch_result **ret_result,
              struct hutch_error *err)
{
    return run_to_end(request, purpose_of(request), ret_result, err);
}

int hutch_exec(const struct hutch_request *request, struct hutch_result **ret_result,
               struct hutch_error *err)
{
    if (request != NULL && request->verb != HUTCH_VERB_EXEC)
        return error_request(err, "hutch_exec() takes a request made with HUTCH_VERB_EXEC");
    return run_to_end(request, PLAN_EXEC, ret_result, err);
}

int hutch_validate(const struct hutch_request *request, struct hutch_result **ret_result,
                   struct hutch_error *err)
{
    if (request != NULL && request->verb != HUTCH_VERB_EXEC)
        return error_request(err, "hutch_validate() takes a request made with HUTCH_VERB_EXEC");
    return run_to_end(request, PLAN_VALIDATE, ret_result, err);
}

int hutch_plan(const struct hutch_request *request, char **ret_json, size_t *ret_len,
               struct hutch_error *err)
{
    _cleanup_host_facts_ struct host_facts host;
    _cleanup_buf_ struct buf block = BUF(0);
    _cleanup_buf_ struct buf json = BUF(0);
    int r;

    host_facts_init(&host);
    if (request == NULL)
        return error_request(err, "no request was given");
    r = request_check(request, err);
    if (r == 0)
        r = run_prepare_plan(request, purpose_of(request), &host, &block, err);
    if (r == 0)
        r = plan_json(request, block.data, block.len, &json, err);
    if (r < 0)
        return r;
    *ret_json = buf_take(&json, ret_len);
    return *ret_json != NULL ? 0 : error_oom(err, HUTCH_STAGE_PLAN);
}
