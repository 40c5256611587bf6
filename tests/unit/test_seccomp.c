/*
 * test_seccomp.c - the shipped profiles, by evaluating their BPF: how much they let through, and
 * each rule on an argument with an allowed one, a denied one, the denied one with high bits set,
 * and through x32 and i386.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_secret.h"

#define X32 0x40000000U
#define HIGH (1ULL << 32)
#define FCHMODAT2 452U
#define SECRET 0x1122334455667788ULL
#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(code) (SECCOMP_RET_ERRNO | (code))

static const char *const NAMES[] = {"tool", "python", "node", "default"};

static struct policy_program load(const char *name, bool watchdog)
{
    struct policy_program program = {0};
    struct hutch_error err;
    cr_assert_eq(policy_load(name, watchdog, &program, &err), 0);
    return program;
}

static uint32_t answer_in(const char *name, bool watchdog, uint32_t arch, unsigned number,
                          const uint64_t args[6])
{
    _cleanup_(policy_program_free) struct policy_program program = load(name, watchdog);
    struct seccomp_data data = {.nr = (int)number, .arch = arch};
    memcpy(data.args, args, sizeof(data.args));
    return policy_eval(program.insns, program.len, &data);
}

static uint32_t answer(const char *name, uint32_t arch, unsigned number, const uint64_t args[6])
{
    return answer_in(name, false, arch, number, args);
}

/* ---- how much ---- */

static unsigned count(const char *name, bool watchdog, unsigned by_abi[POLICY_ABIS])
{
    _cleanup_(policy_program_free) struct policy_program program = load(name, watchdog);
    return policy_count(&program, by_abi);
}

Test(seccomp, keeps_within_its_budgets)
{
    static const unsigned MOST[] = {60, 110, 120, 200};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        unsigned by_abi[POLICY_ABIS];
        unsigned total = count(NAMES[i], false, by_abi);
        cr_expect_leq(total, MOST[i], "%s: %u", NAMES[i], total);
        cr_expect_gt(total, 40, "%s: %u", NAMES[i], total);
        cr_expect_eq(total, by_abi[POLICY_ABI_X86_64]);
        cr_expect_eq(by_abi[POLICY_ABI_X32], 0);
        cr_expect_eq(by_abi[POLICY_ABI_I386], 0);
        cr_expect_leq(count(NAMES[i], true, by_abi), total);
    }
}

Test(seccomp, refuses_hidden_memory_where_no_cgroup_counts_it)
{
    static const unsigned NUMBERS[] = {SYS_memfd_create, SYS_shmget, SYS_shmat,
                                       SYS_shmctl,       SYS_shmdt,  SYS_semget};
    _cleanup_(policy_program_free) struct policy_program cgroup = load("default", false);
    _cleanup_(policy_program_free) struct policy_program watchdog = load("default", true);
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        cr_expect(policy_reachable(cgroup.insns, cgroup.len, POLICY_ABI_X86_64, NUMBERS[i]));
        cr_expect_not(
            policy_reachable(watchdog.insns, watchdog.len, POLICY_ABI_X86_64, NUMBERS[i]));
    }
}

Test(seccomp, finds_profiles_by_name_and_refuses_others)
{
    struct policy_program program;
    struct hutch_error err;
    static const char *const BAD[] = {"", "nope", "floor", "init", "watchdog", "tool2", "Tool"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        cr_expect_lt(policy_load(BAD[i], false, &program, &err), 0, "%s", BAD[i]);
        cr_expect_eq(err.stage, HUTCH_STAGE_REQUEST);
    }
    cr_expect(policy_exec_by_fd("tool"));
    cr_expect_not(policy_exec_by_fd("python"));
    cr_expect_gt(policy_init_program().len, 0);
}

Test(seccomp, compiles_what_the_kernel_accepts)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        for (int v = 0; v < POLICY_VARIANTS; v++)
            cr_expect(policy_valid(POLICY_SHIPPED[i].code[v].insns, POLICY_SHIPPED[i].code[v].len),
                      "%s", POLICY_SHIPPED[i].name);
}

/* ---- rules on arguments ---- */

