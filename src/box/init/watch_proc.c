/* watch_proc.c - see watch_proc.h. */
#include "box/init/watch_proc.h"
#include "kernel/step/step.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/time.h>

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

long proc_open(int dir, const char *pid, const char *file)
{
    char path[48];
    size_t len = 0;

    text_add(path, sizeof(path), &len, pid);
    text_add(path, sizeof(path), &len, "/");
    text_add(path, sizeof(path), &len, file);
    return sys_call(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);
}

long proc_read(int dir, const char *pid, const char *file, char *buf, size_t cap)
{
    long fd = proc_open(dir, pid, file);
    long n;

    if (fd < 0)
        return fd;
    n = sys_call(__NR_read, fd, buf, cap - 1);
    sys_close((int)fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

uint64_t proc_number(const char *p)
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

uint64_t proc_field(const char *text, const char *key)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((p == text || p[-1] == '\n') && starts_with(p, key))
            return proc_number(p + text_len(key));
    return 0;
}

/* A field of /proc/PID/stat, from the third on, counted from the last ')' because a name may hold
 * anything. */
static const char *stat_field(const char *text, int which)
{
    const char *p = text;

    for (const char *q = text; *q != '\0'; q++)
        if (*q == ')')
            p = q;
    for (int spaces = 2; *p != '\0' && spaces < which; p++)
        spaces += *p == ' ';
    return p;
}

enum { STAT_MINOR_FAULTS = 10, STAT_MAJOR_FAULTS = 12, STAT_UTIME = 14, STAT_CSTIME = 17 };

uint64_t proc_cpu_us(int dir, const char *pid)
{
    char buf[1024];
    uint64_t sum = 0;

    if (proc_read(dir, pid, "stat", buf, sizeof(buf)) <= 0)
        return 0;
    for (int which = STAT_UTIME; which <= STAT_CSTIME; which++)
        sum += proc_number(stat_field(buf, which));
    return sum * CLOCK_TICKS_US;
}

uint64_t proc_faults(int dir, const char *pid)
{
    char buf[1024];

    if (proc_read(dir, pid, "stat", buf, sizeof(buf)) <= 0)
        return 0;
    return proc_number(stat_field(buf, STAT_MINOR_FAULTS)) +
           proc_number(stat_field(buf, STAT_MAJOR_FAULTS));
}

/* clock_getcpuclockid(3): the bits of the process id inverted, and CPUCLOCK_SCHED. Unlike the times
 * in /proc it isn't in hundredths of a second. */
uint64_t proc_run_ns(uint64_t pid)
{
    struct __kernel_timespec time = {0};

    (void)sys_call(__NR_clock_gettime, (int)(~(unsigned)pid << 3 | 2), &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static void each_name(int dir, void (*visit)(void *arg, const char *name), void *arg)
{
    char entries[4096] __attribute__((aligned(8)));
    long n;

    while ((n = sys_call(__NR_getdents64, dir, entries, sizeof(entries))) > 0)
        for (long at = 0; at < n;) {
            const struct dir_entry *entry = (const void *)(entries + at);
            if (entry->name[0] >= '1' && entry->name[0] <= '9')
                visit(arg, entry->name);
            at += entry->size;
        }
}

static void each_thread(int dir, const char *pid, void (*visit)(void *arg, const char *tid),
                        void *arg)
{
    long fd = proc_open(dir, pid, "task");

    if (fd < 0)
        return;
    each_name((int)fd, visit, arg);
    sys_close((int)fd);
}

struct visitor {
    void (*visit)(void *arg, const char *pid);
    void *arg;
};

static void visit_but_init(void *arg, const char *pid)
{
    const struct visitor *v = arg;

    if (!text_equal(pid, "1"))
        v->visit(v->arg, pid);
}

void proc_each(int dir, void (*visit)(void *arg, const char *pid), void *arg)
{
    struct visitor visitor = {visit, arg};

    (void)sys_call(__NR_lseek, dir, 0, 0);
    each_name(dir, visit_but_init, &visitor);
}

static void renice_thread(void *arg, const char *tid)
{
    const unsigned *nice = arg;

    (void)sys_call(__NR_setpriority, PRIO_ONE_PROCESS, proc_number(tid), *nice);
}

/* Every thread: a nice value is a thread's own. Raising it needs no privilege. */
void proc_renice(int dir, const char *pid, unsigned nice)
{
    each_thread(dir, pid, renice_thread, &nice);
}

struct search {
    int dir;
    struct proc_entry *entry;
};

static int has_memory(const struct proc_entry *entry)
{
    return proc_field(entry->status, "VmSize:") != 0;
}

static int read_entry(int dir, const char *tid, struct proc_entry *entry)
{
    size_t len = 0;

    text_add(entry->tid, sizeof(entry->tid), &len, tid);
    return proc_read(dir, tid, "status", entry->status, sizeof(entry->status)) > 0;
}

static void try_thread(void *arg, const char *tid)
{
    const struct search *search = arg;

    if (!has_memory(search->entry))
        (void)read_entry(search->dir, tid, search->entry);
}

/* A process whose first thread has ended shows nothing of the memory that its others go on
 * using. Every thread has an entry of its own in /proc, though it isn't listed there. */
int proc_find(int dir, const char *pid, struct proc_entry *entry)
{
    struct search search = {dir, entry};

    entry->status[PROC_STATUS_TEXT - 2] = '\0';
    if (!read_entry(dir, pid, entry))
        return 0;
    if (!has_memory(entry))
        each_thread(dir, pid, try_thread, &search);
    return 1;
}

/* In place of a status that is longer than our buffer (a caller with very many groups): the
 * resident pages alone, the second number of statm. */
static uint64_t resident_bytes(int dir, struct proc_entry *entry)
{
    const char *p = entry->status;

    if (proc_read(dir, entry->tid, "statm", entry->status, sizeof(entry->status)) <= 0)
        return 0;
    while (*p != '\0' && *p != ' ')
        p++;
    return proc_number(p) * PAGE_BYTES;
}

/* Not RssShmem: what can be shared there is a file of the box's tmpfs, and that is counted as a
 * whole. Page tables count: one process hid 200 MiB in them. */
uint64_t proc_rough_bytes(int dir, struct proc_entry *entry)
{
    const char *status = entry->status;

    if (status[PROC_STATUS_TEXT - 2] != '\0')
        return resident_bytes(dir, entry);
    return (proc_field(status, "RssAnon:") + proc_field(status, "VmSwap:") +
            proc_field(status, "VmPTE:"))
           << 10;
}
