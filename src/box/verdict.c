/*
 * verdict.c - how a run ended, in what order the causes count, and what was really on.
 *
 * Only the kernel is asked: the wait status that init passed on, the cgroup's counters, and which
 * of our own kills came first. What the box wrote is data: an exec's document decides about its
 * value, never about why the program ended.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "box/document.h"
#include "box/run.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* False: the cgroup has no such number. */
static bool take_if_known(uint64_t *number, uint64_t counted)
{
    if (counted == CGROUP_UNKNOWN)
        return false;
    *number = counted;
    return true;
}

static bool was_oom_killed(const struct cgroup_usage *counted)
{
    return counted->oom_kills != CGROUP_UNKNOWN && counted->oom_kills > 0;
}

/* The kernel's OOM killer also comes for the whole machine, or for a cgroup above the box. */
static bool reached_own_limit(const struct cgroup_usage *counted)
{
    return counted->memory_max_events != 0;
}

/* Only numbers of the cgroup's make `usage` one that isn't sampled. */
static void usage_of_cgroup(struct hutch_run *run, const struct cgroup_usage *counted)
{
    const uint64_t init_threads = run->host.facts.cgroup_memory ? 1 : 2;
    struct usage *usage = &run->result->usage;
    bool all = take_if_known(&usage->cpu_us, counted->cpu_usec);

    /* Before 5.19 there is no peak, but memory.max was reached. */
    if (was_oom_killed(counted) && reached_own_limit(counted))
        usage->memory_peak_bytes = run->request->limits.memory_bytes;
    all = take_if_known(&usage->memory_peak_bytes, counted->memory_peak_bytes) && all;
    all = take_if_known(&usage->pids_peak, counted->pids_peak) && all;
    if (counted->pids_peak != CGROUP_UNKNOWN)
        usage->pids_peak = larger(counted->pids_peak, init_threads + 1) - init_threads;
    all = take_if_known(&usage->pids_denied, counted->pids_denied) && all;
    usage->sampled = !all;
}

static void conclude_usage(struct hutch_run *run, struct cgroup_usage *ret_counted)
{
    struct usage *usage = &run->result->usage;
    const int64_t now = run_now_ns();
    bool counted = run->cgroup.dir_fd >= 0 && cgroup_usage(&run->cgroup, ret_counted, NULL) == 0;

    usage->wall_us = run->running_ns != 0 ? (uint64_t)(now - run->running_ns) / 1000 : 0;
    run->result->duration_us = (uint64_t)(now - run->started_ns) / 1000;
    usage->cpu_us = run->end.cpu_us;
    usage->memory_peak_bytes = run->end.memory_peak_bytes;
    usage->pids_peak = run->end.pids_peak;
    usage->sampled = true;
    if (!counted) {
        *ret_counted = (struct cgroup_usage){0};
        return;
    }
    usage_of_cgroup(run, ret_counted);
}

static void ended_by_oom_kill(struct hutch_run *run, const struct cgroup_usage *counted)
{
    if (reached_own_limit(counted))
        run->result->reason = REASON_MEMORY;
    else
        result_fail(
            run->result, REASON_MEMORY,
            "memory ran out around the box (the machine's, or a cgroup's above it), and the "
            "kernel killed a process of it; its own limit was not reached");
}

/* A limit that was hit is the cause, whatever the program then made of it. */
static bool ended_by_limit(struct hutch_run *run, const struct cgroup_usage *counted)
{
    struct hutch_result *result = run->result;

    if (run->ended_by == RUN_BY_OUTPUT)
        result->reason = REASON_OUTPUT;
    else if (was_oom_killed(counted))
        ended_by_oom_kill(run, counted);
    else if (run->end.ended_by == INIT_ENDED_MEMORY)
        result->reason = REASON_MEMORY;
    else if (run->ended_by == RUN_BY_CPU || run->end.ended_by == INIT_ENDED_CPU)
        result->reason = REASON_CPU_TIME;
    else if (run->ended_by == RUN_BY_WALL || run->end.ended_by == INIT_ENDED_WALL)
        result->reason = REASON_TIMEOUT;
    else
        return false;
    return true;
}

