/*
 * main.c - the way of a box's first process.
 *
 * The host has put everything at fixed fd numbers (plan/wire.h). The plan is data only, mapped
 * privately, checked once. The go-ahead is one byte on the control socket: by then, in root
 * mode, the host has written the id maps. No byte, an end of file or a bad plan: exit, and the
 * kernel takes the namespaces down.
 */
#include "box/init/init.h"
#include "kernel/step/sys.h"

#include <linux/mman.h>
#include <linux/poll.h>

#define SYS_EINVAL 22
#define SIGCHLD_NUMBER 17
#define PROT_READ_WRITE 3

void init_main(void) __attribute__((noreturn));

#ifdef HUTCH_TESTING
extern int step_fault_countdown;
#endif

static int map_plan(struct step_state *s)
{
    long size = sys_call(__NR_lseek, PLAN_FD_PLAN, 0, 2 /* SEEK_END */);
    long block;

    s->object = "plan";
    if (size <= 0 || size > (long)PLAN_MAX_BYTES)
        return -SYS_EINVAL;
    /* Private and writable: offsets of argv and env become pointers in place. */
    block = sys_call(__NR_mmap, 0, size, PROT_READ_WRITE, MAP_PRIVATE, PLAN_FD_PLAN, 0);
    if (block < 0 && block > -4096)
        return (int)block;
    s->block = (const char *)block;
    s->plan = (const struct plan_header *)block;
    return plan_check(s->block, (size_t)size);
}

/* A forked copy of the host can keep the socket open after it: hence the pidfd. */
static int wait_for_go(void)
{
    struct poll_fd fds[] = {{PLAN_FD_CONTROL, POLLIN, 0}, {PLAN_FD_HOST, POLLIN, 0}};
    char go = 0;

    while (fds[0].revents == 0) {
        if (fds[1].revents != 0)
            return -1;
        (void)sys_call(__NR_ppoll, fds, 2, 0, 0, 0);
    }
    return sys_call(__NR_read, PLAN_FD_CONTROL, &go, 1) == 1 ? 0 : -1;
}

/* A host that ignores SIGCHLD hands that down through the exec. Children would then vanish
 * unseen, and the box would stand until its wall limit. */
static void hear_of_children(void)
{
    const uint64_t standard[4] = {0}; /* struct sigaction: SIG_DFL */

    (void)sys_call(__NR_rt_sigaction, SIGCHLD_NUMBER, standard, 0, sizeof(uint64_t));
}

static void prepare(struct init *init)
{
    struct step_state *s = &init->steps;

    for (unsigned i = 0; i < PLAN_SOURCES_MAX; i++)
        s->source_fds[i] = -1;
    s->scratch_fd = s->tree_fd = s->root_fd = s->data_fd = s->work_fd = -1;
    s->missing = report_missing;
}

void init_main(void)
{
    struct init init = {0};
    int r;

    hear_of_children();
    prepare(&init);
    r = map_plan(&init.steps);
    if (r < 0) {
        report_failed(&init.steps, PLAN_STEP_read_plan, -r);
        init_exit(1);
    }
    sys_close(PLAN_FD_PLAN);
    if (wait_for_go() < 0)
        init_exit(1);
#ifdef HUTCH_TESTING
    step_fault_countdown = (int)init.steps.plan->fault_call - 1;
#endif
    if (init_build(&init) < 0 || init_guard(&init) < 0 || exact_start(&init) < 0 ||
        init_hear_program(&init) < 0)
        init_exit(1);
    init_loop(&init);
}