#define TOOL 1U
#define PYTHON 2U
#define NODE 4U
#define DEFAULT 8U
#define SCRIPTS (PYTHON | NODE | DEFAULT)
#define ALL (TOOL | SCRIPTS)
#define CREAT 0x40U
#define TMPFILE 0x410000U

struct rule {
    unsigned profiles;
    unsigned number;
    uint64_t allowed[6], denied[6];
    unsigned high; /* the denied argument that gets high bits */
    uint32_t refused;
};

static const struct rule RULES[] = {
    {SCRIPTS, SYS_clone, {17}, {0x10000011}, 0, EPERM},           /* NEWUSER */
    {SCRIPTS, SYS_clone, {0x3d0f00}, {0x20011}, 0, EPERM},        /* NEWNS */
    {SCRIPTS, SYS_clone, {0x4111}, {0x40000011}, 0, EPERM},       /* NEWNET */
    {SCRIPTS, SYS_clone, {0x1200011}, {0x2000011}, 0, EPERM},     /* NEWCGROUP */
    {SCRIPTS, SYS_clone, {17}, {0x4000011}, 0, EPERM},            /* NEWUTS */
    {SCRIPTS, SYS_clone, {17}, {0x8000011}, 0, EPERM},            /* NEWIPC */
    {SCRIPTS, SYS_clone, {17}, {0x20000011}, 0, EPERM},           /* NEWPID */
    {TOOL, SYS_clone, {0x3d0f00}, {17}, 0, EPERM},                /* a fork */
    {TOOL, SYS_clone, {0x7d0f00}, {0x4111}, 0, EPERM},            /* a vfork */
    {TOOL, SYS_clone, {0x3d0f00}, {0x103d0f00}, 0, EPERM},        /* NEWUSER */
    {SCRIPTS, SYS_socket, {1, 1, 0}, {16, 3, 0}, 0, EPERM},       /* NETLINK */
    {SCRIPTS, SYS_socket, {1, 0x80802, 0}, {17, 3, 0}, 0, EPERM}, /* PACKET */
    {SCRIPTS, SYS_socket, {1, 5, 0}, {38, 5, 0}, 0, EPERM},       /* ALG */
    {SCRIPTS, SYS_socket, {2, 0x80001, 6}, {40, 1, 0}, 0, EPERM}, /* VSOCK */
    {SCRIPTS, SYS_socket, {2, 2, 17}, {15, 3, 2}, 0, EPERM},      /* KEY */
    {SCRIPTS, SYS_socket, {10, 1, 0}, {44, 3, 0}, 0, EPERM},      /* XDP */
    {SCRIPTS, SYS_socket, {10, 2, 0}, {33, 2, 2}, 0, EPERM},      /* RXRPC */
    {SCRIPTS, SYS_socket, {2, 1, 0}, {2, 3, 1}, 1, EPERM},        /* raw */
    {SCRIPTS, SYS_socket, {2, 1, 0}, {2, 1, 132}, 2, EPERM},      /* SCTP */
    {SCRIPTS, SYS_socket, {2, 1, 0}, {2, 1, 262}, 2, EPERM},      /* MPTCP */
    {SCRIPTS, SYS_socket, {10, 2, 17}, {10, 2, 58}, 2, EPERM},    /* ICMPv6 */
    {SCRIPTS, SYS_socketpair, {1, 1, 0}, {2, 1, 0}, 0, EPERM},
    {SCRIPTS, SYS_setsockopt, {0, 6, 1}, {0, 6, 31}, 2, EPERM},      /* TCP_ULP */
    {SCRIPTS, SYS_setsockopt, {0, 6, 12}, {0, 6, 19}, 2, EPERM},     /* TCP_REPAIR */
    {SCRIPTS, SYS_setsockopt, {0, 1, 2}, {0, 1, 26}, 2, EPERM},      /* ATTACH_FILTER */
    {SCRIPTS, SYS_setsockopt, {0, 1, 20}, {0, 1, 60}, 2, EPERM},     /* ZEROCOPY */
    {SCRIPTS, SYS_setsockopt, {0, 41, 26}, {0, 41, 64}, 2, EPERM},   /* IP6T_SO_SET_REPLACE */
    {SCRIPTS, SYS_setsockopt, {0, 0, 1}, {0, 0, 64}, 2, EPERM},      /* IPT_SO_SET_REPLACE */
    {SCRIPTS, SYS_setsockopt, {0, 0, 1}, {0, 270, 1}, 1, EPERM},     /* SOL_NETLINK */
    {ALL, SYS_ioctl, {0, 0x5401}, {0, 0x5412}, 1, EPERM},            /* TIOCSTI */
    {ALL, SYS_ioctl, {0, 0x5421}, {0, 0x541c}, 1, EPERM},            /* TIOCLINUX */
    {ALL, SYS_ioctl, {0, 0x5451}, {0, 0xb701}, 1, EPERM},            /* NS_GET_USERNS */
    {ALL, SYS_ioctl, {0, 0x5413}, {0, 0x40049409}, 1, EPERM},        /* FICLONE */
    {DEFAULT, SYS_ioctl, {0, 0x80045430}, {0, 0x5423}, 1, EPERM},    /* TIOCSETD */
    {ALL, SYS_fcntl, {0, 1030}, {0, 1024}, 1, EPERM},                /* F_SETLEASE */
    {ALL, SYS_fcntl, {0, 3}, {0, 1026}, 1, EPERM},                   /* F_NOTIFY */
    {ALL, SYS_fcntl, {0, 2}, {0, 1031}, 1, EPERM},                   /* F_SETPIPE_SZ */
    {TOOL | NODE, SYS_fcntl, {0, 4}, {0, 6}, 1, EPERM},              /* F_SETLK */
    {PYTHON | DEFAULT, SYS_fcntl, {0, 6}, {0, 37}, 1, EPERM},        /* F_OFD_SETLK */
    {ALL, SYS_prctl, {15}, {4}, 0, EPERM},                           /* SET_DUMPABLE */
    {ALL, SYS_prctl, {38}, {22}, 0, EPERM},                          /* SET_SECCOMP */
    {ALL, SYS_prctl, {0x53564d41}, {35}, 0, EPERM},                  /* SET_MM */
    {ALL, SYS_arch_prctl, {0x1002}, {0x2001}, 0, EPERM},             /* MAP_VDSO_X32 */
    {ALL, SYS_arch_prctl, {0x1003}, {0x1001}, 0, EPERM},             /* SET_GS */
    {DEFAULT, SYS_personality, {0xffffffff}, {0x0400000}, 0, EPERM}, /* READ_IMPLIES_EXEC */
    {DEFAULT, SYS_personality, {0}, {8}, 0, EPERM},                  /* PER_LINUX32 */
    {ALL, SYS_prlimit64, {0, 4, 0}, {0, 4, 4096}, 1, EPERM},         /* a new core limit */
    {ALL, SYS_prlimit64, {0, 7, 0}, {0, 4, HIGH}, 1, EPERM},         /* at a high address */
    {SCRIPTS, SYS_prlimit64, {0, 7, 4096}, {0, 4, 4096}, 1, EPERM},  /* the others may be set */
    {SCRIPTS, SYS_prlimit64, {0, 3, 4096}, {0, 16, 4096}, 1, EPERM}, /* none of that number */
    {TOOL, SYS_prlimit64, {0, 7, 0}, {0, 7, 4096}, 1, EPERM},
    {DEFAULT, SYS_setrlimit, {3, 4096}, {4, 4096}, 0, EPERM},
    {DEFAULT, SYS_setrlimit, {5, 4096}, {4, 4096}, 0, EPERM},
    {PYTHON | DEFAULT, SYS_mknodat, {0, 0, 0010644}, {0, 0, 0020644}, 2, EPERM}, /* a character
                                                                                    device */
    {PYTHON | DEFAULT, SYS_mknodat, {0, 0, 0100644}, {0, 0, 0060644}, 2, EPERM}, /* a block device
                                                                                  */
    {DEFAULT, SYS_mknod, {0, 0010644}, {0, 0020644}, 1, EPERM},
    /* set-id files */
    {ALL, SYS_openat, {0, 0, CREAT, 0755}, {0, 0, CREAT, 04755}, 3, EPERM},
    {ALL, SYS_openat, {0, 0, CREAT | 1, 01777}, {0, 0, CREAT | 1, 02755}, 2, EPERM},
    {ALL, SYS_openat, {0, 0, TMPFILE, 0600}, {0, 0, TMPFILE, 06700}, 2, EPERM},
    {ALL, SYS_openat, {0, 0, 0, 06777}, {0, 0, CREAT, 06777}, 2, EPERM}, /* no new file */
    {DEFAULT, SYS_open, {0, CREAT, 0755}, {0, CREAT, 04755}, 2, EPERM},
    {DEFAULT, SYS_open, {0, 0x80000, 06777}, {0, TMPFILE, 02755}, 1, EPERM},
    {DEFAULT, SYS_creat, {0, 0644}, {0, 04755}, 1, EPERM},
    {SCRIPTS, SYS_chmod, {0, 01777}, {0, 04755}, 1, EPERM},
    {SCRIPTS, SYS_fchmod, {0, 0644}, {0, 02755}, 1, EPERM},
    {DEFAULT, SYS_fchmodat, {0, 0, 0755}, {0, 0, 06755}, 2, EPERM},
    {DEFAULT, SYS_mknod, {0, 0100755}, {0, 0104755}, 1, EPERM},
    {PYTHON | DEFAULT, SYS_mknodat, {0, 0, 0100755}, {0, 0, 0102755}, 2, EPERM},
    {PYTHON | DEFAULT, SYS_mknodat, {0, 0, 0755}, {0, 0, 04755}, 2, EPERM},
    /* huge pages */
    {ALL, SYS_mmap, {0, 1, 3, 0x22}, {0, 1, 3, 0x40022}, 3, EPERM},
    {DEFAULT, SYS_memfd_create, {0, 3}, {0, 7}, 1, EPERM},
    {DEFAULT, SYS_shmget, {0, 0, 03600}, {0, 0, 07600}, 2, EPERM},
    /* init, which has the same user id */
    {SCRIPTS, SYS_prlimit64, {0, 7, 4096}, {1, 7, 4096}, 0, EPERM},
    {SCRIPTS, SYS_prlimit64, {1, 7, 0}, {1, 0, HIGH}, 0, EPERM},
    {DEFAULT, SYS_sched_setaffinity, {0}, {1}, 0, EPERM},
    {DEFAULT, SYS_setpriority, {0, 0, 5}, {0, 1, 5}, 1, EPERM}, /* init */
    {DEFAULT, SYS_setpriority, {0, 0, 5}, {2, 0, 5}, 0, EPERM}, /* all of the user's */
};

