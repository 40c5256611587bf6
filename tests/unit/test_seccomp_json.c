/*
 * test_seccomp_json.c - users' profiles: what is understood as Docker and Podman mean it, what
 * is refused by name, and what no profile can open.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/seccomp_file.h"

#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(code) (SECCOMP_RET_ERRNO | (code))
#define CALL(...) ((const uint64_t[6]){__VA_ARGS__})

static int load(const char *json, enum policy_variant variant, struct policy_program *ret,
                struct buf *notes, struct hutch_error *err)
{
    return policy_load_text("test", json, strlen(json), variant, ret, notes, err);
}

static struct policy_program loaded(const char *json, enum policy_variant variant)
{
    struct policy_program program = {0};
    struct hutch_error err = {0};
    cr_assert_eq(load(json, variant, &program, NULL, &err), 0, "%s: %s", json, err.message);
    cr_assert(policy_valid(program.insns, program.len));
    return program;
}

static uint32_t eval(const struct policy_program *program, unsigned number, const uint64_t args[6])
{
    struct seccomp_data data = {.nr = (int)number, .arch = AUDIT_ARCH_X86_64};
    memcpy(data.args, args, sizeof(data.args));
    return policy_eval(program->insns, program->len, &data);
}

/* The answer to one call under a profile with one rule, the default being ERRNO(EPERM). */
static uint32_t rule_answer(const char *rule, unsigned number, const uint64_t args[6])
{
    char json[1024];
    cr_assert_lt(snprintf(json, sizeof(json),
                          "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[%s]}", rule),
                 (int)sizeof(json));
    _cleanup_(policy_program_free) struct policy_program program = loaded(json, POLICY_CGROUP);
    return eval(&program, number, args);
}

/* ---- understood ---- */

Test(seccomp_json, reads_every_action)
{
    static const struct {
        const char *action;
        uint32_t answer;
    } ROWS[] = {
        {"\"SCMP_ACT_ALLOW\"", ALLOW},
        {"\"SCMP_ACT_LOG\"", SECCOMP_RET_LOG},
        {"\"SCMP_ACT_KILL\"", SECCOMP_RET_KILL_THREAD},
        {"\"SCMP_ACT_KILL_THREAD\"", SECCOMP_RET_KILL_THREAD},
        {"\"SCMP_ACT_KILL_PROCESS\"", SECCOMP_RET_KILL_PROCESS},
        {"\"SCMP_ACT_TRAP\"", SECCOMP_RET_TRAP},
        {"\"SCMP_ACT_ERRNO\"", ERRNO(EPERM)},
        {"\"SCMP_ACT_ERRNO\",\"errnoRet\":22", ERRNO(EINVAL)},
        {"\"SCMP_ACT_ERRNO\",\"errno\":\"ENOSYS\"", ERRNO(ENOSYS)},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char rule[256];
        snprintf(rule, sizeof(rule), "{\"names\":[\"getpid\"],\"action\":%s}", ROWS[i].action);
        cr_expect_eq(rule_answer(rule, SYS_getpid, CALL(0)), ROWS[i].answer, "%s", rule);
    }
}

