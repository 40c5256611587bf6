/*
 * test_seccomp_eval.c - the small interpreter: that it computes as the kernel does, knows what
 * the kernel wouldn't load, and that reachability errs only on the careful side.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/seccomp.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RET(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define ALLOW SECCOMP_RET_ALLOW
#define KILL SECCOMP_RET_KILL_PROCESS
#define LEN(program) (sizeof(program) / sizeof(struct sock_filter))

static uint32_t run(const struct sock_filter *insns, size_t len, uint64_t arg)
{
    struct seccomp_data data = {.nr = 7, .arch = AUDIT_ARCH_X86_64, .args = {arg}};
    return policy_eval(insns, len, &data);
}

Test(seccomp_eval, computes_as_the_kernel_does)
{
    static const struct {
        uint16_t op;
        uint32_t k, want;
    } ROWS[] = {
        {BPF_ADD, 3, 15}, {BPF_SUB, 13, UINT32_MAX}, {BPF_MUL, 3, 36},
        {BPF_DIV, 5, 2},  {BPF_OR, 3, 15},           {BPF_AND, 10, 8},
        {BPF_XOR, 5, 9},  {BPF_LSH, 4, 192},         {BPF_RSH, 2, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct sock_filter by_k[] = {LOAD(args[0]), BPF_STMT(BPF_ALU | ROWS[i].op, ROWS[i].k),
                                           BPF_STMT(BPF_RET | BPF_A, 0)};
        const struct sock_filter by_x[] = {BPF_STMT(BPF_LDX | BPF_IMM, ROWS[i].k), LOAD(args[0]),
                                           BPF_STMT(BPF_ALU | ROWS[i].op | BPF_X, 0),
                                           BPF_STMT(BPF_RET | BPF_A, 0)};
        cr_expect_eq(run(by_k, LEN(by_k), 12), ROWS[i].want, "op %x", ROWS[i].op);
        cr_expect_eq(run(by_x, LEN(by_x), 12), ROWS[i].want, "op %x", ROWS[i].op);
    }
}

Test(seccomp_eval, moves_values_through_memory_and_x)
{
    const struct sock_filter program[] = {
        LOAD(args[0]),
        BPF_STMT(BPF_ST, 3),
        BPF_STMT(BPF_ALU | BPF_NEG, 0),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_MEM, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), /* 12 + -12 */
        BPF_STMT(BPF_STX, 4),
        BPF_STMT(BPF_LDX | BPF_MEM, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), /* + 12 */
        BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), /* + 64 */
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    cr_expect_eq(run(program, LEN(program), 12), 76);
}

Test(seccomp_eval, jumps_by_each_comparison)
{
    static const struct {
        uint16_t op;
        uint64_t yes, no;
    } ROWS[] = {
        {BPF_JEQ, 8, 9},
        {BPF_JGT, 9, 8},
        {BPF_JGE, 8, 7},
        {BPF_JSET, 12, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct sock_filter program[] = {
            LOAD(args[0]), BPF_JUMP(BPF_JMP | ROWS[i].op | BPF_K, 8, 0, 1),
            RET(1),        BPF_STMT(BPF_JMP | BPF_JA, 1),
            RET(2),        RET(3)};
        cr_expect_eq(run(program, LEN(program), ROWS[i].yes), 1, "op %x", ROWS[i].op);
        cr_expect_eq(run(program, LEN(program), ROWS[i].no), 3, "op %x", ROWS[i].op);
    }
}

Test(seccomp_eval, reads_every_word_of_the_call)
{
    struct seccomp_data data = {.nr = 1, .arch = 2, .instruction_pointer = 4ULL << 32 | 3};
    for (unsigned i = 0; i < 6; i++)
        data.args[i] = (uint64_t)(6 + 2 * i) << 32 | (5 + 2 * i);
    for (uint32_t word = 0; word < sizeof(data) / 4; word++) {
        const struct sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word * 4),
                                              BPF_STMT(BPF_RET | BPF_A, 0)};
        cr_expect_eq(policy_eval(program, LEN(program), &data), word + 1);
    }
}