/* What the watchdog's variant has before that. */
static const struct rule WATCHED[] = {
    {ALL, SYS_mmap, {0, 1, 3, 0x22}, {0, 1, 3, 0x21}, 3, EPERM}, /* private, shared */
    {ALL, SYS_mmap, {0, 1, 3, 0x01}, {0, 1, 3, 0x23}, 3, EPERM}, /* of a file, MAP_SHARED_VALIDATE
                                                                  */
    {ALL, SYS_mmap, {0, 1, 3, 0x03}, {0, 1, 3, 0x8031}, 3, EPERM},
    {ALL, SYS_mmap, {0, 1, 3, 0x02}, {0, 1, 3, 0x40022}, 3, EPERM}, /* huge */
    {SCRIPTS, SYS_setsockopt, {0, 1, 6}, {0, 1, 7}, 2, EPERM},
    {SCRIPTS, SYS_setsockopt, {0, 6, 7}, {0, 1, 8}, 1, EPERM},
    {SCRIPTS, SYS_setsockopt, {0, 1, 9}, {0, 1, 32}, 2, EPERM},
    {SCRIPTS, SYS_setsockopt, {0, 1, 10}, {0, 1, 33}, 2, EPERM},
};

static void check_rule(const char *name, const struct rule *rule, bool watchdog, unsigned row)
{
    const uint32_t native = AUDIT_ARCH_X86_64, refused = ERRNO(rule->refused);
    uint64_t high[6], higher[6];
    memcpy(high, rule->denied, sizeof(high));
    high[rule->high] |= HIGH;
    memcpy(higher, high, sizeof(higher));
    higher[rule->high] |= 1ULL << 63;
    const struct {
        const char *what;
        uint32_t arch;
        unsigned number;
        const uint64_t *args;
        uint32_t want;
    } ROWS[] = {
        {"allowed", native, rule->number, rule->allowed, ALLOW},
        {"denied", native, rule->number, rule->denied, refused},
        {"high", native, rule->number, high, refused},
        {"higher", native, rule->number, higher, refused},
        {"x32", native, rule->number | X32, rule->allowed, ERRNO(ENOSYS)},
        {"i386", AUDIT_ARCH_I386, rule->number, rule->allowed, ERRNO(ENOSYS)},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        uint32_t got = answer_in(name, watchdog, ROWS[i].arch, ROWS[i].number, ROWS[i].args);
        cr_expect_eq(got, ROWS[i].want, "%s%s, rule %u, %s: %x, not %x", name,
                     watchdog ? " (watchdog)" : "", row, ROWS[i].what, got, ROWS[i].want);
    }
}

