/*
 * seccomp_json.c - reads a profile in the format that Docker, containerd and Podman use.
 *
 * A member nobody knows is an error: a misspelt `args` would open the whole call. What those
 * engines understand and a box has no use for (capability conditions, other architectures) is
 * evaluated for a box: no capability is held, the architecture is x86-64.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "base/json.h"
#include "base/num.h"
#include "kernel/seccomp_profile.h"

#define PROFILE_JSON_DEPTH 8
#define PROFILE_RULES_MAX 4096U
#define PROFILE_NAMES_MAX 65536U
#define STAGE HUTCH_STAGE_REQUEST

struct parser {
    const char *name;
    struct profile *profile;
    struct buf *notes;
    char default_text[32]; /* the action as text, until the errno is known too */
    uint32_t default_errno;
    bool has_default;
};

/* The rule under way. */
struct rule_parser {
    struct parser *parser;
    struct profile_rule rule;
    char action[32];
    uint32_t errno_ret;
    bool has_errno, has_action;
    bool condition_wanted; /* includes (true) or excludes (false) are being read */
};

struct arg_parser {
    struct parser *parser;
    struct scmp_arg_cmp arg;
    uint64_t index;
    bool has_index, has_op;
};

static void free_rule(struct profile_rule *rule)
{
    for (size_t i = 0; i < rule->names_len; i++)
        free(rule->names[i]);
    free(rule->names);
}

void profile_free(struct profile *profile)
{
    for (size_t i = 0; i < profile->rules_len; i++)
        free_rule(&profile->rules[i]);
    free(profile->rules);
    free(profile->comment);
    *profile = (struct profile){0};
}

static void free_rule_parser(struct rule_parser *parser)
{
    free_rule(&parser->rule);
}

/* ---- single values ---- */

static int bad(const struct parser *p, struct hutch_error *err, const char *what)
{
    return error_request(err, "seccomp profile %s: %s", p->name, what);
}

static int bad_member(const struct parser *p, struct hutch_error *err, const char *where,
                      const char *member)
{
    return error_request(err, "seccomp profile %s: unknown member \"%.64s\" in %s", p->name, member,
                         where);
}

static int read_text(const struct parser *p, const char *member, struct json_slice value,
                     char **ret, struct hutch_error *err)
{
    size_t len = 0;
    _cleanup_free_ char *text = NULL;
    if (value.type != JSON_STRING)
        return error_request(err, "seccomp profile %s: \"%s\" must be text", p->name, member);
    if (json_string(value, &text, &len) < 0)
        return error_oom(err, HUTCH_STAGE_POLICY);
    if (strlen(text) != len)
        return error_request(err, "seccomp profile %s: \"%s\" has a NUL in it", p->name, member);
    *ret = take_ptr(text);
    return 0;
}