Test(seccomp_json, reads_every_op)
{
    static const struct {
        const char *op;
        uint64_t yes, no;
    } ROWS[] = {
        {"SCMP_CMP_EQ", 5, 4}, {"SCMP_CMP_NE", 4, 5}, {"SCMP_CMP_LT", 4, 5},
        {"SCMP_CMP_LE", 5, 6}, {"SCMP_CMP_GE", 5, 4}, {"SCMP_CMP_GT", 6, 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char rule[256];
        snprintf(rule, sizeof(rule),
                 "{\"names\":[\"close\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,"
                 "\"value\":5,\"valueTwo\":0,\"op\":\"%s\"}]}",
                 ROWS[i].op);
        cr_expect_eq(rule_answer(rule, SYS_close, CALL(ROWS[i].yes)), ALLOW, "%s", ROWS[i].op);
        cr_expect_eq(rule_answer(rule, SYS_close, CALL(ROWS[i].no)), ERRNO(EPERM), "%s",
                     ROWS[i].op);
    }
}

Test(seccomp_json, reads_a_mask_as_docker_writes_it)
{
    const char *rule =
        "{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,"
        "\"value\":2114060288,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}";
    cr_expect_eq(rule_answer(rule, SYS_clone, CALL(17)), ALLOW);
    cr_expect_eq(rule_answer(rule, SYS_clone, CALL(17 | 0x20000)), ERRNO(EPERM));
}

Test(seccomp_json, joins_conditions_by_and_but_those_on_one_argument_by_or)
{
    const char *two = "{\"names\":[\"close\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":["
                      "{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"},"
                      "{\"index\":1,\"value\":2,\"op\":\"SCMP_CMP_EQ\"}]}";
    const char *one = "{\"names\":[\"close\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":["
                      "{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"},"
                      "{\"index\":0,\"value\":2,\"op\":\"SCMP_CMP_EQ\"}]}";
    cr_expect_eq(rule_answer(two, SYS_close, CALL(1, 2)), ALLOW);
    cr_expect_eq(rule_answer(two, SYS_close, CALL(1, 3)), ERRNO(EPERM));
    cr_expect_eq(rule_answer(one, SYS_close, CALL(1)), ALLOW);
    cr_expect_eq(rule_answer(one, SYS_close, CALL(2)), ALLOW);
    cr_expect_eq(rule_answer(one, SYS_close, CALL(3)), ERRNO(EPERM));
}

Test(seccomp_json, gives_refused_arguments_their_own_errno)
{
    const char *rule = "{\"names\":[\"close\"],\"action\":\"SCMP_ACT_ALLOW\",\"errnoRet\":22,"
                       "\"args\":[{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]},"
                       "{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",\"errnoRet\":9,"
                       "\"args\":[{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]}";
    cr_expect_eq(rule_answer(rule, SYS_close, CALL(1)), ALLOW);
    cr_expect_eq(rule_answer(rule, SYS_close, CALL(2)), ERRNO(EINVAL));
    cr_expect_eq(rule_answer(rule, SYS_dup, CALL(1)), ALLOW);
    cr_expect_eq(rule_answer(rule, SYS_dup, CALL(2)), ERRNO(EBADF));
    cr_expect_eq(rule_answer(rule, SYS_getpid, CALL(0)), ERRNO(EPERM));
}

/* A box holds no capability, is amd64, and runs on this kernel. */
Test(seccomp_json, evaluates_conditions_for_a_box)
{
    static const struct {
        const char *condition;
        uint32_t answer;
    } ROWS[] = {
        {"\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}", ERRNO(EPERM)},
        {"\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}", ALLOW},
        {"\"includes\":{\"caps\":[]},\"excludes\":{}", ALLOW},
        {"\"includes\":{\"arches\":[\"amd64\",\"x32\"]}", ALLOW},
        {"\"includes\":{\"arches\":[\"s390\",\"s390x\"]}", ERRNO(EPERM)},
        {"\"excludes\":{\"arches\":[\"s390\",\"s390x\"]}", ALLOW},
        {"\"excludes\":{\"arches\":[\"amd64\"]}", ERRNO(EPERM)},
        {"\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\"],\"arches\":[\"amd64\"]}", ERRNO(EPERM)},
        {"\"includes\":{\"minKernel\":\"4.8\"}", ALLOW},
        {"\"includes\":{\"minKernel\":\"250.0\"}", ERRNO(EPERM)},
        {"\"excludes\":{\"minKernel\":\"4.8\"}", ERRNO(EPERM)},
        {"\"excludes\":{\"minKernel\":\"250.0\"}", ALLOW},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char rule[256];
        snprintf(rule, sizeof(rule), "{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",%s}",
                 ROWS[i].condition);
        cr_expect_eq(rule_answer(rule, SYS_dup, CALL(0)), ROWS[i].answer, "%s", rule);
    }
}