static void check_rules(const struct rule *rules, size_t len, bool watchdog)
{
    for (unsigned row = 0; row < len; row++)
        for (unsigned p = 0; p < ARRAY_LEN(NAMES); p++)
            if (rules[row].profiles & 1U << p)
                check_rule(NAMES[p], &rules[row], watchdog, row);
}

Test(seccomp, decides_by_arguments)
{
    check_rules(RULES, ARRAY_LEN(RULES), false);
}

/* Every rule holds there too, but for the calls that it refuses as a whole. */
Test(seccomp, decides_by_arguments_where_a_watchdog_counts)
{
    check_rules(WATCHED, ARRAY_LEN(WATCHED), true);
    for (unsigned row = 0; row < ARRAY_LEN(RULES); row++)
        if (RULES[row].number != SYS_memfd_create && RULES[row].number != SYS_shmget &&
            RULES[row].number != SYS_sched_setaffinity)
            check_rules(&RULES[row], 1, true);
}

Test(seccomp, keeps_the_cpus_that_are_the_limit)
{
    static const uint64_t OWN[6] = {0};
    cr_expect_eq(answer_in("default", true, AUDIT_ARCH_X86_64, SYS_sched_setaffinity, OWN),
                 ERRNO(EPERM));
    cr_expect_eq(answer_in("default", true, AUDIT_ARCH_X86_64, SYS_sched_getaffinity, OWN), ALLOW);
}