/* The last resort against CPU time, RLIMIT_CPU, sends SIGXCPU; so can the program. */
static bool used_up_cpu_time(const struct hutch_run *run)
{
    const uint64_t limit_ms = run->request->limits.cpu_time_ms;

    return limit_ms != 0 && run->result->usage.cpu_us >= limit_ms * 1000;
}

static void signalled(struct hutch_run *run, int signal)
{
    struct hutch_result *result = run->result;

    result->signal = signal;
    if (signal == SIGSYS && run->host.facts.seccomp_kills)
        result->reason = REASON_SYSCALL;
    else if (signal == SIGXCPU && used_up_cpu_time(run))
        result->reason = REASON_CPU_TIME;
    else
        result->reason = REASON_SIGNAL;
}

static void ended_by_itself(struct hutch_run *run)
{
    const int status = run->end.status;

    if (!run->init_ended) /* init is gone without a word: somebody outside killed it, or we did */
        signalled(run, SIGKILL);
    else if (WIFSIGNALED(status))
        signalled(run, WTERMSIG(status));
    else {
        run->result->reason = REASON_EXIT;
        run->result->exit_code = WEXITSTATUS(status);
    }
}

/* ---- exec ------------------------------------------------------------------------------------ */

static int take_value(struct hutch_result *result, const struct document *document,
                      struct hutch_error *err)
{
    result->value = json_raw(document->value);
    result->value_len = document->value.len;
    result->reason = REASON_EXIT;
    return result->value != NULL ? 0 : error_oom(err, HUTCH_STAGE_RESULT);
}

static int take_document(struct hutch_run *run, struct hutch_error *err)
{
    _cleanup_document_ struct document document = {0};
    struct hutch_error why = {0};
    int r = document_parse(run->document.data, run->document.len, &document, &why);

    if (r == -ENOMEM)
        return error_oom(err, HUTCH_STAGE_RESULT);
    if (r < 0) {
        result_fail(run->result, REASON_PROTOCOL, "%s", why.message);
        return 0;
    }
    if (document.ok)
        return take_value(run->result, &document, err);
    result_fail(run->result, document.kind == DOCUMENT_INVALID ? REASON_INVALID : REASON_EXIT, "%s",
                document.error);
    return 0;
}

/* A whole document is the answer. Without one a program that just ended has left no result. */
static int conclude_document(struct hutch_run *run, struct hutch_error *err)
{
    if (run->answered)
        return take_document(run, err);
    if (run->result->reason != REASON_EXIT)
        return 0;
    if (run->document.len > 0)
        return take_document(run, err);
    result_fail(run->result, REASON_NO_RESULT,
                "the code ended without a result (its process exited with status %d)",
                run->result->exit_code);
    return 0;
}

/* ---- what was on ----------------------------------------------------------------------------- */

static const char *kept_by(bool cgroup, const char *otherwise)
{
    return cgroup ? "cgroup" : otherwise;
}

static void receipt_limit(struct hutch_run *run, enum layer layer, bool cgroup,
                          const char *otherwise)
{
    if (cgroup)
        receipt_on(&run->result->receipt, layer, "cgroup");
    else
        receipt_missing(&run->result->receipt, layer, kept_by(false, otherwise), "%s",
                        run->cgroup_cause);
}

static void receipt_namespaces(struct hutch_run *run)
{
    struct receipt *receipt = &run->result->receipt;

    for (enum layer layer = LAYER_USER_NS; layer <= LAYER_LANDLOCK; layer++) {
        if (receipt->layers[layer].how != NULL)
            continue; /* init has said that it is missing */
        if (run->host.facts.layers & LAYER_BIT(layer))
            receipt_on(receipt, layer, "on");
        else
            receipt_missing(receipt, layer, "off", "%s", run->namespace_cause);
    }
}

