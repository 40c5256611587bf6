/*
 * seccomp_eval.c - the kernel's classic BPF, in small: what a filter answers to a call, and which
 * calls it can let through at all.
 *
 * Only what the kernel accepts in a seccomp filter (seccomp_check_filter()) is known here.
 * Jumps only go forward, so one pass over the program is a complete evaluation, whether of one
 * call or, with unknown arguments, of all calls with one number.
 */
#include <linux/audit.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/seccomp.h"

#define X32_BIT 0x40000000U

/* ---- one call ---- */

struct machine {
    uint32_t a, x, mem[BPF_MEMWORDS];
};

static uint32_t alu(uint16_t code, uint32_t a, uint32_t operand)
{
    switch (BPF_OP(code)) {
    case BPF_ADD:
        return a + operand;
    case BPF_SUB:
        return a - operand;
    case BPF_MUL:
        return a * operand;
    case BPF_DIV:
        return operand ? a / operand : 0;
    case BPF_OR:
        return a | operand;
    case BPF_AND:
        return a & operand;
    case BPF_XOR:
        return a ^ operand;
    case BPF_LSH:
        return operand < 32 ? a << operand : 0;
    case BPF_RSH:
        return operand < 32 ? a >> operand : 0;
    default: /* BPF_NEG */
        return -a;
    }
}

static bool jump_taken(uint16_t code, uint32_t a, uint32_t operand)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return a == operand;
    case BPF_JGT:
        return a > operand;
    case BPF_JGE:
        return a >= operand;
    default: /* BPF_JSET */
        return a & operand;
    }
}

static bool shift_or_divide_ok(const struct sock_filter *in)
{
    unsigned op = BPF_OP(in->code);
    if (BPF_SRC(in->code) == BPF_X)
        return true;
    return op == BPF_DIV ? in->k != 0 : (op != BPF_LSH && op != BPF_RSH) || in->k < 32;
}

/* The kernel's check of one instruction (seccomp_check_filter(), bpf_check_classic()); `left`
 * instructions follow it. */
static bool insn_ok(const struct sock_filter *in, size_t left)
{
    switch (in->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        return in->k % 4 == 0 && in->k < sizeof(struct seccomp_data);
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
        return in->k < BPF_MEMWORDS;
    case BPF_JMP | BPF_JA:
        return in->k < left;
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_ALU | BPF_NEG:
        return true;
    }
    unsigned op = BPF_OP(in->code);
    if (in->code <= 0xff && BPF_CLASS(in->code) == BPF_JMP)
        return op >= BPF_JEQ && op <= BPF_JSET && in->jt < left && in->jf < left;
    if (in->code <= 0xff && BPF_CLASS(in->code) == BPF_ALU)
        return (op <= BPF_RSH || op == BPF_XOR) && shift_or_divide_ok(in);
    return false;
}

bool policy_valid(const struct sock_filter *insns, size_t len)
{
    if (len == 0 || len > POLICY_MAX_INSNS || BPF_CLASS(insns[len - 1].code) != BPF_RET)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!insn_ok(&insns[i], len - 1 - i))
            return false;
    return true;
}