/* High bits that the kernel doesn't read don't make an allowed call a denied one either. */
Test(seccomp, ignores_high_bits_of_an_allowed_int)
{
    const uint64_t socket[6] = {HIGH | 1, HIGH | 1, 0};
    const uint64_t ioctl[6] = {0, HIGH | 0x5401};
    cr_expect_eq(answer("python", AUDIT_ARCH_X86_64, SYS_socket, socket), ALLOW);
    cr_expect_eq(answer("tool", AUDIT_ARCH_X86_64, SYS_ioctl, ioctl), ALLOW);
}

/* ---- calls as a whole ---- */

static const struct {
    unsigned profiles, number;
    uint32_t refused;
} REFUSED[] = {
    {ALL, SYS_clone3, ENOSYS},
    {ALL, SYS_unshare, EPERM},
    {ALL, SYS_setns, EPERM},
    {ALL, SYS_io_uring_setup, ENOSYS},
    {ALL, SYS_io_uring_enter, ENOSYS},
    {ALL, SYS_io_uring_register, ENOSYS},
    {ALL, SYS_userfaultfd, ENOSYS},
    {ALL, SYS_getxattr, EOPNOTSUPP},
    {ALL, SYS_fsetxattr, EOPNOTSUPP},
    {ALL, SYS_llistxattr, EOPNOTSUPP},
    {ALL, SYS_lremovexattr, EOPNOTSUPP},
    {ALL, SYS_splice, ENOSYS},
    {ALL, SYS_tee, ENOSYS},
    {ALL, SYS_vmsplice, ENOSYS},
    {ALL, SYS_sendfile, ENOSYS},
    {ALL, SYS_inotify_init1, ENOSYS},
    {ALL, SYS_fanotify_init, ENOSYS},
    {ALL, SYS_pidfd_getfd, ENOSYS},
    {ALL, SYS_fsopen, ENOSYS},
    {ALL, SYS_mq_open, ENOSYS},
    {ALL, SYS_msgget, ENOSYS},
    {ALL, SYS_seccomp, ENOSYS},
    {ALL, SYS_openat2, ENOSYS},
    {ALL, FCHMODAT2, ENOSYS},
    {ALL, SYS_sched_setscheduler, ENOSYS},
    {ALL, SYS_sched_setparam, ENOSYS},
    {ALL, SYS_sched_setattr, ENOSYS},
    {ALL, SYS_ioprio_set, ENOSYS},
    {ALL, 1023, ENOSYS},
    {TOOL, SYS_execve, EPERM},
    {TOOL, SYS_fork, EPERM},
    {TOOL, SYS_vfork, EPERM},
    {TOOL, SYS_socket, EPERM},
    {TOOL, SYS_socketpair, EPERM},
    {TOOL | PYTHON | NODE, SYS_flock, ENOSYS},
    {TOOL | PYTHON | NODE, SYS_memfd_create, ENOSYS},
    {TOOL | PYTHON | NODE, SYS_mount, ENOSYS},
    {DEFAULT, SYS_mount, EPERM},
    {DEFAULT, SYS_ptrace, EPERM},
    {DEFAULT, SYS_process_vm_readv, EPERM},
    {DEFAULT, SYS_bpf, EPERM},
    {DEFAULT, SYS_keyctl, EPERM},
    {DEFAULT, SYS_perf_event_open, EPERM},
    {DEFAULT, SYS_open_by_handle_at, EPERM},
};

