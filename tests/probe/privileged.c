/* privileged.c - system calls that no honest program in a box makes. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define ATTEMPT(name, call)                                                                        \
    static int name(const char *arg)                                                               \
    {                                                                                              \
        (void)arg;                                                                                 \
        return RESULT(call);                                                                       \
    }

/* Processes and memory of others: a child that waits. */
static pid_t child_waiting(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static int child_done(pid_t pid, int result)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return result;
}

ATTEMPT(ptrace_traceme, ptrace(PTRACE_TRACEME, 0, NULL, NULL))

static int ptrace_seize(const char *arg)
{
    (void)arg;
    pid_t pid = child_waiting();
    return child_done(pid, RESULT(ptrace(PTRACE_SEIZE, pid, NULL, NULL)));
}

static int vm_copy(long number)
{
    static char there[8] = "there", here[8];
    struct iovec local = {here, sizeof here}, remote = {there, sizeof there};
    pid_t pid = child_waiting();
    return child_done(pid, RESULT(syscall(number, pid, &local, 1UL, &remote, 1UL, 0UL)));
}

static int process_vm_readv_(const char *arg)
{
    return (void)arg, vm_copy(SYS_process_vm_readv);
}
static int process_vm_writev_(const char *arg)
{
    return (void)arg, vm_copy(SYS_process_vm_writev);
}
ATTEMPT(process_madvise_, syscall(SYS_process_madvise, -1, NULL, 0UL, 0, 0U))
ATTEMPT(kcmp_, syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, 0UL, 1UL))
ATTEMPT(pidfd_getfd_,
        syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getpid(), 0U), STDOUT_FILENO, 0U))

/* The kernel's own machinery. */
ATTEMPT(bpf_, syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 8U))
ATTEMPT(io_uring_setup_, syscall(SYS_io_uring_setup, 1U, NULL))
ATTEMPT(io_uring_enter_, syscall(SYS_io_uring_enter, -1, 0U, 0U, 0U, NULL, 0UL))
ATTEMPT(io_uring_register_, syscall(SYS_io_uring_register, -1, 0U, NULL, 0U))
ATTEMPT(userfaultfd_, syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY))
ATTEMPT(perf_event_open_, syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL))
ATTEMPT(keyctl_, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1))
ATTEMPT(add_key_, syscall(SYS_add_key, "user", "hutch", "x", 1UL, KEY_SPEC_PROCESS_KEYRING))
ATTEMPT(request_key_, syscall(SYS_request_key, NULL, NULL, NULL, 0))
ATTEMPT(open_by_handle_at_, syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0))
ATTEMPT(quotactl_, syscall(SYS_quotactl, 0, NULL, 0, NULL))
ATTEMPT(swapon_, syscall(SYS_swapon, "/nonexistent", 0))
ATTEMPT(swapoff_, syscall(SYS_swapoff, "/nonexistent"))
ATTEMPT(reboot_, syscall(SYS_reboot, 1, 2, 3, NULL))
ATTEMPT(acct_, syscall(SYS_acct, "/nonexistent"))
ATTEMPT(kexec_load_, syscall(SYS_kexec_load, 0UL, 0UL, NULL, ~0UL))
ATTEMPT(kexec_file_load_, syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, ~0UL))
ATTEMPT(init_module_, syscall(SYS_init_module, NULL, 0UL, ""))
ATTEMPT(finit_module_, syscall(SYS_finit_module, -1, "", 0))
ATTEMPT(delete_module_, syscall(SYS_delete_module, NULL, 0U))
ATTEMPT(settimeofday_, syscall(SYS_settimeofday, &(struct timeval){0, -1}, NULL))
ATTEMPT(clock_settime_, syscall(SYS_clock_settime, CLOCK_REALTIME, &(struct timespec){-1, -1}))
ATTEMPT(clock_adjtime_, syscall(SYS_clock_adjtime, CLOCK_REALTIME, NULL))
ATTEMPT(ioperm_, ioperm(0x80, 1, 1))
ATTEMPT(iopl_, iopl(3))
ATTEMPT(syslog_, syscall(SYS_syslog, 10, NULL, 0))
ATTEMPT(fanotify_init_, syscall(SYS_fanotify_init, 0U, 0U))
ATTEMPT(modify_ldt_, syscall(SYS_modify_ldt, 0, NULL, 0UL))
ATTEMPT(memfd_secret_, syscall(SYS_memfd_secret, 0U))
ATTEMPT(memfd_create_, syscall(SYS_memfd_create, "hutch", 0U))
ATTEMPT(seccomp_, syscall(SYS_seccomp, 1U, 0U, NULL))
ATTEMPT(vhangup_, (setsid(), syscall(SYS_vhangup)))
ATTEMPT(move_pages_, syscall(SYS_move_pages, 0, 0UL, NULL, NULL, NULL, 0))
ATTEMPT(migrate_pages_, syscall(SYS_migrate_pages, 0, 0UL, NULL, NULL))
ATTEMPT(sched_setscheduler_,
        syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &(struct sched_param){99}))
ATTEMPT(name_to_handle_at_, syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0))

