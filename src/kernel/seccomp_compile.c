/*
 * seccomp_compile.c - a profile to BPF, by libseccomp.
 *
 * libseccomp gives every call that no rule matches the default action, whether the number is
 * unknown or only the arguments are wrong. We want ENOSYS for the one and EPERM for the other
 * (`errnoRet` on an ALLOW rule with args), so such calls are decided in a filter of their own:
 * the first filter answers them with a mark, the next one has the rules and the errno as its
 * default, and the mark is then replaced by a jump to it.
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
#define GROUPS_MAX 4U
/* The mark of group g: an action that no profile can have. */
#define MARK(group) SCMP_ACT_TRACE(0xf000U + (group))

/* What makes memory that belongs to no process, so that adding up the processes misses it. */
static const char *const HIDDEN_MEMORY[] = {
    "memfd_create", "memfd_secret", "shmget",  "shmat",          "shmctl", "shmdt",
    "semget",       "msgget",       "mq_open", "io_uring_setup", "bpf",
};

struct compiler {
    const char *name;
    const struct profile *profile;
    const struct profile_lib *lib;
    struct buf *notes;
    int groups[GROUPS_MAX]; /* the errno of each group of calls decided in a filter of their own */
    unsigned groups_len;
    uint8_t group_of[NUMBERS_MAX]; /* 1 + group, 0: decided in the first filter */
    bool hidden[NUMBERS_MAX];      /* refused, whatever the rules say */
};

void profile_code_free(struct profile_code *code)
{
    free(code->insns);
    *code = (struct profile_code){0};
}

/* ---- names ---- */

/* -1: not a call of x86-64. libseccomp knows the names of other architectures as well, by
 * numbers below -1. */
static int number_of(const struct compiler *c, const char *name, bool say)
{
    int number = c->lib->resolve_name(name);
    if (number == __NR_SCMP_ERROR && say && c->notes)
        buf_printf(c->notes, "unknown system call \"%s\": it is ignored\n", name);
    return number >= 0 && number < NUMBERS_MAX ? number : -1;
}

static int find_group(struct compiler *c, int refused_errno, struct hutch_error *err)
{
    for (unsigned g = 0; g < c->groups_len; g++)
        if (c->groups[g] == refused_errno)
            return (int)g;
    if (c->groups_len == GROUPS_MAX)
        return error_request(err,
                             "seccomp profile %s: more than %u different errnoRet of rules "
                             "with args",
                             c->name, GROUPS_MAX);
    c->groups[c->groups_len] = refused_errno;
    return (int)c->groups_len++;
}

static int group_rule(struct compiler *c, const struct profile_rule *rule, struct hutch_error *err)
{
    int group = rule->refused_errno ? find_group(c, rule->refused_errno, err) : 0;
    if (group < 0)
        return group;
    for (size_t i = 0; i < rule->names_len; i++) {
        int number = number_of(c, rule->names[i], true);
        if (number >= 0 && rule->refused_errno)
            c->group_of[number] = (uint8_t)(group + 1);
    }
    return 0;
}

static int survey(struct compiler *c, bool watchdog, struct hutch_error *err)
{
    for (size_t i = 0; watchdog && i < ARRAY_LEN(HIDDEN_MEMORY); i++) {
        int number = number_of(c, HIDDEN_MEMORY[i], false);
        if (number >= 0)
            c->hidden[number] = true;
    }
    for (size_t i = 0; i < c->profile->rules_len; i++) {
        const struct profile_rule *rule = &c->profile->rules[i];
        int r = rule->skipped ? 0 : group_rule(c, rule, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- one filter ---- */

static int failed(const struct compiler *c, struct hutch_error *err, int code, const char *what)
{
    return error_errno(err, STAGE, code, "seccomp profile %s: %s", c->name, what);
}

static int add(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
               uint32_t action, int number, const struct scmp_arg_cmp *args, unsigned args_len,
               struct hutch_error *err)
{
    if (action == default_action)
        return 0;
    int r = c->lib->rule_add_array(ctx, action, number, args_len, args);
    if (r < 0 && r != -EEXIST)
        return failed(c, err, r, "libseccomp refuses a rule");
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
static int add_rule(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
                    const struct profile_rule *rule, int number, struct hutch_error *err)
{
    if (!same_index_twice(rule))
        return add(c, ctx, default_action, rule->action, number, rule->args, rule->args_len, err);
    for (unsigned i = 0; i < rule->args_len; i++) {
        int r = add(c, ctx, default_action, rule->action, number, &rule->args[i], 1, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The rules of the calls that this filter decides: group 0 is the first filter. */
static int add_rules(const struct compiler *c, scmp_filter_ctx ctx, uint32_t default_action,
                     unsigned group, struct hutch_error *err)
{
    for (size_t i = 0; i < c->profile->rules_len; i++) {
        const struct profile_rule *rule = &c->profile->rules[i];
        for (size_t n = 0; n < rule->names_len && !rule->skipped; n++) {
            int number = number_of(c, rule->names[n], false);
            if (number < 0 || c->hidden[number] || c->group_of[number] != group)
                continue;
            int r = add_rule(c, ctx, default_action, rule, number, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* What the first filter says about calls that are not decided by their own rules there. */
static int add_marks(const struct compiler *c, scmp_filter_ctx ctx, struct hutch_error *err)
{
    uint32_t default_action = c->profile->default_action;
    for (int number = 0; number < NUMBERS_MAX; number++) {
        int r = 0;
        if (c->hidden[number])
            r = add(c, ctx, default_action, SCMP_ACT_ERRNO(ENOSYS), number, NULL, 0, err);
        else if (c->group_of[number])
            r = add(c, ctx, default_action, MARK(c->group_of[number]), number, NULL, 0, err);
        if (r < 0)
            return r;
    }
    return 0;
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
                unsigned group, struct profile_code *ret, struct hutch_error *err)
{
    int r = set_attributes(c, ctx, err);
    if (r == 0)
        r = add_rules(c, ctx, default_action, group, err);
    if (r == 0 && group == 0)
        r = add_marks(c, ctx, err);
    if (r == 0)
        r = export_code(c, ctx, ret, err);
    return r;
}

static int make_filter(const struct compiler *c, unsigned group, struct profile_code *ret,
                       struct hutch_error *err)
{
    uint32_t default_action =
        group ? SCMP_ACT_ERRNO((uint32_t)c->groups[group - 1]) : c->profile->default_action;
    scmp_filter_ctx ctx = c->lib->init(default_action);
    if (!ctx)
        return error_oom(err, STAGE);
    int r = fill(c, ctx, default_action, group, ret, err);
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

int profile_compile(const char *name, const struct profile *profile, bool watchdog,
                    const struct profile_lib *lib, struct profile_code *ret, struct buf *notes,
                    struct hutch_error *err)
{
    struct compiler c = {.name = name, .profile = profile, .lib = lib, .notes = notes};
    _cleanup_profile_code_ struct profile_code code = {0};
    int r = survey(&c, watchdog, err);
    if (r == 0)
        r = make_filter(&c, 0, &code, err);
    for (unsigned group = 1; r == 0 && group <= c.groups_len; group++) {
        _cleanup_profile_code_ struct profile_code next = {0};
        r = make_filter(&c, group, &next, err);
        if (r == 0)
            r = profile_chain(&code, MARK(group), next.insns, next.len, err);
    }
    if (r < 0)
        return r;
    *ret = code;
    code = (struct profile_code){0};
    return 0;
}