Test(seccomp, refuses_calls_with_the_errno_that_fits)
{
    static const uint64_t NONE[6] = {0};
    for (unsigned i = 0; i < ARRAY_LEN(REFUSED); i++)
        for (unsigned p = 0; p < ARRAY_LEN(NAMES); p++)
            if (REFUSED[i].profiles & 1U << p)
                cr_expect_eq(answer(NAMES[p], AUDIT_ARCH_X86_64, REFUSED[i].number, NONE),
                             ERRNO(REFUSED[i].refused), "%s, call %u", NAMES[p], REFUSED[i].number);
}

/* ---- the one exec of tool ---- */

static uint32_t exec_answer(const struct sock_filter *insns, size_t len, uint64_t fd,
                            uint64_t flags, uint64_t secret)
{
    struct seccomp_data data = {.nr = SYS_execveat, .arch = AUDIT_ARCH_X86_64};
    data.args[0] = fd;
    data.args[4] = flags;
    data.args[5] = secret;
    return policy_eval(insns, len, &data);
}

Test(seccomp, starts_tool_by_fd_and_secret_alone)
{
    struct sock_filter armed[POLICY_MAX_INSNS];
    _cleanup_(policy_program_free) struct policy_program program = load("tool", false);
    unsigned len = program.len;
    uint64_t place = (uint64_t)POLICY_SECRET_HIGH << 32 | POLICY_SECRET_LOW;
    memcpy(armed, program.insns, len * sizeof(*armed));
    cr_assert_eq(policy_secret_put(armed, len, SECRET), 0);
    cr_expect_eq(exec_answer(armed, len, 1023, 0x1000, SECRET), ALLOW);
    cr_expect_eq(exec_answer(armed, len, 1022, 0x1000, SECRET), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, HIGH | 1022, 0x1000, SECRET), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, -100ULL, 0x1000, SECRET), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, 1023, 0, SECRET), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, 1023, 0x1100, SECRET), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, 1023, 0x1000, place), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, 1023, 0x1000, SECRET & 0xffffffff), ERRNO(EPERM));
    cr_expect_eq(exec_answer(armed, len, 1023, 0x1000, SECRET ^ 1), ERRNO(EPERM));
}

Test(seccomp, refuses_to_arm_a_filter_without_the_secrets_place)
{
    struct sock_filter copy[POLICY_MAX_INSNS];
    _cleanup_(policy_program_free) struct policy_program python = load("python", false);
    _cleanup_(policy_program_free) struct policy_program tool = load("tool", true);
    memcpy(copy, python.insns, python.len * sizeof(*copy));
    cr_expect_lt(policy_secret_put(copy, python.len, SECRET), 0);
    memcpy(copy, tool.insns, tool.len * sizeof(*copy));
    cr_expect_eq(policy_secret_put(copy, tool.len, SECRET), 0);
    cr_expect_lt(policy_secret_put(copy, tool.len, SECRET), 0, "armed twice");
}