static uint32_t data_word(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

static uint32_t load(const struct machine *m, const struct sock_filter *in,
                     const struct seccomp_data *data)
{
    switch (BPF_MODE(in->code)) {
    case BPF_ABS:
        return data_word(data, in->k);
    case BPF_MEM:
        return m->mem[in->k];
    case BPF_LEN:
        return sizeof(*data);
    default: /* BPF_IMM */
        return in->k;
    }
}

static uint32_t operand_of(const struct machine *m, const struct sock_filter *in)
{
    return BPF_SRC(in->code) == BPF_X ? m->x : in->k;
}

/* Everything but jumps and returns. */
static void step(struct machine *m, const struct sock_filter *in, const struct seccomp_data *data)
{
    switch (BPF_CLASS(in->code)) {
    case BPF_LD:
        m->a = load(m, in, data);
        break;
    case BPF_LDX:
        m->x = load(m, in, data);
        break;
    case BPF_ST:
        m->mem[in->k] = m->a;
        break;
    case BPF_STX:
        m->mem[in->k] = m->x;
        break;
    case BPF_ALU:
        m->a = alu(in->code, m->a, operand_of(m, in));
        break;
    case BPF_MISC:
        if (BPF_MISCOP(in->code) == BPF_TAX)
            m->x = m->a;
        else
            m->a = m->x;
        break;
    }
}

uint32_t policy_eval(const struct sock_filter *insns, size_t len, const struct seccomp_data *data)
{
    struct machine m = {0};
    if (!policy_valid(insns, len))
        return SECCOMP_RET_KILL_PROCESS;
    for (size_t pc = 0; pc < len; pc++) {
        const struct sock_filter *in = &insns[pc];
        if (BPF_CLASS(in->code) == BPF_RET)
            return BPF_RVAL(in->code) == BPF_A ? m.a : in->k;
        if (BPF_CLASS(in->code) != BPF_JMP)
            step(&m, in, data);
        else if (BPF_OP(in->code) == BPF_JA)
            pc += in->k;
        else
            pc += jump_taken(in->code, m.a, operand_of(&m, in)) ? in->jt : in->jf;
    }
    return SECCOMP_RET_KILL_PROCESS;
}

/* ---- all calls with one number ---- */

/* A register's value, or that it depends on an argument (or on the way taken). */
struct value {
    bool known;
    uint32_t v;
};

struct state {
    bool reached;
    struct value a, x, mem[BPF_MEMWORDS];
};

static void value_join(struct value *into, struct value from)
{
    if (!from.known || from.v != into->v)
        into->known = false;
}

static void state_join(struct state *into, const struct state *from)
{
    if (!into->reached) {
        *into = *from;
        return;
    }
    value_join(&into->a, from->a);
    value_join(&into->x, from->x);
    for (size_t i = 0; i < BPF_MEMWORDS; i++)
        value_join(&into->mem[i], from->mem[i]);
}

static struct value known(uint32_t v)
{
    return (struct value){.known = true, .v = v};
}

static struct value load_value(const struct state *s, const struct sock_filter *in, uint32_t arch,
                               uint32_t number)
{
    switch (BPF_MODE(in->code)) {
    case BPF_ABS:
        if (in->k == offsetof(struct seccomp_data, nr))
            return known(number);
        if (in->k == offsetof(struct seccomp_data, arch))
            return known(arch);
        return (struct value){0};
    case BPF_MEM:
        return s->mem[in->k];
    case BPF_LEN:
        return known(sizeof(struct seccomp_data));
    default: /* BPF_IMM */
        return known(in->k);
    }
}

static struct value alu_value(uint16_t code, struct value a, struct value operand)
{
    if (BPF_OP(code) == BPF_NEG)
        operand = known(0);
    if (!a.known || !operand.known)
        return (struct value){0};
    return known(alu(code, a.v, operand.v));
}

static struct value operand_value(const struct state *s, const struct sock_filter *in)
{
    return BPF_SRC(in->code) == BPF_X ? s->x : known(in->k);
}

static void step_state(struct state *s, const struct sock_filter *in, uint32_t arch,
                       uint32_t number)
{
    switch (BPF_CLASS(in->code)) {
    case BPF_LD:
        s->a = load_value(s, in, arch, number);
        break;
    case BPF_LDX:
        s->x = load_value(s, in, arch, number);
        break;
    case BPF_ST:
        s->mem[in->k] = s->a;
        break;
    case BPF_STX:
        s->mem[in->k] = s->x;
        break;
    case BPF_ALU:
        s->a = alu_value(in->code, s->a, operand_value(s, in));
        break;
    case BPF_MISC:
        if (BPF_MISCOP(in->code) == BPF_TAX)
            s->x = s->a;
        else
            s->a = s->x;
        break;
    }
}

static void branch(struct state *states, size_t pc, const struct sock_filter *in)
{
    const struct state *now = &states[pc];
    struct value operand = operand_value(now, in);
    bool decided = now->a.known && operand.known;
    bool taken = decided && jump_taken(in->code, now->a.v, operand.v);
    if (!decided || taken)
        state_join(&states[pc + 1 + in->jt], now);
    if (!decided || !taken)
        state_join(&states[pc + 1 + in->jf], now);
}

static bool lets_through(const struct state *now, const struct sock_filter *in)
{
    struct value answer = BPF_RVAL(in->code) == BPF_A ? now->a : known(in->k);
    uint32_t action = answer.v & SECCOMP_RET_ACTION_FULL;
    return !answer.known || action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static void next_states(struct state *states, size_t pc, const struct sock_filter *in,
                        uint32_t arch, uint32_t number)
{
    struct state now = states[pc];
    if (BPF_CLASS(in->code) != BPF_JMP) {
        step_state(&now, in, arch, number);
        state_join(&states[pc + 1], &now);
    } else if (BPF_OP(in->code) == BPF_JA) {
        state_join(&states[pc + 1 + in->k], &now);
    } else {
        branch(states, pc, in);
    }
}

static bool reachable_in(struct state *states, const struct sock_filter *insns, size_t len,
                         uint32_t arch, uint32_t number)
{
    memset(states, 0, len * sizeof(*states));
    states[0] = (struct state){.reached = true, .a = known(0), .x = known(0)};
    for (size_t i = 0; i < BPF_MEMWORDS; i++)
        states[0].mem[i] = known(0);
    for (size_t pc = 0; pc < len; pc++) {
        if (!states[pc].reached)
            continue;
        if (BPF_CLASS(insns[pc].code) != BPF_RET)
            next_states(states, pc, &insns[pc], arch, number);
        else if (lets_through(&states[pc], &insns[pc]))
            return true;
    }
    return false;
}

/* ---- the count ---- */

static const struct {
    const char *name;
    uint32_t arch;
    uint32_t number_bits;
} ABIS[POLICY_ABIS] = {
    [POLICY_ABI_X86_64] = {"x86-64", AUDIT_ARCH_X86_64, 0},
    [POLICY_ABI_X32] = {"x32", AUDIT_ARCH_X86_64, X32_BIT},
    [POLICY_ABI_I386] = {"i386", AUDIT_ARCH_I386, 0},
};

const char *policy_abi_name(enum policy_abi abi)
{
    return ABIS[abi].name;
}

bool policy_reachable(const struct sock_filter *insns, size_t len, enum policy_abi abi,
                      unsigned number)
{
    /* Without memory for the analysis the answer is the careful one. */
    _cleanup_free_ struct state *states = calloc(len ? len : 1, sizeof(*states));
    if (!policy_valid(insns, len))
        return false;
    return !states ||
           reachable_in(states, insns, len, ABIS[abi].arch, number | ABIS[abi].number_bits);
}

unsigned policy_count(const struct policy_program *program, unsigned ret_by_abi[POLICY_ABIS])
{
    unsigned total = 0;
    for (enum policy_abi abi = 0; abi < POLICY_ABIS; abi++) {
        ret_by_abi[abi] = 0;
        for (unsigned number = 0; number < POLICY_COUNT_NUMBERS; number++)
            if (policy_reachable(program->insns, program->len, abi, number))
                ret_by_abi[abi]++;
        total += ret_by_abi[abi];
    }
    return total;
}
