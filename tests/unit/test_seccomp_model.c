/*
 * test_seccomp_model.c - the BPF of every shipped profile against its JSON, read as it says: a
 * call is what the first matching rule says, else what refuses its arguments, else the default.
 * Many argument tuples for each call: the rules' own values, their neighbours, high bits, chance.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/dl.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_profile.h"

#define NUMBERS 512
#define POOL_MAX 512U
#define TUPLES 400

struct model {
    struct profile profile;
    int (*resolve)(const char *name);
    void *library;
    /* For each number, the rules that name it. */
    const struct profile_rule *rules[NUMBERS][64];
    unsigned rules_len[NUMBERS];
    bool hidden[NUMBERS];
};

struct pool {
    uint64_t values[POOL_MAX];
    unsigned len;
    uint64_t seed;
};

static void index_rules(struct model *m)
{
    for (size_t i = 0; i < m->profile.rules_len; i++)
        for (size_t n = 0; n < m->profile.rules[i].names_len; n++) {
            int number = m->resolve(m->profile.rules[i].names[n]);
            cr_assert(number >= 0 && number < NUMBERS, "%s", m->profile.rules[i].names[n]);
            cr_assert_lt(m->rules_len[number], 64);
            m->rules[number][m->rules_len[number]++] = &m->profile.rules[i];
        }
}

static void open_model(struct model *m, const struct policy_shipped *shipped, bool watchdog)
{
    static const int HIDDEN[] = {SYS_memfd_create, SYS_shmget,         SYS_shmat,       SYS_shmctl,
                                 SYS_shmdt,        SYS_semget,         SYS_msgget,      SYS_mq_open,
                                 SYS_bpf,          SYS_io_uring_setup, SYS_memfd_secret};
    struct hutch_error err;
    const struct dl_symbol symbol = {"seccomp_syscall_resolve_name", &m->resolve};
    cr_assert_eq(dl_open("libseccomp.so.2", "libseccomp2", &symbol, 1, HUTCH_STAGE_POLICY,
                         &m->library, &err),
                 0);
    cr_assert_eq(
        profile_parse(shipped->name, shipped->json, shipped->json_len, &m->profile, NULL, &err), 0,
        "%s", err.message);
    index_rules(m);
    for (size_t i = 0; watchdog && i < ARRAY_LEN(HIDDEN); i++)
        m->hidden[HIDDEN[i]] = true;
}

static void close_model(struct model *m)
{
    profile_free(&m->profile);
    dl_close(m->library);
}

static bool condition_holds(const struct scmp_arg_cmp *c, const uint64_t args[6])
{
    uint64_t value = args[c->arg];
    cr_assert(c->op == SCMP_CMP_EQ || c->op == SCMP_CMP_NE || c->op == SCMP_CMP_MASKED_EQ);
    if (c->op == SCMP_CMP_MASKED_EQ)
        return (value & c->datum_a) == c->datum_b;
    return (value == c->datum_a) == (c->op == SCMP_CMP_EQ);
}

static bool rule_matches(const struct profile_rule *rule, const uint64_t args[6])
{
    for (unsigned i = 0; i < rule->args_len; i++)
        if (!condition_holds(&rule->args[i], args))
            return false;
    return true;
}

static uint32_t model_answer(const struct model *m, unsigned number, const uint64_t args[6])
{
    uint32_t otherwise = m->profile.default_action;
    if (m->hidden[number])
        return SECCOMP_RET_ERRNO | ENOSYS;
    for (unsigned i = 0; i < m->rules_len[number]; i++) {
        const struct profile_rule *rule = m->rules[number][i];
        if (rule_matches(rule, args))
            return rule->action;
        if (rule->refused_errno)
            otherwise = SECCOMP_RET_ERRNO | (uint32_t)rule->refused_errno;
    }
    return otherwise;
}

/* ---- arguments ---- */

static uint64_t chance(struct pool *pool)
{
    pool->seed = pool->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return pool->seed >> 29 ^ pool->seed << 17;
}

static void put(struct pool *pool, uint64_t value)
{
    if (pool->len < POOL_MAX)
        pool->values[pool->len++] = value;
}

