/*
 * watch_exact.c - init's second thread: what takes long, or can be made to.
 *
 * smaps_rollup and maps are read under a lock of the process that they are about, which that
 * process can hold for long (one mprotect of 65,000 maps: 68 ms), and walk all that it has mapped.
 * An allocator in another process won that time: 745 MiB at a limit of 64. So the first thread,
 * which keeps the limits, never reads them: it asks this one (watch_doubt.c). Between such
 * questions this one counts maps, by itself: each is kernel memory that is in nobody's numbers (20
 * processes of 65,000 held 300 MiB).
 *
 * It is a thread and not a process, because PID 1's threads are out of reach of the box's signals.
 * It starts after init's guard, so that it has no capability and init's filter.
 */
#include "box/init/init.h"
#include "box/init/watch_proc.h"
#include "kernel/step/sys.h"

#include <linux/fcntl.h>
#include <linux/kcmp.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/time.h>

#define SYS_EACCES 13
#define SYS_EPERM 1
#define SYS_EFD_CLOEXEC 02000000
#define PROT_READ_WRITE 3
#define NS_PER_MS 1000000LL
#define NS_PER_S 1000000000LL
#define STACK_BYTES 65536L

/* A map costs 200 to 260 bytes, and where it was written to before a fork one more link for each
 * ancestor that still lives (10 processes in a row held 500 MiB): at most all the box's. */
#define MAP_BYTES 256U
#define MAP_LINK_BYTES 64U

/* Few maps are looked at from time to time; those of a box that makes many, more often. */
#define MAPS_FEW_BYTES (1U << 20)
#define MAPS_FEW_MS 100
#define MAPS_MANY_MS 20
/* A box that is always in doubt isn't left alone for longer. */
#define MAPS_LATE_NS (400 * NS_PER_MS)

static int wait_readable(int fd, int64_t ns)
{
    struct poll_fd poll = {fd, POLLIN, 0};
    struct __kernel_timespec time = {ns / NS_PER_S, ns % NS_PER_S};

    return sys_call(__NR_ppoll, &poll, 1, &time, 0, 0) == 1;
}

struct sum {
    struct watch_exact *watch;
    int exact;  /* else the maps alone... */
    int urgent; /* ...which give way to a question unless it is time */
    uint64_t memory_bytes;
    uint64_t maps, processes;
};

static int gives_way(const struct sum *sum)
{
    return !sum->urgent && __atomic_load_n(&sum->watch->asked, __ATOMIC_ACQUIRE) != 0;
}

static uint64_t maps_bytes(const struct sum *sum)
{
    return sum->maps * (MAP_BYTES + MAP_LINK_BYTES * sum->processes);
}

/* One line each. A process that can't be looked at (it isn't dumpable) may have as many as
 * processes may. */
static void add_maps(struct sum *sum, const char *tid)
{
    char text[4096];
    long fd = proc_open(sum->watch->proc_fd, tid, "maps");
    long n;

    if (fd == -SYS_EACCES || fd == -SYS_EPERM)
        sum->maps += sum->watch->maps_max;
    if (fd < 0)
        return;
    while (!gives_way(sum) && (n = sys_call(__NR_read, fd, text, sizeof(text))) > 0)
        for (long i = 0; i < n; i++)
            sum->maps += text[i] == '\n';
    sys_close((int)fd);
}

/* Pss_Anon and not Pss: files are the host's or the tmpfs's, as in the rough sum. */
static uint64_t exact_bytes(int dir, struct proc_entry *entry)
{
    const uint64_t tables = proc_field(entry->status, "VmPTE:");
    const uint64_t rough = proc_rough_bytes(dir, entry);

    if (proc_read(dir, entry->tid, "smaps_rollup", entry->status, sizeof(entry->status)) <= 0)
        return rough;
    return (proc_field(entry->status, "Pss_Anon:") + proc_field(entry->status, "SwapPss:") + tables)
           << 10;
}

/* Between vfork() and its exec a child has its parent's memory, all of it, and no other: it counts
 * with the parent. */
static int is_parents_memory(const struct proc_entry *entry)
{
    uint64_t parent = proc_field(entry->status, "PPid:");

    return parent > 1 && sys_call(__NR_kcmp, proc_number(entry->tid), parent, KCMP_VM, 0, 0) == 0;
}

/* As long as there are more to come, the sum says how many there are at least. */
static void keep_maps(const struct sum *sum, int whole)
{
    const uint64_t now = maps_bytes(sum);

    if (whole || now > __atomic_load_n(&sum->watch->maps_bytes, __ATOMIC_RELAXED))
        __atomic_store_n(&sum->watch->maps_bytes, now, __ATOMIC_RELAXED);
}

static void add_process(void *arg, const char *pid)
{
    struct sum *sum = arg;
    struct proc_entry entry;

    if (gives_way(sum) || !proc_find(sum->watch->proc_fd, pid, &entry))
        return;
    sum->processes++;
    if (is_parents_memory(&entry))
        return;
    if (sum->exact) {
        sum->memory_bytes += exact_bytes(sum->watch->proc_fd, &entry);
    } else {
        add_maps(sum, entry.tid);
        keep_maps(sum, 0);
    }
}