Test(seccomp_json, accepts_what_docker_podman_and_oci_files_have)
{
    static const char JSON[] =
        "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"defaultErrno\":\"ENOSYS\","
        "\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":"
        "[\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]},{\"architecture\":\"SCMP_ARCH_S390X\"}],"
        "\"architectures\":[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\"],"
        "\"syscalls\":["
        "{\"name\":\"dup\",\"action\":\"SCMP_ACT_ALLOW\",\"args\":null},"
        "{\"names\":[\"getpid\",\"_llseek\",\"socketcall\",\"recv\"],\"action\":\"SCMP_ACT_ALLOW\","
        "\"args\":[],\"comment\":\"\",\"includes\":{},\"excludes\":{}},"
        "{\"names\":[\"getpid\"],\"action\":\"SCMP_ACT_ALLOW\"},"
        "{\"names\":[\"dup2\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,\"errno\":\"EPERM\"},"
        "{\"names\":[\"dup3\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38}]}";
    _cleanup_buf_ struct buf notes = BUF(4096);
    _cleanup_(policy_program_free) struct policy_program program = {0};
    struct hutch_error err = {0};
    cr_assert_eq(load(JSON, POLICY_CGROUP, &program, &notes, &err), 0, "%s", err.message);
    cr_expect_eq(notes.len, 0, "%.*s", (int)notes.len, notes.data);
    cr_expect_eq(eval(&program, SYS_dup, CALL(0)), ALLOW);
    cr_expect_eq(eval(&program, SYS_getpid, CALL(0)), ALLOW);
    cr_expect_eq(eval(&program, SYS_dup2, CALL(0)), ERRNO(EPERM));
    cr_expect_eq(eval(&program, SYS_dup3, CALL(0)), ERRNO(ENOSYS));
    cr_expect_eq(eval(&program, SYS_read, CALL(0)), ERRNO(ENOSYS));
}

Test(seccomp_json, ignores_unknown_calls_and_says_so)
{
    static const char JSON[] = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"flags\":[],\"syscalls\":["
                               "{\"names\":[\"no_such_call\",\"getpid\"],"
                               "\"action\":\"SCMP_ACT_ALLOW\"}]}";
    _cleanup_buf_ struct buf notes = BUF(4096);
    _cleanup_(policy_program_free) struct policy_program program = {0};
    struct hutch_error err = {0};
    cr_assert_eq(load(JSON, POLICY_CGROUP, &program, &notes, &err), 0, "%s", err.message);
    buf_put(&notes, "", 1);
    cr_expect(strstr(notes.data, "\"no_such_call\""));
    cr_expect(strstr(notes.data, "flags"));
    cr_expect_eq(eval(&program, SYS_getpid, CALL(0)), ALLOW);
}

/* ---- refused ---- */

