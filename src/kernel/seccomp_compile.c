/*
 * seccomp_compile.c - a profile to BPF, by libseccomp.
 *
 * The first rule that matches a call decides it. libseccomp alone can't be given that:
 *
 *  - A call that no rule matches gets the default action, whether its number is unknown or only
 *    its arguments are wrong. We want ENOSYS for the one and EPERM for the other (`errnoRet` on
 *    an ALLOW rule with args).
 *  - The rules of one call become one tree. With inequalities among their conditions version
 *    2.5.4 builds trees that answer wrongly, and loops for ever on some (found by fuzzing).
 *
 * So a profile becomes a chain of filters. The first decides every call that no argument decides
 * and answers the others with a mark; each next one has at most one rule of a call, or several
 * that can't get into each other's way, and marks what it doesn't match. Then each mark is
 * replaced by a jump to the next filter. Most profiles have two or three.
 *
 * Only x86-64 is ever added to a filter. The other ABIs (i386; x32 by its bit in the number) get
 * libseccomp's bad-architecture action, before anything else is looked at.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_profile.h"

#define STAGE HUTCH_STAGE_POLICY
#define NUMBERS_MAX 1024
#define FILTERS_MAX 64U
/* More can't fit into a filter; and it bounds the time that comparing them takes. */
#define ENTRIES_MAX POLICY_MAX_INSNS
/* "Go on in filter f": an action that no profile can have. */
#define MARK(filter) SCMP_ACT_TRACE(0xf000U + (filter))

/* Calls that libseccomp 2.5 has no names for. */
static const struct {
    const char *name;
    int number;
} NEWER[] = {{"fchmodat2", 452}};

/* One rule of one call. */
struct entry {
    unsigned number;
    unsigned filter; /* where it stands: 1.. */
    uint32_t action;
    const struct scmp_arg_cmp *args;
    unsigned args_len;
};

/* What is known of one call. */
struct call {
    unsigned filters;  /* the last one that has rules of it; 0: no argument decides */
    bool decided;      /* there is a rule without args: those after it are never reached */
    bool has_refusal;  /* a rule says what refused arguments get */
    uint32_t fallback; /* the answer when no rule with args matches, if one of the two is set */
};

struct compiler {
    const char *name;
    const struct profile *profile;
    const struct profile_lib *lib;
    struct buf *notes;
    struct entry *entries;
    size_t entries_len, entries_cap;
    unsigned filters; /* the last filter: 0.. */
    struct call calls[NUMBERS_MAX];
};

static void free_compiler(struct compiler *c)
{
    free(c->entries);
}

void profile_code_free(struct profile_code *code)
{
    free(code->insns);
    *code = (struct profile_code){0};
}

static int failed(const struct compiler *c, struct hutch_error *err, int code, const char *what)
{
    return error_errno(err, STAGE, code, "seccomp profile %s: %s", c->name, what);
}

/* ---- where each rule stands ---- */

static uint64_t mask_of(const struct scmp_arg_cmp *cond)
{
    return cond->op == SCMP_CMP_EQ ? UINT64_MAX : cond->datum_a;
}

/* Careful with libseccomp's trees: the same arguments are compared for equality, and before the
 * last one two conditions are either the same or can't both hold. */
static bool can_stand_together(const struct entry *a, const struct entry *b)
{
    if (a->action != b->action || a->args_len != b->args_len)
        return false;
    for (unsigned i = 0; i < a->args_len; i++) {
        const struct scmp_arg_cmp *x = &a->args[i], *y = &b->args[i];
        bool equalities = (x->op == SCMP_CMP_EQ || x->op == SCMP_CMP_MASKED_EQ) &&
                          (y->op == SCMP_CMP_EQ || y->op == SCMP_CMP_MASKED_EQ);
        if (!equalities || x->arg != y->arg || (i > 0 && x->arg < x[-1].arg))
            return false;
        if (i + 1 < a->args_len && (x->op != y->op || mask_of(x) != mask_of(y)))
            return false;
    }
    return true;
}

static bool fits_last_filter(const struct compiler *c, const struct entry *entry)
{
    unsigned last = c->calls[entry->number].filters;
    for (size_t i = 0; i < c->entries_len; i++)
        if (c->entries[i].number == entry->number && c->entries[i].filter == last &&
            !can_stand_together(&c->entries[i], entry))
            return false;
    return last > 0;
}

static int add_entry(struct compiler *c, struct entry entry, struct hutch_error *err)
{
    struct call *call = &c->calls[entry.number];
    if (!fits_last_filter(c, &entry))
        call->filters++;
    if (call->filters > FILTERS_MAX || c->entries_len == ENTRIES_MAX)
        return error_request(err, "seccomp profile %s: too many rules with args", c->name);
    if (c->entries_len == c->entries_cap) {
        size_t cap = c->entries_cap ? c->entries_cap * 2 : 64;
        struct entry *entries = reallocarray(c->entries, cap, sizeof(*entries));
        if (!entries)
            return error_oom(err, STAGE);
        c->entries = entries;
        c->entries_cap = cap;
    }
    entry.filter = call->filters;
    c->entries[c->entries_len++] = entry;
    return 0;
}