Test(seccomp_eval, kills_what_the_kernel_would_not_load)
{
    const struct {
        struct sock_filter first;
    } ROWS[] = {
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2)},        /* unaligned */
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64)},       /* behind the data */
        {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0)},        /* a byte */
        {BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0)},        /* indirect */
        {BPF_STMT(BPF_LD | BPF_MEM, 16)},               /* no such word */
        {BPF_STMT(BPF_ST, 16)},                         /* no such word */
        {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0)},       /* by nothing */
        {BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 2)},       /* not for seccomp */
        {BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32)},      /* too far */
        {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1)}, /* behind the end */
        {BPF_STMT(BPF_JMP | BPF_JA, 1)},                /* behind the end */
        {BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX)},       /* backwards */
        {BPF_STMT(BPF_MISC | 0x40, 0)},                 /* no instruction */
        {BPF_STMT(0x100, 0)},                           /* no instruction */
        {BPF_STMT(BPF_RET | BPF_X, 0)},                 /* no instruction */
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct sock_filter program[] = {ROWS[i].first, RET(ALLOW)};
        cr_expect_not(policy_valid(program, LEN(program)), "row %zu", i);
        cr_expect_eq(run(program, LEN(program), 0), KILL, "row %zu", i);
        cr_expect_not(policy_reachable(program, LEN(program), POLICY_ABI_X86_64, 7), "row %zu", i);
    }
    const struct sock_filter open_end[] = {RET(ALLOW), LOAD(nr)};
    cr_expect_not(policy_valid(open_end, LEN(open_end)));
    cr_expect_not(policy_valid(open_end, 0));
}

/* ---- reachability ---- */

static bool reachable(const struct sock_filter *insns, size_t len, unsigned number)
{
    return policy_reachable(insns, len, POLICY_ABI_X86_64, number);
}

Test(seccomp_eval, follows_both_ways_of_an_argument)
{
    const struct sock_filter program[] = {
        LOAD(nr),      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 3),
        LOAD(args[2]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1234, 0, 1),
        RET(ALLOW),    RET(KILL)};
    cr_expect(reachable(program, LEN(program), 7));
    cr_expect_not(reachable(program, LEN(program), 8));
}

Test(seccomp_eval, follows_masks_memory_and_computed_answers)
{
    const struct sock_filter masked[] = {LOAD(args[0]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 15),
                                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 1), RET(ALLOW),
                                         RET(KILL)};
    const struct sock_filter through_memory[] = {LOAD(args[0]),
                                                 BPF_STMT(BPF_ST, 0),
                                                 LOAD(nr),
                                                 BPF_STMT(BPF_LD | BPF_MEM, 0),
                                                 BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 3, 0, 1),
                                                 RET(ALLOW),
                                                 RET(KILL)};
    const struct sock_filter computed[] = {LOAD(args[0]), BPF_STMT(BPF_RET | BPF_A, 0)};
    const struct sock_filter by_number[] = {LOAD(nr), BPF_STMT(BPF_RET | BPF_A, 0)};
    cr_expect(reachable(masked, LEN(masked), 7));
    cr_expect(reachable(through_memory, LEN(through_memory), 7));
    cr_expect(reachable(computed, LEN(computed), 7));
    cr_expect_not(reachable(by_number, LEN(by_number), 7));
}

/* Where two ways with different values meet, the value counts as unknown. */
Test(seccomp_eval, joins_ways_carefully)
{
    const struct sock_filter program[] = {
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2),
        BPF_STMT(BPF_LD | BPF_IMM, 5),
        BPF_STMT(BPF_JMP | BPF_JA, 1),
        BPF_STMT(BPF_LD | BPF_IMM, 6),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1),
        RET(ALLOW),
        RET(KILL),
    };
    cr_expect(reachable(program, LEN(program), 7));
}

Test(seccomp_eval, tells_the_abis_apart)
{
    const struct sock_filter i386_only[] = {
        LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 1), RET(ALLOW),
        RET(KILL)};
    const struct sock_filter x32_only[] = {
        LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
        LOAD(nr),   BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        RET(ALLOW), RET(KILL)};
    const struct policy_program i386 = {.insns = i386_only, .len = LEN(i386_only)};
    const struct policy_program x32 = {.insns = x32_only, .len = LEN(x32_only)};
    unsigned by_abi[POLICY_ABIS];
    cr_expect_eq(policy_count(&i386, by_abi), POLICY_COUNT_NUMBERS);
    cr_expect_eq(by_abi[POLICY_ABI_I386], POLICY_COUNT_NUMBERS);
    cr_expect_eq(policy_count(&x32, by_abi), POLICY_COUNT_NUMBERS);
    cr_expect_eq(by_abi[POLICY_ABI_X32], POLICY_COUNT_NUMBERS);
    cr_expect_str_eq(policy_abi_name(POLICY_ABI_I386), "i386");
}

/* LOG lets a call through as ALLOW does; nothing else does. */
Test(seccomp_eval, counts_what_lets_a_call_through)
{
    static const struct {
        uint32_t action;
        bool through;
    } ROWS[] = {{ALLOW, true},
                {SECCOMP_RET_LOG, true},
                {SECCOMP_RET_ERRNO | EPERM, false},
                {SECCOMP_RET_TRAP, false},
                {SECCOMP_RET_TRACE, false},
                {SECCOMP_RET_USER_NOTIF, false},
                {SECCOMP_RET_KILL_THREAD, false},
                {KILL, false}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct sock_filter program[] = {RET(ROWS[i].action)};
        cr_expect_eq(reachable(program, 1, 7), ROWS[i].through, "%x", ROWS[i].action);
    }
}