Test(seccomp_json, refuses_by_name)
{
#define RULE(rule) "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[" rule "]}"
#define ARG(arg) RULE("{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[" arg "]}")
    static const struct {
        const char *json, *names;
    } ROWS[] = {
        {"", "test"},
        {"[]", "object"},
        {"{", "test"},
        {"{}", "defaultAction"},
        {"{\"defaultAction\":5}", "defaultAction"},
        {"{\"defaultAction\":\"ALLOW\"}", "ALLOW"},
        {"{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}", "SCMP_ACT_NOTIFY"},
        {"{\"defaultAction\":\"SCMP_ACT_TRACE\"}", "SCMP_ACT_TRACE"},
        {"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"sysalls\":[]}", "sysalls"},
        {"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"listenerPath\":\"/x\"}", "listener"},
        {"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":{}}", "syscalls"},
        {"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_ARM\"]}", "x86-64"},
        {"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"archMap\":[{\"architecture\":\"SCMP_ARCH_ARM\"}]"
         "}",
         "x86-64"},
        {"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":4096}", "defaultErrnoRet"},
        {"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":-1}", "defaultErrnoRet"},
        {RULE("5"), "syscalls"},
        {RULE("{\"names\":[\"dup\"]}"), "action"},
        {RULE("{\"action\":\"SCMP_ACT_ALLOW\"}"), "names"},
        {RULE("{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",\"arg\":[]}"), "\"arg\""},
        {RULE("{\"names\":[5],\"action\":\"SCMP_ACT_ALLOW\"}"), "names"},
        {RULE("{\"names\":[\"d\\u0000p\"],\"action\":\"SCMP_ACT_ALLOW\"}"), "names"},
        {RULE("{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"cap\":[]}}"),
         "cap"},
        {RULE("{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"minKernel\":"
              "\"x\"}}"),
         "minKernel"},
        {RULE("{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_ERRNO\",\"errno\":\"EWHAT\"}"), "EWHAT"},
        {ARG("{\"index\":6,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}"), "index"},
        {ARG("{\"index\":0,\"value\":1,\"op\":\"EQ\"}"), "EQ"},
        {ARG("{\"index\":0,\"value\":1}"), "op"},
        {ARG("{\"value\":1,\"op\":\"SCMP_CMP_EQ\"}"), "index"},
        {ARG("{\"index\":0,\"value\":18446744073709551616,\"op\":\"SCMP_CMP_EQ\"}"), "value"},
        {ARG("{\"index\":0,\"value\":1.5,\"op\":\"SCMP_CMP_EQ\"}"), "value"},
        {ARG("{\"index\":0,\"value\":1,\"values\":1,\"op\":\"SCMP_CMP_EQ\"}"), "values"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct policy_program program = {0};
        struct hutch_error err = {0};
        int r = load(ROWS[i].json, POLICY_CGROUP, &program, NULL, &err);
        cr_expect_lt(r, 0, "%s", ROWS[i].json);
        cr_expect_eq(err.stage, HUTCH_STAGE_REQUEST, "%s", ROWS[i].json);
        cr_expect(strstr(err.message, ROWS[i].names), "%s: %s", ROWS[i].json, err.message);
        cr_expect_null(program.insns);
    }
}

/* ---- the floor ---- */

static const char EVERYTHING[] = "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}";
#define FCHMODAT2 452

struct floor_row {
    unsigned number;
    uint64_t args[6];
    uint32_t answer;
};

static void check_floor(const struct floor_row *rows, size_t len, enum policy_variant variant)
{
    _cleanup_(policy_program_free) struct policy_program program = loaded(EVERYTHING, variant);
    for (size_t i = 0; i < len; i++)
        cr_expect_eq(eval(&program, rows[i].number, rows[i].args), rows[i].answer, "row %zu", i);
}

Test(seccomp_json, keeps_the_floor_under_a_profile_that_allows_everything)
{
    static const struct floor_row ROWS[] = {
        {SYS_getpid, {0}, ALLOW},
        {SYS_ptrace, {0}, ALLOW},
        {SYS_memfd_create, {0}, ALLOW},
        {SYS_unshare, {0}, ERRNO(EPERM)},
        {SYS_setns, {0}, ERRNO(EPERM)},
        {SYS_clone3, {0}, ERRNO(ENOSYS)},
        {SYS_clone, {17}, ALLOW},
        {SYS_clone, {0x10000011}, ERRNO(EPERM)},
        {SYS_clone, {0x20011 | 1ULL << 32}, ERRNO(EPERM)},
        {SYS_prlimit64, {0, 4, 0}, ALLOW},
        {SYS_prlimit64, {0, 4, 4096}, ERRNO(EPERM)},
        {SYS_prlimit64, {0, 4 | 1ULL << 32, 4096}, ERRNO(EPERM)},
        {SYS_prlimit64, {0, 7, 4096}, ALLOW},
        {SYS_setrlimit, {4}, ERRNO(EPERM)},
        {SYS_setrlimit, {7}, ALLOW},
        {SYS_fcntl, {0, 1024}, ERRNO(EPERM)},
        {SYS_fcntl, {0, 1026}, ERRNO(EPERM)},
        {SYS_fcntl, {0, 6}, ALLOW},
        {SYS_ioctl, {0, 0x5412}, ERRNO(EPERM)},
        {SYS_ioctl, {0, 0x5412 | 1ULL << 32}, ERRNO(EPERM)},
        {SYS_ioctl, {0, 0x541c}, ERRNO(EPERM)},
        {SYS_ioctl, {0, 0x5401}, ALLOW},
        {SYS_io_uring_setup, {0}, ERRNO(ENOSYS)},
        {SYS_io_uring_enter, {0}, ERRNO(ENOSYS)},
    };
    check_floor(ROWS, ARRAY_LEN(ROWS), POLICY_CGROUP);
}

Test(seccomp_json, makes_no_set_id_file_whatever_a_profile_allows)
{
    static const struct floor_row ROWS[] = {
        {SYS_openat, {0, 0, 0x40, 0755}, ALLOW},
        {SYS_openat, {0, 0, 0, 06777}, ALLOW},
        {SYS_openat, {0, 0, 0x40, 04755}, ERRNO(EPERM)},
        {SYS_openat, {0, 0, 0x410000, 02755}, ERRNO(EPERM)},
        {SYS_openat, {0, 0, 0x40 | 1ULL << 32, 04755 | 1ULL << 32}, ERRNO(EPERM)},
        {SYS_open, {0, 0x40, 0644}, ALLOW},
        {SYS_open, {0, 0x40, 02755}, ERRNO(EPERM)},
        {SYS_open, {0, 0x410000, 04755}, ERRNO(EPERM)},
        {SYS_creat, {0, 0644}, ALLOW},
        {SYS_creat, {0, 04644}, ERRNO(EPERM)},
        {SYS_chmod, {0, 01777}, ALLOW},
        {SYS_chmod, {0, 04755}, ERRNO(EPERM)},
        {SYS_fchmod, {0, 02755 | 1ULL << 63}, ERRNO(EPERM)},
        {SYS_fchmodat, {0, 0, 0755}, ALLOW},
        {SYS_fchmodat, {0, 0, 06755}, ERRNO(EPERM)},
        {SYS_mknod, {0, 0020644}, ALLOW},
        {SYS_mknod, {0, 0104755}, ERRNO(EPERM)},
        {SYS_mknodat, {0, 0, 0102755}, ERRNO(EPERM)},
        {SYS_openat2, {0}, ERRNO(ENOSYS)},
        {FCHMODAT2, {0}, ERRNO(ENOSYS)},
    };
    check_floor(ROWS, ARRAY_LEN(ROWS), POLICY_CGROUP);
    check_floor(ROWS, ARRAY_LEN(ROWS), POLICY_WATCHDOG);
}

Test(seccomp_json, leaves_init_and_uncounted_memory_alone_whatever_a_profile_allows)
{
    static const struct floor_row ROWS[] = {
        {SYS_mmap, {0, 1, 3, 0x22}, ALLOW},
        {SYS_mmap, {0, 1, 3, 0x40022}, ERRNO(EPERM)},
        {SYS_sched_setscheduler, {0}, ALLOW},
        {SYS_sched_setscheduler, {1}, ERRNO(EPERM)},
        {SYS_sched_setparam, {1 | 1ULL << 32}, ERRNO(EPERM)},
        {SYS_sched_setattr, {1}, ERRNO(EPERM)},
        {SYS_sched_setattr, {0}, ALLOW},
        {SYS_setpriority, {0, 0}, ALLOW},
        {SYS_setpriority, {0, 1}, ERRNO(EPERM)},
        {SYS_setpriority, {2, 0}, ERRNO(EPERM)},
        {SYS_ioprio_set, {1, 0}, ALLOW},
        {SYS_ioprio_set, {1, 1}, ERRNO(EPERM)},
        {SYS_ioprio_set, {3, 0}, ERRNO(EPERM)},
        {SYS_prlimit64, {1, 7, 0}, ALLOW},
        {SYS_prlimit64, {1, 7, 4096}, ERRNO(EPERM)},
    };
    static const struct floor_row CGROUP[] = {
        {SYS_memfd_create, {0, 3}, ALLOW},   {SYS_memfd_create, {0, 4}, ERRNO(EPERM)},
        {SYS_shmget, {0, 0, 03600}, ALLOW},  {SYS_shmget, {0, 0, 04600}, ERRNO(EPERM)},
        {SYS_sched_setaffinity, {0}, ALLOW}, {SYS_sched_setaffinity, {1}, ERRNO(EPERM)},
        {SYS_mmap, {0, 1, 3, 0x21}, ALLOW},  {SYS_setsockopt, {0, 1, 7}, ALLOW},
    };
    static const struct floor_row WATCHDOG[] = {
        {SYS_sched_setaffinity, {0}, ERRNO(EPERM)},
        {SYS_mmap, {0, 1, 3, 0x01}, ALLOW},
        {SYS_mmap, {0, 1, 3, 0x21}, ERRNO(EPERM)},
        {SYS_mmap, {0, 1, 3, 0x23}, ERRNO(EPERM)},
        {SYS_setsockopt, {0, 1, 6}, ALLOW},
        {SYS_setsockopt, {0, 1, 7}, ERRNO(EPERM)},
        {SYS_setsockopt, {0, 1, 33 | 1ULL << 32}, ERRNO(EPERM)},
    };
    check_floor(ROWS, ARRAY_LEN(ROWS), POLICY_CGROUP);
    check_floor(ROWS, ARRAY_LEN(ROWS), POLICY_WATCHDOG);
    check_floor(CGROUP, ARRAY_LEN(CGROUP), POLICY_CGROUP);
    check_floor(WATCHDOG, ARRAY_LEN(WATCHDOG), POLICY_WATCHDOG);
}

Test(seccomp_json, never_opens_a_foreign_abi)
{
    unsigned by_abi[POLICY_ABIS];
    _cleanup_(policy_program_free) struct policy_program program =
        loaded(EVERYTHING, POLICY_CGROUP);
    policy_count(&program, by_abi);
    cr_expect_gt(by_abi[POLICY_ABI_X86_64], 1000);
    cr_expect_eq(by_abi[POLICY_ABI_X32], 0);
    cr_expect_eq(by_abi[POLICY_ABI_I386], 0);
}

Test(seccomp_json, refuses_hidden_memory_whatever_a_profile_allows)
{
    static const unsigned NUMBERS[] = {SYS_memfd_create,   SYS_shmget, SYS_msgget,      SYS_mq_open,
                                       SYS_io_uring_setup, SYS_bpf,    SYS_memfd_secret};
    static const char LISTED[] = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":["
                                 "\"memfd_create\",\"shmget\",\"msgget\",\"mq_open\",\"bpf\","
                                 "\"io_uring_setup\",\"memfd_secret\"],"
                                 "\"action\":\"SCMP_ACT_ALLOW\"}]}";
    _cleanup_(policy_program_free) struct policy_program all = loaded(EVERYTHING, POLICY_WATCHDOG);
    _cleanup_(policy_program_free) struct policy_program listed = loaded(LISTED, POLICY_WATCHDOG);
    _cleanup_(policy_program_free) struct policy_program cgroup = loaded(LISTED, POLICY_CGROUP);
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        cr_expect_eq(eval(&all, NUMBERS[i], CALL(0)), ERRNO(ENOSYS));
        cr_expect_eq(eval(&listed, NUMBERS[i], CALL(0)), ERRNO(ENOSYS));
        cr_expect_eq(eval(&cgroup, NUMBERS[i], CALL(0)),
                     NUMBERS[i] == SYS_io_uring_setup ? ERRNO(ENOSYS) : ALLOW);
    }
}

