/*
 * fuzz_seccomp.c - a user's profile, and BPF that isn't ours. Whatever compiles must be a filter
 * that the kernel would load, say of every call what the floor and the profile's rules say, and
 * stay closed to foreign ABIs.
 */
#include <linux/audit.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/seccomp_file.h"
#include "support/seccomp_model.h"

#define TUPLES 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void compare_call(const struct policy_program *program, const struct model *floor,
                         const struct model *model, int number)
{
    struct model_pool pool = {.seed = (unsigned)number};
    struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};
    model_fill(model, number, &pool);
    model_fill(floor, number, &pool);
    for (int t = 0; t < TUPLES; t++) {
        uint64_t args[6];
        model_draw(model, number, &pool, args);
        memcpy(data.args, args, sizeof(args));
        uint32_t want = model_answer(floor, number, args);
        if (want == SECCOMP_RET_ALLOW)
            want = model_answer(model, number, args);
        require(policy_eval(program->insns, program->len, &data) == want);
    }
}

static void check_filter(const struct policy_program *program, const char *text, size_t len,
                         bool watchdog)
{
    _cleanup_(model_close) struct model floor = {0}, model = {0};
    const struct policy_shipped *shipped = policy_shipped_find("floor");
    require(policy_valid(program->insns, program->len));
    require(model_open(&floor, shipped->json, shipped->json_len, watchdog) == 0);
    require(model_open(&model, text, len, false) == 0);
    for (size_t i = 0; i < model.rules_len && i < 64; i++)
        if (model.rules[i].number >= 0)
            compare_call(program, &floor, &model, model.rules[i].number);
    for (unsigned number = 0; number < 16; number++) {
        compare_call(program, &floor, &model, (int)number * 31);
        require(!policy_reachable(program->insns, program->len, POLICY_ABI_X32, number));
        require(!policy_reachable(program->insns, program->len, POLICY_ABI_I386, number));
    }
}

static void read_profile(const char *text, size_t len, bool watchdog)
{
    _cleanup_(policy_program_free) struct policy_program program = {0};
    _cleanup_buf_ struct buf notes = BUF(1 << 20);
    struct hutch_error err = {0};
    int r = policy_load_text("fuzz", text, len, watchdog ? POLICY_WATCHDOG : POLICY_CGROUP,
                             &program, &notes, &err);
    if (r == 0)
        check_filter(&program, text, len, watchdog);
    else
        require(err.message[0] != '\0' && !program.insns);
}

/* What the interpreter calls valid it must run to an answer; where one call gets through, its
 * number must count as reachable. */
static void run_bpf(const uint8_t *data, size_t size)
{
    size_t len = size / sizeof(struct sock_filter);
    _cleanup_free_ struct sock_filter *insns = malloc(size + 1);
    require(insns);
    memcpy(insns, data, len * sizeof(*insns));
    struct seccomp_data call = {.nr = 1, .arch = AUDIT_ARCH_X86_64, .args = {1, 2, 3, 4, 5, 6}};
    uint32_t got = policy_eval(insns, len, &call);
    if (policy_valid(insns, len) && got == SECCOMP_RET_ALLOW)
        require(policy_reachable(insns, len, POLICY_ABI_X86_64, 1));
}

/* The first byte chooses, so that seeds are profiles behind one character. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'b')
        run_bpf(data + 1, size - 1);
    else
        read_profile((const char *)data + 1, size - 1, data[0] == 'w');
    return 0;
}