static bool same_index_twice(const struct profile_rule *rule)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < rule->args_len; i++) {
        if (seen & 1U << rule->args[i].arg)
            return true;
        seen |= 1U << rule->args[i].arg;
    }
    return false;
}

/* Conditions are a conjunction; but as with runc, one argument named twice makes each condition
 * a rule of its own, because profiles of old were written so. */
static int add_conditions(struct compiler *c, unsigned number, const struct profile_rule *rule,
                          struct hutch_error *err)
{
    struct entry entry = {
        .number = number, .action = rule->action, .args = rule->args, .args_len = rule->args_len};
    if (!same_index_twice(rule))
        return add_entry(c, entry, err);
    entry.args_len = 1;
    for (unsigned i = 0; i < rule->args_len; i++, entry.args++) {
        int r = add_entry(c, entry, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int survey_call(struct compiler *c, unsigned number, const struct profile_rule *rule,
                       struct hutch_error *err)
{
    struct call *call = &c->calls[number];
    if (call->decided)
        return 0;
    if (rule->args_len == 0) {
        call->decided = true;
        call->fallback = rule->action;
        return 0;
    }
    if (rule->refused_errno && !call->has_refusal) {
        call->has_refusal = true;
        call->fallback = SCMP_ACT_ERRNO((uint32_t)rule->refused_errno);
    }
    return add_conditions(c, number, rule, err);
}

int profile_number(int (*resolve_name)(const char *name), const char *name)
{
    int number = resolve_name(name);
    for (size_t i = 0; number == __NR_SCMP_ERROR && i < ARRAY_LEN(NEWER); i++)
        if (strcmp(name, NEWER[i].name) == 0)
            number = NEWER[i].number;
    return number;
}

/* -1: not a call of x86-64. libseccomp knows the names of other architectures as well, by
 * numbers below -1. */
static int number_of(const struct compiler *c, const char *name)
{
    int number = profile_number(c->lib->resolve_name, name);
    if (number == __NR_SCMP_ERROR && c->notes)
        buf_printf(c->notes, "unknown system call \"%s\": it is ignored\n", name);
    return number >= 0 && number < NUMBERS_MAX ? number : -1;
}

static int survey(struct compiler *c, const struct profile *profile, struct hutch_error *err)
{
    for (size_t i = 0; i < profile->rules_len; i++) {
        const struct profile_rule *rule = &profile->rules[i];
        for (size_t n = 0; n < rule->names_len && !rule->skipped; n++) {
            int number = number_of(c, rule->names[n]);
            int r = number < 0 ? 0 : survey_call(c, (unsigned)number, rule, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- one filter ---- */

static uint32_t fallback_of(const struct compiler *c, const struct call *call)
{
    return call->decided || call->has_refusal ? call->fallback : c->profile->default_action;
}

/* How many filters there are behind the first, and what the last one answers by default. Calls
 * that end there with another fallback need one more, in which it is all that is said. */
static uint32_t last_default(struct compiler *c)
{
    uint32_t action = c->profile->default_action;
    bool first = true, differ = false;
    for (unsigned n = 0; n < NUMBERS_MAX; n++)
        if (c->calls[n].filters > c->filters)
            c->filters = c->calls[n].filters;
    for (unsigned n = 0; n < NUMBERS_MAX && c->filters > 0; n++) {
        if (c->calls[n].filters < c->filters)
            continue;
        differ |= !first && action != fallback_of(c, &c->calls[n]);
        action = fallback_of(c, &c->calls[n]);
        first = false;
    }
    c->filters += differ;
    return action;
}

static int add(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
               const struct entry *entry, struct hutch_error *err)
{
    if (entry->action == default_action)
        return 0; /* libseccomp refuses what the default says already */
    int r = c->lib->rule_add_array(ctx, entry->action, (int)entry->number, entry->args_len,
                                   entry->args);
    return r < 0 && r != -EEXIST ? failed(c, err, r, "libseccomp refuses a rule") : 0;
}

/* What a filter says of a call apart from its rules there: the first sends it on or decides it,
 * the one behind its last rules decides it. */
static bool plain_answer(const struct compiler *c, unsigned number, unsigned filter,
                         uint32_t *ret_action)
{
    const struct call *call = &c->calls[number];
    if (filter == 0 && call->filters > 0)
        *ret_action = MARK(1);
    else if (filter == 0 || (call->filters > 0 && filter == call->filters + 1))
        *ret_action = fallback_of(c, call);
    else
        return false;
    return true;
}

static int add_rules(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
                     unsigned filter, struct hutch_error *err)
{
    int r = 0;
    for (unsigned number = 0; r == 0 && number < NUMBERS_MAX; number++) {
        struct entry plain = {.number = number};
        if (plain_answer(c, number, filter, &plain.action))
            r = add(c, ctx, default_action, &plain, err);
    }
    for (size_t i = 0; r == 0 && i < c->entries_len; i++)
        if (c->entries[i].filter == filter)
            r = add(c, ctx, default_action, &c->entries[i], err);
    return r;
}

static int set_attributes(const struct compiler *c, scmp_filter_ctx ctx, struct hutch_error *err)
{
    int r = c->lib->attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    /* 2: a binary tree over the numbers, so that no call pays for its place in a list. */
    if (r == 0)
        r = c->lib->attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return r < 0 ? failed(c, err, r, "libseccomp refuses an attribute") : 0;
}

/* ---- BPF out of libseccomp ---- */

static int read_code(const struct compiler *c, int fd, struct profile_code *ret,
                     struct hutch_error *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size <= 0 || size % (off_t)sizeof(struct sock_filter) != 0 ||
        size > (off_t)(POLICY_MAX_INSNS * sizeof(struct sock_filter)))
        return failed(c, err, EMSGSIZE, "its filter is empty or too long");
    _cleanup_free_ struct sock_filter *insns = malloc((size_t)size);
    if (!insns)
        return error_oom(err, STAGE);
    if (pread(fd, insns, (size_t)size, 0) != (ssize_t)size)
        return failed(c, err, EIO, "reading its filter back");
    ret->insns = take_ptr(insns);
    ret->len = (size_t)size / sizeof(struct sock_filter);
    return 0;
}

static int export_code(const struct compiler *c, scmp_filter_ctx ctx, struct profile_code *ret,
                       struct hutch_error *err)
{
    _cleanup_close_ int fd = memfd_create("hutch-seccomp", MFD_CLOEXEC);
    if (fd < 0)
        return failed(c, err, errno, "memfd_create");
    int r = c->lib->export_bpf(ctx, fd);
    if (r < 0)
        return failed(c, err, r, "libseccomp can't make a filter of it");
    return read_code(c, fd, ret, err);
}

static int fill(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
                unsigned filter, struct profile_code *ret, struct hutch_error *err)
{
    int r = set_attributes(c, ctx, err);
    if (r == 0)
        r = add_rules(c, ctx, default_action, filter, err);
    return r == 0 ? export_code(c, ctx, ret, err) : r;
}

static int make_filter(const struct compiler *c, unsigned filter, uint32_t default_action,
                       struct profile_code *ret, struct hutch_error *err)
{
    scmp_filter_ctx ctx = c->lib->init(default_action);
    if (!ctx)
        return error_oom(err, STAGE);
    int r = fill(c, ctx, default_action, filter, ret, err);
    c->lib->release(ctx);
    return r;
}

/* ---- the whole ---- */

int profile_chain(struct profile_code *code, uint32_t action, const struct sock_filter *next,
                  size_t next_len, struct hutch_error *err)
{
    size_t len = code->len;
    if (len + next_len > POLICY_MAX_INSNS)
        return error_set(err, STAGE, E2BIG, "seccomp profile: its filter is over %u instructions",
                         POLICY_MAX_INSNS);
    struct sock_filter *insns = reallocarray(code->insns, len + next_len, sizeof(*insns));
    if (!insns)
        return error_oom(err, STAGE);
    code->insns = insns;
    code->len = len + next_len;
    memcpy(insns + len, next, next_len * sizeof(*insns));
    for (size_t i = 0; i < len; i++)
        if (insns[i].code == (BPF_RET | BPF_K) && insns[i].k == action)
            insns[i] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, (uint32_t)(len - i - 1), 0, 0);
    return 0;
}

static int make_filters(struct compiler *c, struct profile_code *code, struct hutch_error *err)
{
    uint32_t last = last_default(c);
    int r = make_filter(c, 0, c->profile->default_action, code, err);
    for (unsigned filter = 1; r == 0 && filter <= c->filters; filter++) {
        _cleanup_profile_code_ struct profile_code next = {0};
        r = make_filter(c, filter, filter < c->filters ? MARK(filter + 1) : last, &next, err);
        if (r == 0)
            r = profile_chain(code, MARK(filter), next.insns, next.len, err);
    }
    return r;
}

int profile_compile(const char *name, const struct profile *first, const struct profile *profile,
                    const struct profile_lib *lib, struct profile_code *ret, struct buf *notes,
                    struct hutch_error *err)
{
    _cleanup_(free_compiler) struct compiler c = {
        .name = name, .profile = profile, .lib = lib, .notes = notes};
    _cleanup_profile_code_ struct profile_code code = {0};
    int r = first ? survey(&c, first, err) : 0;
    if (r == 0)
        r = survey(&c, profile, err);
    if (r == 0)
        r = make_filters(&c, &code, err);
    if (r < 0)
        return r;
    *ret = code;
    code = (struct profile_code){0};
    return 0;
}