static void put_around(struct pool *pool, uint64_t value)
{
    put(pool, value);
    put(pool, value);
    put(pool, value - 1);
    put(pool, value + 1);
    put(pool, value | 1ULL << 32);
    put(pool, value | 1ULL << 63);
    put(pool, value ^ 1ULL << 31);
}

static void fill_pool(const struct model *m, unsigned number, struct pool *pool)
{
    put_around(pool, 0);
    for (unsigned i = 0; i < m->rules_len[number]; i++)
        for (unsigned a = 0; a < m->rules[number][i]->args_len; a++) {
            const struct scmp_arg_cmp *c = &m->rules[number][i]->args[a];
            put_around(pool, c->op == SCMP_CMP_MASKED_EQ ? c->datum_b : c->datum_a);
        }
}

/* Half of the tuples start from one that a rule allows, so that all of them aren't refused. */
static void draw(const struct model *m, unsigned number, struct pool *pool, uint64_t args[6])
{
    for (unsigned i = 0; i < 6; i++)
        args[i] = chance(pool) % 8 ? pool->values[chance(pool) % pool->len] : chance(pool);
    if (m->rules_len[number] == 0 || chance(pool) % 2)
        return;
    const struct profile_rule *rule = m->rules[number][chance(pool) % m->rules_len[number]];
    for (unsigned a = 0; a < rule->args_len; a++)
        if (rule->args[a].op == SCMP_CMP_MASKED_EQ)
            args[rule->args[a].arg] =
                rule->args[a].datum_b | (chance(pool) & ~rule->args[a].datum_a);
        else if (rule->args[a].op == SCMP_CMP_EQ)
            args[rule->args[a].arg] = rule->args[a].datum_a;
}

static void compare(const struct model *m, const struct policy_code *code, const char *name)
{
    unsigned let_through = 0;
    for (unsigned number = 0; number < NUMBERS; number++) {
        struct pool pool = {.seed = number};
        struct seccomp_data data = {.nr = (int)number, .arch = AUDIT_ARCH_X86_64};
        int tuples = m->rules_len[number] > 1 || number == SYS_clone ? TUPLES : 8;
        fill_pool(m, number, &pool);
        for (int t = 0; t < tuples; t++) {
            uint64_t args[6];
            draw(m, number, &pool, args);
            memcpy(data.args, args, sizeof(args));
            uint32_t want = model_answer(m, number, args);
            uint32_t got = policy_eval(code->insns, code->len, &data);
            let_through += got == SECCOMP_RET_ALLOW;
            cr_assert_eq(got, want, "%s: call %u(%#lx, %#lx, %#lx, ..) is %x, not %x", name, number,
                         args[0], args[1], args[2], got, want);
        }
    }
    cr_expect_gt(let_through, 100, "%s: the tuples don't reach its rules", name);
}

Test(seccomp_model, the_filters_say_what_the_files_say)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        for (int v = 0; v < POLICY_VARIANTS; v++) {
            _cleanup_(close_model) struct model m = {0};
            open_model(&m, &POLICY_SHIPPED[i], v == POLICY_WATCHDOG);
            compare(&m, &POLICY_SHIPPED[i].code[v], POLICY_SHIPPED[i].name);
        }
}

/* The count takes every branch on an argument as possible; here each is proven possible: for
 * every number that it calls reachable, a tuple that the filter lets through is found. */
Test(seccomp_model, the_count_is_exact)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++) {
        _cleanup_(close_model) struct model m = {0};
        const struct policy_code *code = &POLICY_SHIPPED[i].code[POLICY_CGROUP];
        open_model(&m, &POLICY_SHIPPED[i], false);
        for (unsigned number = 0; number < NUMBERS; number++) {
            struct pool pool = {.seed = number};
            struct seccomp_data data = {.nr = (int)number, .arch = AUDIT_ARCH_X86_64};
            bool seen = false;
            fill_pool(&m, number, &pool);
            for (int t = 0; t < TUPLES && !seen; t++) {
                uint64_t args[6];
                draw(&m, number, &pool, args);
                memcpy(data.args, args, sizeof(args));
                seen = policy_eval(code->insns, code->len, &data) == SECCOMP_RET_ALLOW;
            }
            cr_expect_eq(seen, policy_reachable(code->insns, code->len, POLICY_ABI_X86_64, number),
                         "%s: call %u", POLICY_SHIPPED[i].name, number);
        }
    }
}
