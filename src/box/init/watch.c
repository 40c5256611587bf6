/*
 * watch.c - how much the box uses, where no cgroup counts it.
 *
 * What is added up: for every process RssAnon + VmSwap + VmPTE of /proc/PID/status (pages of files
 * are the host's or the tmpfs's), what the box's tmpfs holds, what the kernel needs for memory
 * maps, and, beyond a few, what sockets can hold. Pages that processes share since a fork count
 * once for each there; only when that sum passes the limit, and no process alone does, is the
 * second thread asked for the exact one (watch_exact.c). It may be kept waiting by the box: without
 * an answer in time the first sum stands. What would be memory of none of these (memfds, System V
 * segments, shared anonymous maps) is refused by the watchdog variant of every profile.
 */
#include "box/init/init.h"
#include "box/init/watch_proc.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>

#define NS_PER_MS 1000000LL

struct fs_stat { /* struct statfs of x86-64 */
    int64_t type, block_size;
    uint64_t blocks, blocks_free;
    int64_t rest[11];
};

int watch_wanted(const struct init *init)
{
    return init->steps.plan->memory_bytes != 0 || init->steps.plan->cpu_time_ms != 0;
}

static uint64_t tmpfs_bytes(const struct init *init)
{
    struct fs_stat st = {0};

    if (sys_call(__NR_fstatfs, init->steps.data_fd, &st) < 0)
        return 0;
    return (st.blocks - st.blocks_free) * (uint64_t)st.block_size;
}

/* A socket's buffers are in no process's numbers. The kernel lets one more message in when a
 * buffer isn't full yet, so twice its size is what a socket can hold: some 340 KiB were measured at
 * the usual 212,992 bytes. step_socket_buffers() keeps TCP below that. The first ones are free:
 * every program has a few, and they are mostly empty. */
#define USUAL_SOCKET_BUFFER 212992U /* net.core.wmem_default and rmem_default */
#define FREE_SOCKETS_BYTES (32U << 20)

#define SYS_AF_UNIX 1
#define SYS_SOCK_DGRAM 2
#define SYS_SOL_SOCKET 1
#define SYS_SO_SNDBUF 7
#define SYS_SO_RCVBUF 8

static unsigned buffer_size(long fd, int which)
{
    unsigned size = 0, len = sizeof(size);

    (void)sys_call(__NR_getsockopt, fd, SYS_SOL_SOCKET, which, &size, &len);
    return size;
}

/* The defaults are the host's, and can't be seen in a network namespace but by a socket. */
static void weigh_socket(struct init *init)
{
    long fd = sys_call(__NR_socket, SYS_AF_UNIX, SYS_SOCK_DGRAM | O_CLOEXEC, 0);
    unsigned size = USUAL_SOCKET_BUFFER;

    for (int which = SYS_SO_SNDBUF; fd >= 0 && which <= SYS_SO_RCVBUF; which++)
        if (buffer_size(fd, which) > size)
            size = buffer_size(fd, which);
    sys_close((int)fd);
    init->socket_bytes = 2 * (uint64_t)size;
}