static int read_short(const struct parser *p, const char *member, struct json_slice value,
                      char *ret, size_t ret_size, struct hutch_error *err)
{
    _cleanup_free_ char *text = NULL;
    int r = read_text(p, member, value, &text, err);
    if (r < 0)
        return r;
    if (strlen(text) >= ret_size)
        return error_request(err, "seccomp profile %s: \"%s\" is \"%.64s\"", p->name, member, text);
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

static int read_number(const char *member, struct json_slice value, uint64_t max, uint64_t *ret,
                       struct hutch_error *err)
{
    if (value.type != JSON_NUMBER)
        return error_request(err, "seccomp profile: \"%s\" must be a number", member);
    _cleanup_free_ char *text = json_raw(value);
    if (!text)
        return error_oom(err, HUTCH_STAGE_POLICY);
    uint64_t number = 0;
    int r = num_u64(member, text, 0, max, &number, err);
    if (r < 0)
        return r;
    /* The parser stops at the largest number there is, and -1 as 64 bits is a useful value. */
    if (number == UINT64_MAX && strcmp(text, "18446744073709551615") != 0)
        return error_request(err, "seccomp profile: \"%s\" is over 64 bits", member);
    *ret = number;
    return 0;
}

static int read_errno(const char *member, struct json_slice value, uint32_t *ret,
                      struct hutch_error *err)
{
    uint64_t number = 0;
    int r = read_number(member, value, 4095, &number, err);
    if (r == 0)
        *ret = (uint32_t)number;
    return r;
}

/* Podman writes the errno's name beside its number. */
static int read_errno_name(const struct parser *p, const char *member, struct json_slice value,
                           uint32_t *ret, struct hutch_error *err)
{
    static const struct {
        const char *name;
        uint32_t number;
    } NAMES[] = {
        {"EPERM", EPERM},   {"ENOSYS", ENOSYS},         {"EINVAL", EINVAL},
        {"EACCES", EACCES}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOTSUP", EOPNOTSUPP},
    };
    char text[32];
    int r = read_short(p, member, value, text, sizeof(text), err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (strcmp(text, NAMES[i].name) == 0) {
            *ret = NAMES[i].number;
            return 0;
        }
    return error_request(err, "seccomp profile %s: errno \"%s\": give its number as errnoRet",
                         p->name, text);
}

static int action_of(const struct parser *p, const char *text, uint32_t errno_ret, uint32_t *ret,
                     struct hutch_error *err)
{
    const struct {
        const char *name;
        uint32_t action;
    } ACTIONS[] = {
        {"SCMP_ACT_ALLOW", SCMP_ACT_ALLOW},
        {"SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(errno_ret)},
        {"SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD},
        {"SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD},
        {"SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS},
        {"SCMP_ACT_TRAP", SCMP_ACT_TRAP},
        {"SCMP_ACT_LOG", SCMP_ACT_LOG},
    };
    for (size_t i = 0; i < ARRAY_LEN(ACTIONS); i++)
        if (strcmp(text, ACTIONS[i].name) == 0) {
            *ret = ACTIONS[i].action;
            return 0;
        }
    if (strcmp(text, "SCMP_ACT_NOTIFY") == 0 || strcmp(text, "SCMP_ACT_TRACE") == 0)
        return error_request(err, "seccomp profile %s: %s needs a tracer that a box doesn't have",
                             p->name, text);
    return error_request(err, "seccomp profile %s: unknown action \"%s\"", p->name, text);
}

/* ---- args ---- */

static int read_op(struct arg_parser *a, struct json_slice value, struct hutch_error *err)
{
    static const struct {
        const char *name;
        enum scmp_compare op;
    } OPS[] = {
        {"SCMP_CMP_NE", SCMP_CMP_NE},
        {"SCMP_CMP_LT", SCMP_CMP_LT},
        {"SCMP_CMP_LE", SCMP_CMP_LE},
        {"SCMP_CMP_EQ", SCMP_CMP_EQ},
        {"SCMP_CMP_GE", SCMP_CMP_GE},
        {"SCMP_CMP_GT", SCMP_CMP_GT},
        {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ},
    };
    char text[32];
    int r = read_short(a->parser, "op", value, text, sizeof(text), err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(OPS); i++)
        if (strcmp(text, OPS[i].name) == 0) {
            a->arg.op = OPS[i].op;
            a->has_op = true;
            return 0;
        }
    return error_request(err, "seccomp profile %s: unknown op \"%s\"", a->parser->name, text);
}

static int arg_member(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    struct arg_parser *a = ctx;
    if (strcmp(key, "index") == 0) {
        a->has_index = true;
        return read_number(key, value, 5, &a->index, err);
    }
    if (strcmp(key, "value") == 0)
        return read_number(key, value, UINT64_MAX, &a->arg.datum_a, err);
    if (strcmp(key, "valueTwo") == 0)
        return read_number(key, value, UINT64_MAX, &a->arg.datum_b, err);
    if (strcmp(key, "op") == 0)
        return read_op(a, value, err);
    return bad_member(a->parser, err, "args", key);
}

static int arg_element(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    struct rule_parser *r = ctx;
    struct arg_parser a = {.parser = r->parser};
    if (value.type != JSON_OBJECT)
        return bad(r->parser, err, "an element of \"args\" must be an object");
    if (index >= PROFILE_ARGS_MAX)
        return bad(r->parser, err, "more than 32 conditions in one rule");
    int rc = json_object_each(value, STAGE, arg_member, &a, err);
    if (rc < 0)
        return rc;
    if (!a.has_index || !a.has_op)
        return bad(r->parser, err, "an element of \"args\" needs \"index\" and \"op\"");
    a.arg.arg = (unsigned)a.index;
    r->rule.args[r->rule.args_len++] = a.arg;
    return 0;
}

/* ---- includes and excludes ---- */

struct text_search {
    const struct parser *parser;
    const char *member;
    const char *wanted; /* NULL: none of them */
    bool any, found;
};

static int search_element(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    struct text_search *search = ctx;
    _cleanup_free_ char *text = NULL;
    (void)index;
    int r = read_text(search->parser, search->member, value, &text, err);
    search->any = true;
    search->found |= r == 0 && search->wanted && strcmp(text, search->wanted) == 0;
    return r;
}

static bool kernel_at_least(unsigned major, unsigned minor)
{
    struct utsname name;
    unsigned now_major = 0, now_minor = 0;
    if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &now_major, &now_minor) != 2)
        return false;
    return now_major > major || (now_major == major && now_minor >= minor);
}

static int read_min_kernel(const struct parser *p, struct json_slice value, bool *ret_met,
                           struct hutch_error *err)
{
    char text[32], extra;
    unsigned major = 0, minor = 0;
    int r = read_short(p, "minKernel", value, text, sizeof(text), err);
    if (r < 0)
        return r;
    if (sscanf(text, "%3u.%5u%c", &major, &minor, &extra) != 2)
        return bad(p, err, "\"minKernel\" must be like \"4.8\"");
    *ret_met = kernel_at_least(major, minor);
    return 0;
}

static int condition_list(struct rule_parser *r, const char *key, const char *wanted,
                          struct json_slice value, struct hutch_error *err)
{
    struct text_search search = {.parser = r->parser, .member = key, .wanted = wanted};
    if (value.type == JSON_NULL)
        return 0;
    if (value.type != JSON_ARRAY)
        return bad(r->parser, err, "\"caps\" and \"arches\" must be lists");
    int rc = json_array_each(value, STAGE, search_element, &search, err);
    if (search.any && search.found != r->condition_wanted)
        r->rule.skipped = true;
    return rc;
}

/* Every condition of includes must be met, and none of excludes. */
static int condition_member(void *ctx, const char *key, struct json_slice value,
                            struct hutch_error *err)
{
    struct rule_parser *r = ctx;
    if (strcmp(key, "caps") == 0) /* a box holds none */
        return condition_list(r, key, NULL, value, err);
    if (strcmp(key, "arches") == 0)
        return condition_list(r, key, "amd64", value, err);
    if (strcmp(key, "minKernel") != 0)
        return bad_member(r->parser, err, "includes or excludes", key);
    bool met = false;
    int rc = value.type == JSON_NULL ? 0 : read_min_kernel(r->parser, value, &met, err);
    if (value.type != JSON_NULL && met != r->condition_wanted)
        r->rule.skipped = true;
    return rc;
}

static int read_condition(struct rule_parser *r, bool wanted, struct json_slice value,
                          struct hutch_error *err)
{
    r->condition_wanted = wanted;
    if (value.type == JSON_NULL)
        return 0;
    if (value.type != JSON_OBJECT)
        return bad(r->parser, err, "\"includes\" and \"excludes\" must be objects");
    return json_object_each(value, STAGE, condition_member, r, err);
}

/* ---- one rule ---- */

static int add_name(struct rule_parser *r, const char *member, struct json_slice value,
                    struct hutch_error *err)
{
    struct profile_rule *rule = &r->rule;
    if (rule->names_len == PROFILE_NAMES_MAX)
        return bad(r->parser, err, "too many names in one rule");
    if ((rule->names_len & (rule->names_len - 1)) == 0) { /* grows at powers of two */
        size_t cap = rule->names_len ? rule->names_len * 2 : 1;
        char **names = reallocarray(rule->names, cap, sizeof(*names));
        if (!names)
            return error_oom(err, HUTCH_STAGE_POLICY);
        rule->names = names;
    }
    int rc = read_text(r->parser, member, value, &rule->names[rule->names_len], err);
    if (rc == 0)
        rule->names_len++;
    return rc;
}

static int name_element(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    (void)index;
    return add_name(ctx, "names", value, err);
}

static int read_list(struct rule_parser *r, const char *key, struct json_slice value,
                     json_element_fn *element, struct hutch_error *err)
{
    if (value.type == JSON_NULL)
        return 0;
    if (value.type != JSON_ARRAY)
        return error_request(err, "seccomp profile %s: \"%s\" must be a list", r->parser->name,
                             key);
    return json_array_each(value, STAGE, element, r, err);
}

static int rule_member(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    struct rule_parser *r = ctx;
    if (strcmp(key, "name") == 0)
        return add_name(r, key, value, err);
    if (strcmp(key, "names") == 0)
        return read_list(r, key, value, name_element, err);
    if (strcmp(key, "args") == 0)
        return read_list(r, key, value, arg_element, err);
    if (strcmp(key, "includes") == 0)
        return read_condition(r, true, value, err);
    if (strcmp(key, "excludes") == 0)
        return read_condition(r, false, value, err);
    if (strcmp(key, "comment") == 0)
        return 0;
    if (strcmp(key, "action") == 0) {
        r->has_action = true;
        return read_short(r->parser, key, value, r->action, sizeof(r->action), err);
    }
    bool by_name = strcmp(key, "errno") == 0;
    if (!by_name && strcmp(key, "errnoRet") != 0)
        return bad_member(r->parser, err, "syscalls", key);
    if (value.type == JSON_NULL)
        return 0;
    if (by_name && r->has_errno)
        return 0;
    r->has_errno = true;
    return by_name ? read_errno_name(r->parser, key, value, &r->errno_ret, err)
                   : read_errno(key, value, &r->errno_ret, err);
}

static int finish_rule(struct rule_parser *r, struct hutch_error *err)
{
    struct profile_rule *rule = &r->rule;
    if (!r->has_action)
        return bad(r->parser, err, "a rule has no \"action\"");
    if (rule->names_len == 0)
        return bad(r->parser, err, "a rule has no \"names\"");
    int rc =
        action_of(r->parser, r->action, r->has_errno ? r->errno_ret : EPERM, &rule->action, err);
    if (rc == 0 && rule->action == SCMP_ACT_ALLOW && rule->args_len > 0)
        rule->refused_errno = (int)r->errno_ret;
    return rc;
}

static int keep_rule(struct profile *profile, struct profile_rule *rule, struct hutch_error *err)
{
    if (profile->rules_len == profile->rules_cap) {
        size_t cap = profile->rules_cap ? profile->rules_cap * 2 : 16;
        struct profile_rule *rules = reallocarray(profile->rules, cap, sizeof(*rules));
        if (!rules)
            return error_oom(err, HUTCH_STAGE_POLICY);
        profile->rules = rules;
        profile->rules_cap = cap;
    }
    profile->rules[profile->rules_len++] = *rule;
    *rule = (struct profile_rule){0};
    return 0;
}

static int rule_element(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    struct parser *p = ctx;
    _cleanup_(free_rule_parser) struct rule_parser r = {.parser = p};
    if (value.type != JSON_OBJECT)
        return bad(p, err, "an element of \"syscalls\" must be an object");
    if (index >= PROFILE_RULES_MAX)
        return bad(p, err, "more than 4096 rules");
    int rc = json_object_each(value, STAGE, rule_member, &r, err);
    if (rc == 0)
        rc = finish_rule(&r, err);
    if (rc == 0)
        rc = keep_rule(p->profile, &r.rule, err);
    return rc;
}

/* ---- the whole ---- */

static void note(struct parser *p, const char *text)
{
    if (p->notes)
        buf_printf(p->notes, "%s\n", text);
}

static int arch_map_member(void *ctx, const char *key, struct json_slice value,
                           struct hutch_error *err)
{
    struct text_search *search = ctx;
    if (strcmp(key, "architecture") == 0)
        return search_element(search, 0, value, err);
    if (strcmp(key, "subArchitectures") == 0)
        return 0;
    return bad_member(search->parser, err, "archMap", key);
}

static int arch_map_element(void *ctx, size_t index, struct json_slice value,
                            struct hutch_error *err)
{
    struct text_search *search = ctx;
    if (value.type != JSON_OBJECT)
        return bad(search->parser, err, "an element of \"archMap\" must be an object");
    (void)index;
    return json_object_each(value, STAGE, arch_map_member, search, err);
}

/* Only whether x86-64 is among them: the other ABIs of the machine are always refused. */
static int read_architectures(struct parser *p, const char *key, json_element_fn *element,
                              struct json_slice value, struct hutch_error *err)
{
    struct text_search search = {.parser = p, .member = key, .wanted = "SCMP_ARCH_X86_64"};
    if (value.type == JSON_NULL)
        return 0;
    if (value.type != JSON_ARRAY)
        return error_request(err, "seccomp profile %s: \"%s\" must be a list", p->name, key);
    int r = json_array_each(value, STAGE, element, &search, err);
    if (r == 0 && search.any && !search.found)
        return bad(p, err, "it isn't for x86-64");
    return r;
}

static int read_default_errno(struct parser *p, const char *key, struct json_slice value,
                              bool by_name, struct hutch_error *err)
{
    if (value.type == JSON_NULL || (by_name && p->default_errno))
        return 0;
    return by_name ? read_errno_name(p, key, value, &p->default_errno, err)
                   : read_errno(key, value, &p->default_errno, err);
}

static int profile_member(void *ctx, const char *key, struct json_slice value,
                          struct hutch_error *err)
{
    struct parser *p = ctx;
    if (strcmp(key, "defaultAction") == 0) {
        p->has_default = true;
        return read_short(p, key, value, p->default_text, sizeof(p->default_text), err);
    }
    if (strcmp(key, "defaultErrnoRet") == 0 || strcmp(key, "defaultErrno") == 0)
        return read_default_errno(p, key, value, strcmp(key, "defaultErrno") == 0, err);
    if (strcmp(key, "comment") == 0)
        return read_text(p, key, value, &p->profile->comment, err);
    if (strcmp(key, "archMap") == 0)
        return read_architectures(p, key, arch_map_element, value, err);
    if (strcmp(key, "architectures") == 0)
        return read_architectures(p, key, search_element, value, err);
    if (strcmp(key, "flags") == 0) {
        note(p, "\"flags\" have no effect here");
        return 0;
    }
    if (strcmp(key, "listenerPath") == 0 || strcmp(key, "listenerMetadata") == 0)
        return bad(p, err, "a listener needs a supervisor that a box doesn't have");
    if (strcmp(key, "syscalls") != 0)
        return bad_member(p, err, "the profile", key);
    if (value.type == JSON_NULL)
        return 0;
    if (value.type != JSON_ARRAY)
        return bad(p, err, "\"syscalls\" must be a list");
    return json_array_each(value, STAGE, rule_element, p, err);
}

int profile_parse(const char *name, const char *json, size_t json_len, struct profile *profile,
                  struct buf *notes, struct hutch_error *err)
{
    struct json_slice root;
    struct parser p = {.name = name, .profile = profile, .notes = notes};
    struct hutch_error why;
    if (json_parse(json, json_len, PROFILE_JSON_DEPTH, STAGE, &root, &why) < 0)
        return error_set(err, STAGE, why.code, "seccomp profile %s: %s", name, why.message);
    if (root.type != JSON_OBJECT)
        return bad(&p, err, "it must be an object");
    int r = json_object_each(root, STAGE, profile_member, &p, err);
    if (r < 0)
        return r;
    if (!p.has_default)
        return bad(&p, err, "it has no \"defaultAction\"");
    return action_of(&p, p.default_text, p.default_errno ? p.default_errno : EPERM,
                     &profile->default_action, err);
}
