/*
 * seccomp_model.h - what a profile says of a call, read from its rules one after the other: the
 * reference that filters are compared with. For unit tests and fuzzers.
 */
#ifndef HUTCH_TESTS_SECCOMP_MODEL_H
#define HUTCH_TESTS_SECCOMP_MODEL_H

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/dl.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_profile.h"

/* One rule of one call, in the order of the file. */
struct model_rule {
    int number;
    const struct profile_rule *rule;
};

struct model {
    struct profile first; /* where a watchdog counts: its rules stand before the profile's */
    struct profile profile;
    void *library;
    int (*resolve)(const char *name);
    struct model_rule *rules;
    size_t rules_len;
};

static inline void model_close(struct model *m)
{
    profile_free(&m->first);
    profile_free(&m->profile);
    free(m->rules);
    dl_close(m->library);
}

static inline size_t model_names(const struct profile *profile)
{
    size_t names = 0;
    for (size_t i = 0; i < profile->rules_len; i++)
        names += profile->rules[i].names_len;
    return names;
}

static inline void model_add(struct model *m, const struct profile *profile)
{
    for (size_t i = 0; i < profile->rules_len; i++)
        for (size_t n = 0; n < profile->rules[i].names_len && !profile->rules[i].skipped; n++)
            m->rules[m->rules_len++] = (struct model_rule){
                .number = profile_number(m->resolve, profile->rules[i].names[n]),
                .rule = &profile->rules[i]};
}

static inline int model_index(struct model *m)
{
    m->rules = calloc(model_names(&m->first) + model_names(&m->profile) + 1, sizeof(*m->rules));
    if (!m->rules)
        return -ENOMEM;
    model_add(m, &m->first);
    model_add(m, &m->profile);
    return 0;
}

/* 0 if the text is a profile; close it in either case. */
static inline int model_open(struct model *m, const char *json, size_t len, bool watchdog)
{
    struct hutch_error err;
    const struct policy_shipped *first = policy_shipped_find("watchdog");
    const struct dl_symbol symbol = {"seccomp_syscall_resolve_name", &m->resolve};
    int r = dl_open("libseccomp.so.2", "libseccomp2", &symbol, 1, HUTCH_STAGE_POLICY, &m->library,
                    &err);
    if (r == 0 && watchdog)
        r = profile_parse("watchdog", first->json, first->json_len, &m->first, NULL, &err);
    if (r == 0)
        r = profile_parse("model", json, len, &m->profile, NULL, &err);
    return r == 0 ? model_index(m) : r;
}

static inline bool model_condition(const struct scmp_arg_cmp *c, const uint64_t args[6])
{
    uint64_t value = args[c->arg];
    switch (c->op) {
    case SCMP_CMP_EQ:
        return value == c->datum_a;
    case SCMP_CMP_NE:
        return value != c->datum_a;
    case SCMP_CMP_LT:
        return value < c->datum_a;
    case SCMP_CMP_LE:
        return value <= c->datum_a;
    case SCMP_CMP_GE:
        return value >= c->datum_a;
    case SCMP_CMP_GT:
        return value > c->datum_a;
    default: /* masked; libseccomp drops the bits of the value that aren't in the mask */
        return (value & c->datum_a) == (c->datum_b & c->datum_a);
    }
}

/* One argument named twice: any of the conditions is enough. */
static inline bool model_matches(const struct profile_rule *rule, const uint64_t args[6])
{
    unsigned seen = 0, met = 0;
    bool twice = false;
    for (unsigned i = 0; i < rule->args_len; i++) {
        twice |= (seen & 1U << rule->args[i].arg) != 0;
        seen |= 1U << rule->args[i].arg;
        met += model_condition(&rule->args[i], args);
    }
    return twice ? met > 0 : met == rule->args_len;
}

static inline uint32_t model_answer(const struct model *m, int number, const uint64_t args[6])
{
    bool refusal = false;
    uint32_t otherwise = m->profile.default_action;
    for (size_t i = 0; i < m->rules_len; i++) {
        const struct profile_rule *rule = m->rules[i].rule;
        if (m->rules[i].number != number)
            continue;
        if (model_matches(rule, args))
            return rule->action;
        if (rule->refused_errno && !refusal) {
            otherwise = SECCOMP_RET_ERRNO | (uint32_t)rule->refused_errno;
            refusal = true;
        }
    }
    return otherwise;
}

/* ---- arguments ---- */

#define MODEL_POOL 256U

/* Values that rules compare with, their neighbours, and high bits. */
struct model_pool {
    uint64_t values[MODEL_POOL];
    unsigned len;
    uint64_t seed;
};

static inline uint64_t model_chance(struct model_pool *pool)
{
    pool->seed = pool->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return pool->seed >> 29 ^ pool->seed << 17;
}

static inline void model_put(struct model_pool *pool, uint64_t value)
{
    const uint64_t around[] = {value,
                               value,
                               value - 1,
                               value + 1,
                               value | 1ULL << 32,
                               value | 1ULL << 63,
                               value ^ 1ULL << 31};
    for (size_t i = 0; i < ARRAY_LEN(around) && pool->len < MODEL_POOL; i++)
        pool->values[pool->len++] = around[i];
}

static inline void model_fill(const struct model *m, int number, struct model_pool *pool)
{
    model_put(pool, 0);
    for (size_t i = 0; i < m->rules_len; i++)
        for (unsigned a = 0; m->rules[i].number == number && a < m->rules[i].rule->args_len; a++) {
            const struct scmp_arg_cmp *c = &m->rules[i].rule->args[a];
            model_put(pool, c->op == SCMP_CMP_MASKED_EQ ? c->datum_b : c->datum_a);
        }
}

/* The rule's own values, with chance in the bits that it doesn't look at. */
static inline void model_obey(const struct profile_rule *rule, struct model_pool *pool,
                              uint64_t args[6])
{
    for (unsigned a = 0; a < rule->args_len; a++) {
        const struct scmp_arg_cmp *c = &rule->args[a];
        if (c->op == SCMP_CMP_MASKED_EQ)
            args[c->arg] = c->datum_b | (model_chance(pool) & ~c->datum_a);
        else if (c->op != SCMP_CMP_NE)
            args[c->arg] = c->datum_a + (c->op == SCMP_CMP_GT) - (c->op == SCMP_CMP_LT);
    }
}

/* Half of the tuples start from one that a rule matches, so that all of them aren't refused. */
static inline void model_draw(const struct model *m, int number, struct model_pool *pool,
                              uint64_t args[6])
{
    for (unsigned i = 0; i < 6; i++)
        args[i] = model_chance(pool) % 8 ? pool->values[model_chance(pool) % pool->len]
                                         : model_chance(pool);
    size_t first = m->rules_len ? model_chance(pool) % m->rules_len : 0;
    bool obey = model_chance(pool) % 2;
    for (size_t i = 0; obey && i < m->rules_len; i++) {
        const struct model_rule *row = &m->rules[(first + i) % m->rules_len];
        if (row->number == number) {
            model_obey(row->rule, pool, args);
            return;
        }
    }
}

#endif