/* ---- files ---- */

static void write_file(const char *path, const char *text, size_t len)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, len), (ssize_t)len);
}

Test(seccomp_json, loads_files_and_refuses_what_is_none)
{
    char dir[] = "/tmp/hutch-policy-XXXXXX", good[64], fifo[64], big[64];
    cr_assert_not_null(mkdtemp(dir));
    snprintf(good, sizeof(good), "%s/good.json", dir);
    snprintf(fifo, sizeof(fifo), "%s/fifo.json", dir);
    snprintf(big, sizeof(big), "%s/big.json", dir);
    write_file(good, EVERYTHING, strlen(EVERYTHING));
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    write_file(big, EVERYTHING, strlen(EVERYTHING));
    cr_assert_eq(truncate(big, POLICY_FILE_MAX_BYTES + 1), 0);

    struct policy_program program = {0};
    struct hutch_error err = {0};
    cr_expect_eq(policy_load(good, false, &program, &err), 0, "%s", err.message);
    policy_program_free(&program);
    const char *const bad[] = {fifo, big, dir, "/nonexistent.json", "nonexistent.json"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_expect_lt(policy_load(bad[i], false, &program, &err), 0, "%s", bad[i]);
        cr_expect_eq(err.stage, HUTCH_STAGE_REQUEST);
        cr_expect(strstr(err.message, bad[i]), "%s", err.message);
    }
    unlink(good), unlink(fifo), unlink(big), rmdir(dir);
}