int watch_open(struct init *init)
{
    init->proc_fd = -1;
    if (!watch_wanted(init))
        return 0;
    weigh_socket(init);
    init->steps.object = "/proc of the box";
    init->proc_fd =
        (int)step_call(__NR_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (init->proc_fd < 0)
        return init->proc_fd;
    return init->steps.plan->memory_bytes != 0 ? exact_open(init) : 0;
}

static uint64_t socket_bytes(const struct init *init)
{
    char buf[512];
    uint64_t bytes;

    if (!plan_has(&init->steps, LAYER_NET_NS))
        return 0; /* whose sockets they are isn't told */
    if (proc_read(init->proc_fd, "self", "net/sockstat", buf, sizeof(buf)) <= 0)
        return 0;
    bytes = proc_field(buf, "sockets: used") * init->socket_bytes;
    return bytes > FREE_SOCKETS_BYTES ? bytes - FREE_SOCKETS_BYTES : 0;
}

static uint64_t reaped_cpu_us(void)
{
    struct {
        int64_t user_s, user_us, system_s, system_us, rest[14];
    } usage = {0};

    (void)sys_call(__NR_getrusage, -1, &usage);
    return (uint64_t)((usage.user_s + usage.system_s) * 1000000 + usage.user_us + usage.system_us);
}

/* Many allocators at once outran the sampler six times over the limit, because it waited for its
 * turn among them; at nice 19 they gave way. Only when it matters: below that a box runs at the
 * priority of its caller, or a busy machine would starve it. */
#define HURRY_PROCESSES 4U

static int is_in_hurry(const struct init *init, const struct watch_sample *sample)
{
    const struct plan_header *p = init->steps.plan;

    return p->nice != 0 && p->memory_bytes != 0 &&
           (sample->memory_bytes > p->memory_bytes / 4 || sample->processes >= HURRY_PROCESSES);
}

/* Children that nobody waits for (SIGCHLD ignored) take what they used along: the sum drops, and
 * what was seen of it is kept. */
static uint64_t keep_cpu(struct init *init, uint64_t raw_us)
{
    if (raw_us < init->cpu_raw_us)
        init->cpu_gone_us += init->cpu_raw_us - raw_us;
    init->cpu_raw_us = raw_us;
    return raw_us + init->cpu_gone_us;
}

/* A child has its parent's nice value, and nobody can lower one: it takes few rounds. */
static int is_time_to_renice(const struct init *init)
{
    return init->hurried != 0 && (init->hurried <= 4 || init->hurried % 16 == 0);
}

struct round {
    struct init *init;
    struct watch_sample *sample;
};

static void add_process(void *arg, const char *pid)
{
    const struct round *round = arg;
    struct init *init = round->init;
    struct watch_sample *sample = round->sample;
    const uint64_t number = proc_number(pid);
    struct proc_entry entry;
    uint64_t bytes;

    if (!proc_find(init->proc_fd, pid, &entry))
        return; /* ended meanwhile */
    sample->pids += proc_field(entry.status, "Threads:");
    sample->processes++;
    if (is_time_to_renice(init))
        proc_renice(init->proc_fd, pid, init->steps.plan->nice);
    bytes = proc_rough_bytes(init->proc_fd, &entry);
    sample->memory_bytes += bytes;
    if (number <= init->doubt.highest_pid)
        sample->older_bytes += bytes;
    if (number > sample->highest_pid)
        sample->highest_pid = number;
    if (bytes > sample->largest_bytes)
        sample->largest_bytes = bytes;
    if (init->steps.plan->cpu_time_ms != 0)
        sample->cpu_us += proc_cpu_us(init->proc_fd, pid);
}

/* What the largest process has is there, however much of it others share; how much of the rest is
 * theirs alone is in doubt. */
static void settle(struct init *init, uint64_t rest, struct watch_sample *sample)
{
    const uint64_t limit = init->steps.plan->memory_bytes;
    const uint64_t least = rest + sample->largest_bytes;

    if (sample->memory_bytes <= limit)
        doubt_is_over(init);
    else if (least > limit)
        sample->memory_bytes = least;
    else
        doubt_settle(init, rest, sample);
}

void watch_sample(struct init *init, struct watch_sample *ret_sample)
{
    const uint64_t rest = tmpfs_bytes(init) + socket_bytes(init) + exact_maps_bytes(init);
    struct watch_sample sample = {.memory_bytes = rest, .cpu_us = reaped_cpu_us()};
    struct round round = {init, &sample};

    doubt_before_round(init);
    proc_each(init->proc_fd, add_process, &round);
    init->hurried = is_in_hurry(init, &sample) ? init->hurried + 1 : 0;
    if (init->steps.plan->memory_bytes != 0)
        settle(init, rest, &sample);
    sample.cpu_us = keep_cpu(init, sample.cpu_us);
    *ret_sample = sample;
}

/* A few cores fault in up to 8 GB a second; the next look comes before that could pass the limit,
 * but not more often than every millisecond nor less often than every 20. */
#define FILL_BYTES_PER_MS 8000000ULL

int64_t watch_interval_ns(const struct init *init, const struct watch_sample *sample)
{
    const uint64_t limit = init->steps.plan->memory_bytes;
    uint64_t ms = 20;

    if (limit != 0)
        ms = limit > sample->memory_bytes ? (limit - sample->memory_bytes) / FILL_BYTES_PER_MS : 1;
    return (int64_t)(ms < 1 || sample->undecided ? 1 : ms > 20 ? 20 : ms) * NS_PER_MS;
}