static void answer(struct watch_exact *watch)
{
    struct sum sum = {.watch = watch, .exact = 1, .urgent = 1};
    uint64_t value;

    (void)sys_call(__NR_read, watch->ask_fd, &value, sizeof(value));
    __atomic_store_n(&watch->asked, 0, __ATOMIC_RELEASE);
    proc_each(watch->proc_fd, add_process, &sum);
    value = sum.memory_bytes != 0 ? sum.memory_bytes : 1; /* an eventfd holds no 0 */
    (void)sys_call(__NR_write, watch->answer_fd, &value, sizeof(value));
}

static void look_at_maps(struct watch_exact *watch)
{
    const int64_t started = init_now_ns();
    struct sum sum = {.watch = watch, .urgent = started - watch->looked_ns > MAPS_LATE_NS};

    proc_each(watch->proc_fd, add_process, &sum);
    if (!gives_way(&sum)) {
        keep_maps(&sum, 1);
        watch->looked_ns = init_now_ns();
    }
    watch->look_took_ns = init_now_ns() - started;
}

/* As long a rest as the look took, so that a box can't make this thread use a whole CPU. */
static int64_t rest_ns(const struct watch_exact *watch)
{
    const int64_t least =
        (watch->maps_bytes > MAPS_FEW_BYTES ? MAPS_MANY_MS : MAPS_FEW_MS) * NS_PER_MS;

    return watch->look_took_ns > least ? watch->look_took_ns : least;
}

static void second_thread(void *arg)
{
    struct watch_exact *watch = arg;

    for (;;) {
        int asked = wait_readable(watch->ask_fd, rest_ns(watch));
        if (asked)
            answer(watch);
        if (!asked || init_now_ns() - watch->looked_ns > MAPS_LATE_NS)
            look_at_maps(watch);
    }
}

void exact_ask(struct init *init)
{
    const uint64_t value = 1;

    __atomic_store_n(&init->exact.asked, 1, __ATOMIC_RELEASE);
    (void)sys_call(__NR_write, init->exact.ask_fd, &value, sizeof(value));
}

int exact_answer(struct init *init, unsigned within_ms, uint64_t *ret_bytes)
{
    uint64_t value;

    if (!wait_readable(init->exact.answer_fd, within_ms * NS_PER_MS))
        return 0;
    (void)sys_call(__NR_read, init->exact.answer_fd, &value, sizeof(value));
    *ret_bytes = value;
    return 1;
}

uint64_t exact_maps_bytes(const struct init *init)
{
    return __atomic_load_n(&init->exact.maps_bytes, __ATOMIC_RELAXED);
}

int exact_open(struct init *init)
{
    struct watch_exact *watch = &init->exact;
    char text[24];

    if (proc_read(init->proc_fd, "sys", "vm/max_map_count", text, sizeof(text)) > 0)
        watch->maps_max = proc_number(text);
    watch->proc_fd =
        (int)step_call(__NR_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (watch->proc_fd < 0)
        return watch->proc_fd;
    init->steps.object = "second thread of the watchdog";
    watch->ask_fd = (int)step_call(__NR_eventfd2, 0, SYS_EFD_CLOEXEC);
    if (watch->ask_fd < 0)
        return watch->ask_fd;
    watch->answer_fd = (int)step_call(__NR_eventfd2, 0, SYS_EFD_CLOEXEC);
    if (watch->answer_fd < 0)
        return watch->answer_fd;
    watch->stack =
        step_call(__NR_mmap, 0, STACK_BYTES, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return watch->stack < 0 && watch->stack > -4096 ? (int)watch->stack : 0;
}

#define CLONE_THREAD_OF_OURS                                                                       \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD)

/* What the new thread finds on its stack, in the order in which it takes it. */
struct thread_start {
    void *arg;
    void (*run)(void *arg);
};

static long clone_thread(struct thread_start *start)
{
    long ret;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "pop %%rdi\n\t"
                     "pop %%rax\n\t"
                     "call *%%rax\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(__NR_clone), "D"(CLONE_THREAD_OF_OURS), "S"(start), "d"(0), "r"(r10),
                       "r"(r8)
                     : "rcx", "r11", "memory");
    return ret;
}

int exact_start(struct init *init)
{
    struct thread_start *start = (void *)(init->exact.stack + STACK_BYTES - (long)sizeof(*start));
    long r;

    if (init->steps.plan->memory_bytes == 0)
        return 0;
    *start = (struct thread_start){&init->exact, second_thread};
    r = clone_thread(start);
    if (r > 0)
        return 0;
    init->steps.object = "second thread of the watchdog";
    report_failed(&init->steps, PLAN_STEP_fork, (int)-r);
    return (int)r;
}