/* System V and POSIX shared things. */
ATTEMPT(shmget_, shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600))
ATTEMPT(semget_, semget(IPC_PRIVATE, 1, IPC_CREAT | 0600))
ATTEMPT(msgget_, msgget(IPC_PRIVATE, IPC_CREAT | 0600))
ATTEMPT(mq_open_, syscall(SYS_mq_open, "hutch-probe", O_CREAT | O_RDWR, 0600U, NULL))

/* Arguments that are refused. */
ATTEMPT(personality_no_random, personality(ADDR_NO_RANDOMIZE))
ATTEMPT(personality_no_random_high, syscall(SYS_personality, ADDR_NO_RANDOMIZE | HIGH))
ATTEMPT(prctl_set_mm, prctl(PR_SET_MM, PR_SET_MM_BRK, 0UL, 0UL, 0UL))
ATTEMPT(prctl_set_mm_high, syscall(SYS_prctl, PR_SET_MM | HIGH, PR_SET_MM_BRK, 0UL, 0UL, 0UL))
ATTEMPT(prctl_ptracer, prctl(0x59616d61, -1UL, 0UL, 0UL, 0UL))
ATTEMPT(prctl_ambient, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0UL, 0UL, 0UL))
ATTEMPT(prctl_ambient_high,
        syscall(SYS_prctl, PR_CAP_AMBIENT | HIGH, PR_CAP_AMBIENT_CLEAR_ALL, 0UL, 0UL, 0UL))
ATTEMPT(prctl_securebits, prctl(PR_SET_SECUREBITS, prctl(PR_GET_SECUREBITS)))
ATTEMPT(prctl_name, prctl(PR_SET_NAME, "probe"))

static int core_limit(const struct rlimit *ret, unsigned long high, long number)
{
    return number == SYS_setrlimit ? RESULT(syscall(number, RLIMIT_CORE | high, ret))
                                   : RESULT(syscall(number, 0, RLIMIT_CORE | high, ret, NULL));
}

/* The limit as it is or lower: an honest kernel always grants that. */
static const struct rlimit NO_CORE;
static int setrlimit_core(const char *arg)
{
    return (void)arg, core_limit(&NO_CORE, 0, SYS_setrlimit);
}
static int setrlimit_core_high(const char *arg)
{
    return (void)arg, core_limit(&NO_CORE, HIGH, SYS_setrlimit);
}
static int prlimit_core(const char *arg)
{
    return (void)arg, core_limit(&NO_CORE, 0, SYS_prlimit64);
}
static int prlimit_core_high(const char *arg)
{
    return (void)arg, core_limit(&NO_CORE, HIGH, SYS_prlimit64);
}
ATTEMPT(getrlimit_core, syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &(struct rlimit){0}))

const struct attempt PRIVILEGED[] = {
    {"ptrace_traceme", ptrace_traceme},
    {"ptrace_seize", ptrace_seize},
    {"process_vm_readv", process_vm_readv_},
    {"process_vm_writev", process_vm_writev_},
    {"process_madvise", process_madvise_},
    {"kcmp", kcmp_},
    {"pidfd_getfd", pidfd_getfd_},
    {"bpf", bpf_},
    {"io_uring_setup", io_uring_setup_},
    {"io_uring_enter", io_uring_enter_},
    {"io_uring_register", io_uring_register_},
    {"userfaultfd", userfaultfd_},
    {"perf_event_open", perf_event_open_},
    {"keyctl", keyctl_},
    {"add_key", add_key_},
    {"request_key", request_key_},
    {"open_by_handle_at", open_by_handle_at_},
    {"name_to_handle_at", name_to_handle_at_},
    {"quotactl", quotactl_},
    {"swapon", swapon_},
    {"swapoff", swapoff_},
    {"reboot", reboot_},
    {"acct", acct_},
    {"kexec_load", kexec_load_},
    {"kexec_file_load", kexec_file_load_},
    {"init_module", init_module_},
    {"finit_module", finit_module_},
    {"delete_module", delete_module_},
    {"settimeofday", settimeofday_},
    {"clock_settime", clock_settime_},
    {"clock_adjtime", clock_adjtime_},
    {"ioperm", ioperm_},
    {"iopl", iopl_},
    {"syslog", syslog_},
    {"fanotify_init", fanotify_init_},
    {"modify_ldt", modify_ldt_},
    {"memfd_secret", memfd_secret_},
    {"memfd_create", memfd_create_},
    {"seccomp", seccomp_},
    {"vhangup", vhangup_},
    {"move_pages", move_pages_},
    {"migrate_pages", migrate_pages_},
    {"sched_setscheduler", sched_setscheduler_},
    {"shmget", shmget_},
    {"semget", semget_},
    {"msgget", msgget_},
    {"mq_open", mq_open_},
    {"personality_no_random", personality_no_random},
    {"personality_no_random_high", personality_no_random_high},
    {"prctl_set_mm", prctl_set_mm},
    {"prctl_set_mm_high", prctl_set_mm_high},
    {"prctl_ptracer", prctl_ptracer},
    {"prctl_ambient", prctl_ambient},
    {"prctl_ambient_high", prctl_ambient_high},
    {"prctl_securebits", prctl_securebits},
    {"prctl_name", prctl_name},
    {"setrlimit_core", setrlimit_core},
    {"setrlimit_core_high", setrlimit_core_high},
    {"prlimit_core", prlimit_core},
    {"prlimit_core_high", prlimit_core_high},
    {"getrlimit_core", getrlimit_core},
    {NULL, NULL},
};
