/*
 * watch.c - how much the box uses, where no cgroup counts it.
 *
 * What is added up: for every process RssAnon + RssShmem + VmSwap + VmPTE of /proc/PID/status
 * (page tables count: one process hid 200 MiB in them; pages of read-only files are the host's),
 * and what the box's tmpfs holds. Shared pages count once per process there; only when that sum
 * passes the limit, and there are processes to share anything, is the exact Pss of smaps_rollup
 * read in its place. That is a walk of the page tables, which a process that fills them faster
 * than they are walked can make last: one with many of them counts as it is. Sockets beyond a few
 * count with what their buffers can hold. What is none of these (memfds, System V segments, shared
 * anonymous maps) is refused by the watchdog variant of every profile.
 */
#include "box/init/init.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/kcmp.h>

#define NS_PER_MS 1000000LL
#define PRIO_ONE_PROCESS 0
#define PAGE_BYTES 4096U
#define CLOCK_TICKS_US 10000U /* USER_HZ is 100 on x86-64 */

struct dir_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

struct fs_stat { /* struct statfs of x86-64 */
    int64_t type, block_size;
    uint64_t blocks, blocks_free;
    int64_t rest[11];
};

int watch_wanted(const struct init *init)
{
    return init->steps.plan->memory_bytes != 0 || init->steps.plan->cpu_time_ms != 0;
}