static void receipt_notes(struct hutch_run *run)
{
    struct receipt *receipt = &run->result->receipt;

    if (run->host.facts.keeps_groups)
        receipt_note(receipt, "the caller's supplementary groups stay with the program: without "
                              "root they can't be dropped");
    if (run->host.facts.core_socket)
        receipt_note(receipt, "kernel.core_pattern hands crashes to a socket of the host's, which "
                              "no limit of a box keeps from seeing them");
    if (run->request->agent_id != NULL)
        receipt_note(receipt, "agent_id was checked and has no effect without a session");
    if (run->request->dependencies.len > 0)
        receipt_note(receipt, "dependencies were checked and not installed: that needs a session");
}

/* Only for a box whose program was started: everything required was on by then. */
void run_receipt(struct hutch_run *run)
{
    const struct facts *f = &run->host.facts;
    bool any = f->cgroup_memory || f->cgroup_pids || f->cgroup_cpu;
    bool pinned = (run->request->limits.cpus_milli + 999) / 1000 < f->cpus;

    receipt_namespaces(run);
    if (any)
        receipt_on(&run->result->receipt, LAYER_CGROUP, "on");
    else
        receipt_missing(&run->result->receipt, LAYER_CGROUP, "off", "%s", run->cgroup_cause);
    receipt_limit(run, LAYER_MEMORY, f->cgroup_memory, "watchdog");
    receipt_limit(run, LAYER_PIDS, f->cgroup_pids, "rlimit");
    receipt_limit(run, LAYER_CPU, f->cgroup_cpu, pinned ? "affinity" : "off");
    receipt_notes(run);
    run->result->has_receipt = true;
}

/* ---- together -------------------------------------------------------------------------------- */

static int conclude_files(struct hutch_run *run, struct hutch_error *err)
{
    if (run->purpose != PLAN_RUN || !run->request->collect_files ||
        plan_work_is_bound(run->request))
        return 0;
    if (run->work_fd < 0) { /* there was no fd number left to receive it in */
        run->result->files.cut = true;
        return 0;
    }
    return collect_files(run->work_fd, run->request, &COLLECT_BOUNDS, &run->result->files, err);
}

/* No code of the caller's has run, so there is no receipt either. */
static void never_started(struct hutch_run *run, const struct cgroup_usage *counted)
{
    if (run->ended_by == RUN_BY_CANCEL)
        signalled(run, SIGKILL);
    else if (was_oom_killed(counted))
        result_fail(run->result, REASON_MEMORY,
                    "the memory limit of %llu bytes doesn't even hold the box: raise --memory",
                    (unsigned long long)run->request->limits.memory_bytes);
    else
        result_fail(run->result, REASON_SETUP, "init ended before it had built the box");
}

int run_conclude(struct hutch_run *run, struct hutch_error *err)
{
    struct cgroup_usage counted;
    int r;

    conclude_usage(run, &counted);
    if (run->result->reason == REASON_SETUP)
        return result_finish(run->result, err);
    if (run->running_ns == 0 && !run->init_ended) {
        never_started(run, &counted);
        return result_finish(run->result, err);
    }
    run_receipt(run);
    if (!ended_by_limit(run, &counted))
        ended_by_itself(run);
    r = run->purpose != PLAN_RUN ? conclude_document(run, err) : 0;
    if (r == 0)
        r = conclude_files(run, err);
    return r < 0 ? r : result_finish(run->result, err);
}

void run_fail(struct hutch_run *run, const struct hutch_error *why)
{
    result_fail(run->result, why->stage == HUTCH_STAGE_REQUEST ? REASON_REQUEST : REASON_SETUP,
                "%s", why->message);
    run->result->duration_us = (uint64_t)(run_now_ns() - run->started_ns) / 1000;
}
