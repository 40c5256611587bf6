/*
 * steps.c - the privileged steps of a box, each once, in order, stopping at the first failure.
 *
 * This list is the product: read it top to bottom. What each step must and mustn't do stands
 * above its function in kernel/step/. Leaving any one out makes a test fail (tests/escape).
 */
#include "box/init/init.h"
#include "kernel/step/sys.h"

#include <linux/close_range.h>
#include <linux/fcntl.h>

#ifdef HUTCH_TESTING
extern int step_fault_countdown;
#endif

struct step {
    int (*run)(struct step_state *s);
};

/* Must: come first. Whatever fds the host had that were not close-on-exec end here. */
static int step_close_fds(struct step_state *s)
{
    s->object = "file descriptors of the host";
    return (int)step_call(__NR_close_range, PLAN_FD_SOURCES + s->plan->host_sources, ~0U, 0);
}

static int step_guard_capabilities(struct step_state *s)
{
    int r = step_drop_bounding(s);

    if (r == 0)
        r = step_lock_securebits(s);
    if (r == 0)
        r = step_drop_capabilities(s);
    return r == 0 ? step_no_new_privs(s) : r;
}

static int step_guard_filter(struct step_state *s)
{
    s->object = "init's own seccomp filter";
    return step_install_filter(s, s->plan->init_seccomp);
}

#define STEP_ROW(name) [PLAN_STEP_##name] = {step_##name},
static const struct step STEPS[] = {PLAN_INIT_STEPS(STEP_ROW) PLAN_PROGRAM_STEPS(STEP_ROW)
                                        PLAN_GUARD_STEPS(STEP_ROW)};

#define STEP_FIRST_INIT PLAN_STEP_close_fds
#define STEP_FIRST_PROGRAM PLAN_STEP_signals
#define STEP_FIRST_GUARD PLAN_STEP_guard_capabilities
#define STEP_END PLAN_STEP_read_plan

static int left_out(const struct step_state *s, unsigned step)
{
#ifdef HUTCH_TESTING
    return (s->plan->skip_steps >> step) & 1;
#else
    (void)s;
    (void)step;
    return 0;
#endif
}

/* Runs [first, end); on failure *ret_failed says which step it was. */
static int run_steps(struct step_state *s, unsigned first, unsigned end, unsigned *ret_failed)
{
    for (unsigned i = first; i < end; i++) {
        int r = left_out(s, i) ? 0 : STEPS[i].run(s);
        if (r < 0) {
            *ret_failed = i;
            return r;
        }
    }
    return 0;
}

/* The test build says so when the call that was to fail was never reached. */
static void tell_no_fault(int told)
{
#ifdef HUTCH_TESTING
    const struct init_message message = {.kind = INIT_MESSAGE_NO_FAULT};

    if (step_fault_countdown >= 0)
        (void)sys_call(__NR_write, told, &message, sizeof(message));
#else
    (void)told;
#endif
}

/* In the program's process: its steps and the exec. What fails goes into `told`, a pipe that
 * closes at the exec. */
static void become_program(struct init *init, int told)
{
    struct init_message message = {.kind = INIT_MESSAGE_FAILED};
    struct step_state *s = &init->steps;
    unsigned failed = PLAN_STEP_fork;
    size_t len = 0;
    int r = run_steps(s, STEP_FIRST_PROGRAM, STEP_FIRST_GUARD, &failed);

    if (r == 0) {
        tell_no_fault(told);
        r = step_exec(s);
        message.kind = INIT_MESSAGE_NO_EXEC;
    }
    message.step = failed;
    message.error = -r;
    text_add(message.text, sizeof(message.text), &len, s->object);
    (void)sys_call(__NR_write, told, &message, sizeof(message));
    init_exit(127);
}

/* The program's ends of the pipes: the host must see their end when the box's last holder is
 * gone, and that must not be us. Where there is no result fd, its number is one of ours. */
static void close_program_fds(const struct init *init)
{
    for (int fd = PLAN_FD_STDIN; fd < PLAN_FD_RESULT; fd++)
        sys_close(fd);
    if (init->steps.plan->flags & PLAN_FLAG_RESULT_FD)
        sys_close(PLAN_FD_RESULT);
}

#define CLONE_VFORK_SIGCHLD (0x4000 | 17)

/* Init stands still until the program's exec (vfork, but with memory of its own): the program's
 * steps are what everybody waits for, and beside them init would only be in their way. */
static int start_program(struct init *init)
{
    int told[2];
    long r;

    init->steps.object = "pipe of the program's process";
    r = step_call(__NR_pipe2, told, O_CLOEXEC);
    if (r < 0)
        return (int)r;
    init->steps.object = "process of the program";
    r = step_call(__NR_clone, CLONE_VFORK_SIGCHLD, 0, 0, 0, 0);
    if (r < 0)
        return (int)r;
    if (r == 0)
        become_program(init, told[1]);
    init->program_pid = (int)r;
    init->told_pipe = told[0];
    sys_close(told[1]);
    close_program_fds(init);
    return 0;
}

/* Before the program: without it the host would collect nothing. */
static int send_work(struct init *init)
{
    const struct init_message message = {.kind = INIT_MESSAGE_WORK};
    int r;

    init->steps.object = "fd of /work for the host";
    r = report_message(&message, init->steps.work_fd);
    return r < 0 ? r : 0;
}

int init_build(struct init *init)
{
    unsigned failed = PLAN_STEP_fork;
    int r = run_steps(&init->steps, STEP_FIRST_INIT, STEP_FIRST_PROGRAM, &failed);

    if (r == 0) {
        failed = PLAN_STEP_fork;
        r = watch_open(init); /* needs /proc before the filter */
    }
    if (r == 0)
        r = send_work(init);
    if (r == 0)
        r = start_program(init);
    if (r < 0)
        report_failed(&init->steps, failed, -r);
    return r;
}

/* The first thing once the program is executed, before anything that it does is looked at. */
int init_guard(struct init *init)
{
    unsigned failed = PLAN_STEP_guard_filter;
    int r = run_steps(&init->steps, STEP_FIRST_GUARD, STEP_END, &failed);

    if (r < 0)
        report_failed(&init->steps, failed, -r);
    return r;
}

/* The pipe: its end without a byte says that the program runs. */
int init_hear_program(struct init *init)
{
    struct init_message message = {0};
    long n;

    while ((n = sys_call(__NR_read, init->told_pipe, &message, sizeof(message))) ==
           (long)sizeof(message)) {
        (void)report_message(&message, -1);
        if (message.kind != INIT_MESSAGE_NO_FAULT) /* the test build only */
            return -1;
    }
    sys_close(init->told_pipe);
    message.kind = INIT_MESSAGE_STARTED;
    (void)report_message(&message, -1);
    return 0;
}
