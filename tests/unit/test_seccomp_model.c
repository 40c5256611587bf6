/*
 * test_seccomp_model.c - BPF against the JSON that it was made from, read as it says: the shipped
 * profiles, and profiles made by chance of rules that overlap as much as they can.
 * Many argument tuples for each call: the rules' own values, their neighbours, high bits, chance.
 */
#include <criterion/criterion.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernel/seccomp_file.h"
#include "support/seccomp_model.h"

#define NUMBERS 512
#define TUPLES 400

static void open_model(struct model *m, const struct policy_shipped *shipped, bool watchdog)
{
    cr_assert_eq(model_open(m, shipped->json, shipped->json_len, watchdog), 0);
    for (size_t i = 0; i < m->rules_len; i++)
        cr_assert(m->rules[i].number >= 0 && m->rules[i].number < NUMBERS);
}

static bool has_args(const struct model *m, int number)
{
    for (size_t i = 0; i < m->rules_len; i++)
        if (m->rules[i].number == number && m->rules[i].rule->args_len > 0)
            return true;
    return false;
}

static void compare(const struct model *m, const struct policy_code *code, const char *name)
{
    unsigned let_through = 0;
    for (int number = 0; number < NUMBERS; number++) {
        struct model_pool pool = {.seed = (unsigned)number};
        struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};
        int tuples = has_args(m, number) ? TUPLES : 4;
        model_fill(m, number, &pool);
        for (int t = 0; t < tuples; t++) {
            uint64_t args[6];
            model_draw(m, number, &pool, args);
            memcpy(data.args, args, sizeof(args));
            uint32_t want = model_answer(m, number, args);
            uint32_t got = policy_eval(code->insns, code->len, &data);
            let_through += got == SECCOMP_RET_ALLOW;
            cr_assert_eq(got, want, "%s: call %d(%#lx, %#lx, %#lx, ..) is %x, not %x", name, number,
                         args[0], args[1], args[2], got, want);
        }
    }
    cr_expect_gt(let_through, 100, "%s: the tuples don't reach its rules", name);
}

Test(seccomp_model, the_filters_say_what_the_files_say)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        for (int v = 0; v < POLICY_VARIANTS; v++) {
            _cleanup_(model_close) struct model m = {0};
            open_model(&m, &POLICY_SHIPPED[i], v == POLICY_WATCHDOG);
            compare(&m, &POLICY_SHIPPED[i].code[v], POLICY_SHIPPED[i].name);
        }
}

static bool some_tuple_passes(const struct model *m, const struct policy_code *code, int number)
{
    struct model_pool pool = {.seed = (unsigned)number};
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};
    bool passes = false;
    model_fill(m, number, &pool);
    for (int t = 0; t < TUPLES && !passes; t++) {
        uint64_t args[6];
        model_draw(m, number, &pool, args);
        memcpy(data.args, args, sizeof(args));
        passes = policy_eval(code->insns, code->len, &data) == SECCOMP_RET_ALLOW;
    }
    return passes;
}

/* The count takes every branch on an argument as possible; here each is proven possible: for
 * every number that it calls reachable, a tuple that the filter lets through is found. */
Test(seccomp_model, the_count_is_exact)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++) {
        _cleanup_(model_close) struct model m = {0};
        const struct policy_code *code = &POLICY_SHIPPED[i].code[POLICY_CGROUP];
        open_model(&m, &POLICY_SHIPPED[i], false);
        for (int number = 0; number < NUMBERS; number++)
            cr_expect_eq(
                some_tuple_passes(&m, code, number),
                policy_reachable(code->insns, code->len, POLICY_ABI_X86_64, (unsigned)number),
                "%s: call %d", POLICY_SHIPPED[i].name, number);
    }
}

/* ---- by chance ---- */

static void put_condition(struct buf *json, struct model_pool *dice)
{
    static const char *const OPS[] = {"EQ", "MASKED_EQ", "MASKED_EQ", "MASKED_EQ",
                                      "NE", "GT",        "LE",        "EQ"};
    static const uint64_t MASKS[] = {1, 3, 15, UINT32_MAX, UINT64_MAX, 6};
    const char *op = OPS[model_chance(dice) % ARRAY_LEN(OPS)];
    uint64_t value = model_chance(dice) % 4;
    uint64_t mask = MASKS[model_chance(dice) % ARRAY_LEN(MASKS)];
    bool masked = op[0] == 'M';
    buf_printf(json, "{\"index\":%u,\"value\":%lu,\"valueTwo\":%lu,\"op\":\"SCMP_CMP_%s\"}",
               (unsigned)(model_chance(dice) % 3), masked ? mask : value, masked ? value : 0, op);
}

static void put_rule(struct buf *json, struct model_pool *dice)
{
    static const char *const NAMES[] = {"close", "dup"};
    static const char *const ACTIONS[] = {"ALLOW\"", "ALLOW\"", "ERRNO\",\"errnoRet\":5",
                                          "ALLOW\",\"errnoRet\":7"};
    unsigned conditions = model_chance(dice) % 16 == 0 ? 0 : 1 + model_chance(dice) % 3;
    buf_printf(json, "{\"names\":[\"%s\"],\"action\":\"SCMP_ACT_%s,\"args\":[",
               NAMES[model_chance(dice) % 2], ACTIONS[model_chance(dice) % ARRAY_LEN(ACTIONS)]);
    for (unsigned i = 0; i < conditions; i++) {
        buf_puts(json, i > 0 ? "," : "");
        put_condition(json, dice);
    }
    buf_puts(json, "]}");
}

static void compare_by_chance(const char *json, size_t len, struct model_pool *dice)
{
    static const int NUMBERS_USED[] = {SYS_close, SYS_dup, SYS_read};
    _cleanup_(model_close) struct model m = {0};
    _cleanup_(policy_program_free) struct policy_program program = {0};
    struct hutch_error err = {0};
    cr_assert_eq(model_open(&m, json, len, false), 0);
    cr_assert_eq(policy_load_text("chance", json, len, POLICY_CGROUP, &program, NULL, &err), 0,
                 "%s: %s", json, err.message);
    for (int t = 0; t < 300; t++) {
        struct seccomp_data data = {.nr = NUMBERS_USED[t % 3], .arch = AUDIT_ARCH_X86_64};
        for (unsigned i = 0; i < 3; i++)
            data.args[i] = model_chance(dice) % 5 | (model_chance(dice) % 4 ? 0 : 1ULL << 32);
        uint64_t args[6];
        memcpy(args, data.args, sizeof(args));
        uint32_t want = model_answer(&m, data.nr, args);
        uint32_t got = policy_eval(program.insns, program.len, &data);
        cr_assert_eq(got, want, "call %d(%#lx, %#lx, %#lx) is %x, not %x under %s", data.nr,
                     args[0], args[1], args[2], got, want, json);
    }
}

Test(seccomp_model, profiles_made_by_chance_mean_what_they_say)
{
    struct model_pool dice = {.seed = 42};
    for (int round = 0; round < 400; round++) {
        _cleanup_buf_ struct buf json = BUF(1 << 16);
        unsigned rules = 1 + (unsigned)(model_chance(&dice) % 8);
        buf_puts(&json, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[");
        for (unsigned i = 0; i < rules; i++) {
            buf_puts(&json, i > 0 ? "," : "");
            put_rule(&json, &dice);
        }
        buf_puts(&json, "]}");
        buf_put(&json, "", 1);
        compare_by_chance(json.data, json.len - 1, &dice);
    }
}
