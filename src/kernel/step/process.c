/* process.c - what the box's processes see and may use of the machine, apart from files. */
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <linux/time.h>

#define SOCK_DGRAM_CLOEXEC (2 | 02000000)
#define SYS_AF_INET 2
#define INTERFACE_UP 1 /* IFF_UP */

/* struct ifreq, which <linux/if.h> gives only together with libc's headers. */
struct interface_request {
    char name[16];
    int16_t flags;
    char rest[22];
};

/* "monotonic -S 0\n": the box's clock then starts at nought. Whole seconds, so that the clock
 * never becomes negative (the kernel would answer ERANGE). */
static void add_offset(char *buf, size_t cap, size_t *len, const char *name, int clock)
{
    struct __kernel_timespec now = {0};

    (void)sys_call(__NR_clock_gettime, clock, &now);
    text_add(buf, cap, len, name);
    text_add(buf, cap, len, " -");
    text_add_number(buf, cap, len, (uint64_t)now.tv_sec);
    text_add(buf, cap, len, " 0\n");
}

/* unshare() leaves us outside, and only our children are in it. Linux before 6.3 then refuses us a
 * thread. */
static int enter_time_namespace(struct step_state *s)
{
    long fd, r;

    s->object = "/proc/self/ns/time_for_children";
    fd = step_call(__NR_openat, AT_FDCWD, "/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC,
                   0);
    if (fd < 0)
        return (int)fd;
    r = step_call(__NR_setns, fd, CLONE_NEWTIME);
    sys_close((int)fd);
    return (int)r;
}

static int time_namespace(struct step_state *s)
{
    char offsets[96];
    size_t len = 0;
    long r;

    s->object = "time namespace";
    r = step_call(__NR_unshare, CLONE_NEWTIME);
    if (r < 0)
        return (int)r;
    s->object = "/proc/self/timens_offsets";
    add_offset(offsets, sizeof(offsets), &len, "monotonic", CLOCK_MONOTONIC);
    add_offset(offsets, sizeof(offsets), &len, "boottime", CLOCK_BOOTTIME);
    r = text_write_file(AT_FDCWD, "/proc/self/timens_offsets", offsets);
    return r < 0 ? (int)r : enter_time_namespace(s);
}

/* Must: come before the first fork and before the ids change (/proc/self is root's afterwards).
 * Init's own clocks change, so it must have taken no time before. Hides when the machine was
 * booted. */
int step_time_namespace(struct step_state *s)
{
    if (!plan_has(s, LAYER_TIME_NS))
        return 0;
    return step_optional(s, LAYER_TIME_NS, time_namespace(s));
}

/* Must: come after the go-ahead, when the box is in its cgroup: what is above it is then out of
 * sight. */
int step_cgroup_namespace(struct step_state *s)
{
    if (!plan_has(s, LAYER_CGROUP_NS))
        return 0;
    s->object = "cgroup namespace";
    return step_optional(s, LAYER_CGROUP_NS, (int)step_call(__NR_unshare, CLONE_NEWCGROUP));
}

/* Must: come before the ids change. When the whole machine runs out of memory, a box goes first.
 * In root mode the host has written it, which the box can't undo. */
int step_oom_score(struct step_state *s)
{
    if (s->plan->mode == PLAN_MODE_ROOT)
        return 0;
    s->object = "/proc/self/oom_score_adj";
    return text_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
}

/* Must: come before any code of the box runs: nobody in it may open init's memory or fds. */
int step_non_dumpable(struct step_state *s)
{
    s->object = "PR_SET_DUMPABLE";
    return (int)step_call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int step_host_name(struct step_state *s)
{
    const char *name = plan_text(s, s->plan->hostname);

    if (!plan_has(s, LAYER_UTS_NS))
        return 0; /* mustn't: rename the host */
    s->object = "host name";
    return (int)step_call(__NR_sethostname, name, text_len(name));
}

/* Must: act only in a network namespace of our own. */
int step_loopback(struct step_state *s)
{
    struct interface_request request = {.name = "lo", .flags = INTERFACE_UP};
    long fd, r;

    if (!plan_has(s, LAYER_NET_NS))
        return 0;
    s->object = "loopback interface";
    fd = step_call(__NR_socket, SYS_AF_INET, SOCK_DGRAM_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    r = step_call(__NR_ioctl, fd, SIOCSIFFLAGS, &request);
    sys_close((int)fd);
    return (int)r;
}

/* Must: come after our procfs is there and before /proc/sys becomes read-only. What a connection
 * holds is in no process's numbers, and the kernel lets it grow to 4 MiB one way and 32 MiB the
 * other; this leaves it about what any other socket has. Mustn't: act in a network namespace that
 * isn't ours, or where a cgroup counts. */
int step_socket_buffers(struct step_state *s)
{
    int r;

    if (s->plan->memory_bytes == 0 || !plan_has(s, LAYER_NET_NS))
        return 0;
    s->object = "/proc/sys/net/ipv4/tcp_wmem";
    r = text_write_file(s->root_fd, "proc/sys/net/ipv4/tcp_wmem", "4096 16384 131072");
    if (r < 0)
        return r;
    s->object = "/proc/sys/net/ipv4/tcp_rmem";
    return text_write_file(s->root_fd, "proc/sys/net/ipv4/tcp_rmem", "4096 131072 131072");
}

struct rlimit_pair {
    uint64_t soft, hard;
};

static int lower(uint32_t resource, uint64_t value, uint32_t exact)
{
    struct rlimit_pair now, want;
    long r = step_call(__NR_prlimit64, 0, resource, 0, &now);

    if (r < 0)
        return (int)r;
    want.hard = now.hard < value ? now.hard : value;
    want.soft = (!exact && now.soft < want.hard) ? now.soft : want.hard;
    return (int)step_call(__NR_prlimit64, 0, resource, &want, 0);
}

/* Must: only lower, and act on the program's process alone: a sampler that runs for hours must not
 * use up the program's CPU time. The limit of core files is the exception and exactly 1: 0 would
 * start a piped core handler, which runs as the host's root (core(5)). */
int step_rlimits(struct step_state *s)
{
    const struct plan_rlimit *limits = plan_at(s, s->plan->rlimits.offset);

    s->object = "resource limits";
    for (uint32_t i = 0; i < s->plan->rlimits.count; i++) {
        int r = lower(limits[i].resource, limits[i].value, limits[i].exact);
        if (r < 0)
            return r;
    }
    return 0;
}
