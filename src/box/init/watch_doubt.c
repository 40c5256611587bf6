/*
 * watch_doubt.c - what the box holds when the rough sum is above its limit, and may only be so
 * because processes share pages since a fork.
 *
 * The second thread is asked for the exact sum (watch_exact.c), and may be kept waiting by the box.
 * Meanwhile the first thread looks at what the box does, by numbers that nobody can hold up: how
 * far the rough sum grows, how many pages were faulted in (a write to a page that was shared makes
 * a page more, and the rough sum the same), and the processor time. When the box could have got too
 * far above its limit before there is an answer, the rough sum stands. A box that sleeps, or that
 * has a busy machine against it, isn't hurried: its time counts and not the clock's.
 */
#include "box/init/init.h"
#include "box/init/watch_proc.h"
#include "kernel/step/sys.h"

#define PAGE_BYTES 4096U
#define NS_PER_MS 1000000LL
/* More than one CPU faults in at a time, huge pages included. */
#define FILL_BYTES_PER_MS 8000000ULL
#define ANSWER_MS 1

struct measure {
    const struct init *init;
    struct box_effort sum;
};

static void measure_process(void *arg, const char *pid)
{
    struct measure *measure = arg;

    measure->sum.fault_bytes += proc_faults(measure->init->proc_fd, pid) * PAGE_BYTES;
    measure->sum.run_ns += proc_run_ns(proc_number(pid));
}

/* Of a process that began after the question the rough sum says nothing: its pages came from its
 * parent. What it faulted in counts. */
static struct box_effort measure_box(const struct init *init, const struct watch_sample *sample)
{
    struct measure measure = {.init = init, .sum.rough_bytes = sample->older_bytes};

    proc_each(init->proc_fd, measure_process, &measure);
    return measure.sum;
}

static uint64_t grown(uint64_t *last, uint64_t now)
{
    const uint64_t by = now > *last ? now - *last : 0;

    *last = now;
    return by;
}

/* A process that ends takes its numbers along: what a sum falls by is nothing that was undone. */
static void add_effort(struct doubt *doubt, const struct box_effort *now)
{
    doubt->since.rough_bytes += grown(&doubt->last.rough_bytes, now->rough_bytes);
    doubt->since.fault_bytes += grown(&doubt->last.fault_bytes, now->fault_bytes);
    doubt->since.run_ns += grown(&doubt->last.run_ns, now->run_ns);
}

/* A box may get half its limit and 64 MiB above it, at worst; this leaves as much again for what is
 * seen late. Processor time is what can't be hidden from, and as it says little, may be more:
 * filling memory at a rate that no box was seen to keep up. */
static int is_too_late(const struct init *init)
{
    const uint64_t allowed = init->steps.plan->memory_bytes / 4 + (32U << 20);
    const struct box_effort *since = &init->doubt.since;

    return since->rough_bytes > allowed || since->fault_bytes > allowed ||
           since->run_ns > 16 * allowed / FILL_BYTES_PER_MS * NS_PER_MS;
}

/* The last answer holds until the box has had the time to fill what was left. */
static int still_holds(const struct init *init, uint64_t rest)
{
    const struct doubt *doubt = &init->doubt;
    const uint64_t filled = doubt->since.run_ns / NS_PER_MS * FILL_BYTES_PER_MS;

    return doubt->known_bytes != 0 &&
           rest + doubt->known_bytes + filled <= init->steps.plan->memory_bytes;
}

static void hear_answer(struct init *init, unsigned within_ms)
{
    struct doubt *doubt = &init->doubt;

    doubt->fresh = 0;
    if (!doubt->asked || !exact_answer(init, within_ms, &doubt->known_bytes))
        return;
    if (doubt->outdated)
        doubt->known_bytes = 0;
    doubt->fresh = !doubt->outdated;
    doubt->asked = doubt->outdated = 0;
}

/* The pid comes from the round that made the rough sum: a child that began since isn't in that. */
static void begin(struct doubt *doubt, const struct watch_sample *sample,
                  const struct box_effort *now)
{
    doubt->highest_pid = sample->highest_pid;
    doubt->last = *now;
    doubt->since = (struct box_effort){0};
    doubt->over = 0;
}

static void ask(struct init *init)
{
    init->doubt.asked = 1;
    exact_ask(init);
    hear_answer(init, ANSWER_MS);
}

/* How many of its pages are its own alone isn't known, but those of the largest are there. */
static uint64_t least_bytes(const struct doubt *doubt, const struct watch_sample *sample)
{
    return doubt->known_bytes > sample->largest_bytes ? doubt->known_bytes : sample->largest_bytes;
}

/* Above the limit, by no more than is known of it. */
static uint64_t bytes_when_late(const struct init *init, uint64_t least)
{
    const struct box_effort *since = &init->doubt.since;
    const uint64_t over = init->steps.plan->memory_bytes + 1;
    const uint64_t grown_to = least + since->rough_bytes;

    return grown_to > over ? grown_to : over;
}

void doubt_before_round(struct init *init)
{
    hear_answer(init, 0);
    if (!init->doubt.asked || init->doubt.over)
        init->doubt.highest_pid = ~0ULL; /* all that there are: what follows counts from here */
}

void doubt_settle(struct init *init, uint64_t rest, struct watch_sample *sample)
{
    struct doubt *doubt = &init->doubt;
    const uint64_t limit = init->steps.plan->memory_bytes;
    struct box_effort now;
    uint64_t least;

    if (doubt->fresh && rest + doubt->known_bytes > limit) {
        sample->memory_bytes = rest + doubt->known_bytes;
        return;
    }
    now = measure_box(init, sample);
    if (doubt->over)
        begin(doubt, sample, &now);
    add_effort(doubt, &now);
    if (!doubt->asked && !still_holds(init, rest)) {
        begin(doubt, sample, &now);
        ask(init);
    }
    least = rest + least_bytes(doubt, sample);
    sample->undecided = doubt->asked;
    sample->memory_bytes = sample->undecided && least > limit ? limit : least; /* an old answer */
    if (doubt->asked && is_too_late(init))
        sample->memory_bytes = bytes_when_late(init, least);
}

void doubt_is_over(struct init *init)
{
    struct doubt *doubt = &init->doubt;

    doubt->known_bytes = 0;
    doubt->outdated = doubt->asked;
    doubt->over = 1;
}