static long read_file(int dir, const char *pid, const char *file, char *buf, size_t cap)
{
    char path[48];
    size_t len = 0;
    long fd, n;

    text_add(path, sizeof(path), &len, pid);
    text_add(path, sizeof(path), &len, "/");
    text_add(path, sizeof(path), &len, file);
    fd = sys_call(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    n = sys_call(__NR_read, fd, buf, cap - 1);
    sys_close((int)fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

static uint64_t parse_number(const char *p)
{
    uint64_t value = 0;

    while (*p == ' ' || *p == '\t')
        p++;
    while (*p >= '0' && *p <= '9')
        value = value * 10 + (uint64_t)(*p++ - '0');
    return value;
}

static int starts_with(const char *text, const char *prefix)
{
    while (*prefix != '\0')
        if (*text++ != *prefix++)
            return 0;
    return 1;
}

/* The number after `key` at the start of a line; 0 if there is none. */
static uint64_t field(const char *text, const char *key)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((p == text || p[-1] == '\n') && starts_with(p, key))
            return parse_number(p + text_len(key));
    return 0;
}

static uint64_t four_numbers(const char *p)
{
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += parse_number(p);
        while (*p == ' ')
            p++;
        while (*p != '\0' && *p != ' ')
            p++;
    }
    return sum;
}

/* utime, stime, and cutime, cstime for the children that it has waited for: fields 14 to 17,
 * counted from the last ')' because a name may hold anything. */
static uint64_t process_cpu_us(int dir, const char *pid, char *buf, size_t cap)
{
    const char *p, *after;
    int spaces = 0;

    if (read_file(dir, pid, "stat", buf, cap) <= 0)
        return 0;
    after = buf;
    for (p = buf; *p != '\0'; p++)
        if (*p == ')')
            after = p;
    for (p = after; *p != '\0' && spaces < 12; p++)
        spaces += *p == ' ';
    return four_numbers(p) * CLOCK_TICKS_US;
}

static uint64_t exact_kib(int dir, const char *pid, uint64_t rough, uint64_t tables, char *buf,
                          size_t cap)
{
    if (read_file(dir, pid, "smaps_rollup", buf, cap) <= 0)
        return rough;
    return field(buf, "Pss:") + field(buf, "SwapPss:") + tables;
}

static long open_threads(const struct init *init, const char *pid)
{
    char path[48];
    size_t len = 0;

    text_add(path, sizeof(path), &len, pid);
    text_add(path, sizeof(path), &len, "/task");
    return sys_call(__NR_openat, init->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Every thread: a nice value is a thread's own. Raising it needs no privilege. */
static void renice(const struct init *init, const char *pid)
{
    char entries[2048] __attribute__((aligned(8)));
    long fd = open_threads(init, pid);
    long n;

    if (fd < 0)
        return;
    while ((n = sys_call(__NR_getdents64, fd, entries, sizeof(entries))) > 0)
        for (long at = 0; at < n;) {
            const struct dir_entry *entry = (const void *)(entries + at);
            if (entry->name[0] != '.')
                (void)sys_call(__NR_setpriority, PRIO_ONE_PROCESS, parse_number(entry->name),
                               init->steps.plan->nice);
            at += entry->size;
        }
    sys_close((int)fd);
}

#define TID_TEXT 12
#define STATUS_TEXT 8192

/* What one process's memory is read from: its status, and the name in /proc that it stands
 * under. */
struct memory_entry {
    char tid[TID_TEXT];
    char status[STATUS_TEXT];
};

static int has_memory(const struct memory_entry *entry)
{
    return field(entry->status, "VmSize:") != 0;
}

/* In place of a status that is longer than our buffer (a caller with very many groups): the
 * resident pages alone, the second number of statm. */
static uint64_t resident_bytes(int dir, const char *pid, char *buf, size_t cap)
{
    const char *p = buf;

    if (read_file(dir, pid, "statm", buf, cap) <= 0)
        return 0;
    while (*p != '\0' && *p != ' ')
        p++;
    return parse_number(p) * PAGE_BYTES;
}

static int read_entry(const struct init *init, const char *tid, struct memory_entry *entry)
{
    size_t len = 0;

    text_add(entry->tid, sizeof(entry->tid), &len, tid);
    return read_file(init->proc_fd, tid, "status", entry->status, sizeof(entry->status)) > 0;
}

/* A process whose first thread has ended shows nothing of the memory that its others go on
 * using. Every thread has an entry of its own in /proc, though it isn't listed there. */
static void find_memory(const struct init *init, const char *pid, struct memory_entry *entry)
{
    char entries[2048] __attribute__((aligned(8)));
    long fd = open_threads(init, pid);
    long n;

    if (fd < 0)
        return;
    while (!has_memory(entry) && (n = sys_call(__NR_getdents64, fd, entries, sizeof(entries))) > 0)
        for (long at = 0; at < n && !has_memory(entry);) {
            const struct dir_entry *thread = (const void *)(entries + at);
            if (thread->name[0] != '.')
                (void)read_entry(init, thread->name, entry);
            at += thread->size;
        }
    sys_close((int)fd);
}

/* Between vfork() and its exec a child has its parent's memory, all of it, and no other: it counts
 * with the parent. */
static int is_parents_memory(const struct memory_entry *entry)
{
    uint64_t parent = field(entry->status, "PPid:");

    return parent > 1 && sys_call(__NR_kcmp, parse_number(entry->tid), parent, KCMP_VM, 0, 0) == 0;
}

/* Page tables are a 512th of what they map. */
#define TABLES_PART 16

static uint64_t memory_kib(const struct init *init, struct memory_entry *entry, int exact)
{
    const char *status = entry->status;
    uint64_t tables = field(status, "VmPTE:");
    uint64_t rough =
        field(status, "RssAnon:") + field(status, "RssShmem:") + field(status, "VmSwap:") + tables;

    if (!exact)
        return rough;
    if (is_parents_memory(entry))
        return 0;
    if (tables << 10 >= init->steps.plan->memory_bytes / TABLES_PART)
        return rough;
    return exact_kib(init->proc_fd, entry->tid, rough, tables, entry->status,
                     sizeof(entry->status));
}

static void add_process(struct init *init, const char *pid, int exact, struct watch_sample *sample)
{
    struct memory_entry entry;

    entry.status[STATUS_TEXT - 2] = '\0';
    if (!read_entry(init, pid, &entry))
        return; /* ended meanwhile */
    sample->pids += field(entry.status, "Threads:");
    sample->processes++;
    if (init->hurried)
        renice(init, pid);
    if (!has_memory(&entry))
        find_memory(init, pid, &entry);
    if (entry.status[STATUS_TEXT - 2] != '\0')
        sample->memory_bytes += resident_bytes(init->proc_fd, pid, entry.status, STATUS_TEXT);
    else
        sample->memory_bytes += memory_kib(init, &entry, exact) << 10;
    if (init->steps.plan->cpu_time_ms != 0)
        sample->cpu_us += process_cpu_us(init->proc_fd, pid, entry.status, sizeof(entry.status));
}

static void add_entries(struct init *init, const char *entries, long len, int exact,
                        struct watch_sample *sample)
{
    for (long at = 0; at < len;) {
        const struct dir_entry *entry = (const void *)(entries + at);
        int is_pid = entry->name[0] >= '1' && entry->name[0] <= '9';
        if (is_pid && !text_equal(entry->name, "1"))
            add_process(init, entry->name, exact, sample);
        at += entry->size;
    }
}

static void add_processes(struct init *init, int exact, struct watch_sample *sample)
{
    char entries[4096] __attribute__((aligned(8)));
    long n;

    (void)sys_call(__NR_lseek, init->proc_fd, 0, 0);
    while ((n = sys_call(__NR_getdents64, init->proc_fd, entries, sizeof(entries))) > 0)
        add_entries(init, entries, n, exact, sample);
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
    return init->proc_fd < 0 ? init->proc_fd : 0;
}

static uint64_t socket_bytes(const struct init *init)
{
    char buf[512];
    uint64_t bytes;

    if (!plan_has(&init->steps, LAYER_NET_NS))
        return 0; /* whose sockets they are isn't told */
    if (read_file(init->proc_fd, "self", "net/sockstat", buf, sizeof(buf)) <= 0)
        return 0;
    bytes = field(buf, "sockets: used") * init->socket_bytes;
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

void watch_sample(struct init *init, struct watch_sample *ret_sample)
{
    const uint64_t files = tmpfs_bytes(init) + socket_bytes(init);
    const uint64_t limit = init->steps.plan->memory_bytes;
    const struct watch_sample empty = {.memory_bytes = files, .cpu_us = reaped_cpu_us()};
    struct watch_sample sample = empty;

    add_processes(init, 0, &sample);
    init->hurried = is_in_hurry(init, &sample);
    if (limit != 0 && sample.memory_bytes > limit && sample.processes > 1) {
        sample = empty;
        add_processes(init, 1, &sample);
    }
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
    return (int64_t)(ms < 1 ? 1 : ms > 20 ? 20 : ms) * NS_PER_MS;
}
