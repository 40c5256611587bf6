/*
 * json_request.c - a request from one JSON document: a row and a handler for each member.
 *
 * The document is what a caller sends, so nothing in it names a path of the host but the
 * interpreter and the policy; binds and root file systems are the host's to set.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "request/internal.h"

#define MEMBER(name)                                                                               \
    static int name(struct hutch_request *request, const char *field, struct json_slice value,     \
                    struct hutch_error *err)

struct member {
    const char *name;
    unsigned verbs;
    int (*set)(struct hutch_request *request, const char *field, struct json_slice value,
               struct hutch_error *err);
};

enum { FIELD_MAX = 200 };

static int need_type(const char *field, struct json_slice value, enum json_type type,
                     struct hutch_error *err)
{
    static const char *const NAMES[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    if (value.type == type)
        return 0;
    return error_request(err, "%s: must be %s, not %s", field, NAMES[type], NAMES[value.type]);
}

/* Any bytes but a lone surrogate, which no text has. */
static int get_data(const char *field, struct json_slice value, char **ret_text, size_t *ret_len,
                    struct hutch_error *err)
{
    int r = need_type(field, value, JSON_STRING, err);
    if (r < 0)
        return r;
    r = json_string_exact(value, ret_text, ret_len);
    if (r == -EILSEQ)
        return error_request(err, "%s: has half a surrogate pair in it", field);
    return r < 0 ? error_oom(err, HUTCH_STAGE_REQUEST) : 0;
}

static int get_text(const char *field, struct json_slice value, char **ret_text,
                    struct hutch_error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r = get_data(field, value, &text, &len, err);
    if (r < 0)
        return r;
    if (strlen(text) != len)
        return error_request(err, "%s: has a NUL in it", field);
    *ret_text = take_ptr(text);
    return 0;
}

/* ---- limits ---- */

static int set_limit(struct hutch_request *request, const struct limit_info *info,
                     const char *field, struct json_slice value, struct hutch_error *err)
{
    int r = need_type(field, value, JSON_NUMBER, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *text = json_raw(value);
    if (!text)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    uint64_t *slot = limit_slot(&request->limits, info);
    if (info->unit == LIMIT_SECONDS || info->unit == LIMIT_CPUS)
        return num_milli(field, text, info->min, info->max, slot, err);
    unsigned shift = info->member_shift;
    r = num_u64(field, text, info->min >> shift, info->max >> shift, slot, err);
    if (r == 0)
        *slot <<= shift;
    return r;
}

static const struct limit_info *limit_of_member(const char *name)
{
    for (size_t i = 0; i < LIMITS_LEN; i++) {
        if (strcmp(LIMITS[i].member, name) == 0)
            return &LIMITS[i];
    }
    return NULL;
}

/* timeout_s and memory_mb stand in the document itself, the others in "limits". */
static bool is_top_limit(const char *name)
{
    return strcmp(name, "timeout_s") == 0 || strcmp(name, "memory_mb") == 0;
}

MEMBER(on_top_limit)
{
    return set_limit(request, limit_of_member(field), field, value, err);
}

static int on_limit(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    const struct limit_info *info = is_top_limit(key) ? NULL : limit_of_member(key);
    if (!info)
        return error_request(err,
                             "limits: unknown member '%.80s'; there are cpus, cpu_time_s, pids, "
                             "disk_bytes, max_output_bytes",
                             key);
    char field[FIELD_MAX];
    (void)snprintf(field, sizeof(field), "limits.%s", key);
    return set_limit(ctx, info, field, value, err);
}

MEMBER(on_limits)
{
    int r = need_type(field, value, JSON_OBJECT, err);
    return r < 0 ? r : json_object_each(value, HUTCH_STAGE_REQUEST, on_limit, request, err);
}

/* ---- lists of strings ---- */

struct strings {
    struct hutch_request *request;
    const char *field;
    int (*add)(struct hutch_request *request, const char *field, const char *text,
               struct hutch_error *err);
};

static int on_string(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    const struct strings *strings = ctx;
    char field[FIELD_MAX];
    (void)snprintf(field, sizeof(field), "%s[%zu]", strings->field, index);
    _cleanup_free_ char *text = NULL;
    int r = get_text(field, value, &text, err);
    return r < 0 ? r : strings->add(strings->request, field, text, err);
}

static int each_string(struct strings strings, struct json_slice value, struct hutch_error *err)
{
    int r = need_type(strings.field, value, JSON_ARRAY, err);
    return r < 0 ? r : json_array_each(value, HUTCH_STAGE_REQUEST, on_string, &strings, err);
}

static int add_arg(struct hutch_request *request, const char *field, const char *text,
                   struct hutch_error *err)
{
    int r = check_arg(field, text, err);
    return r < 0 ? r : text_list_add(&request->args, field, text, err);
}

static int add_command(struct hutch_request *request, const char *field, const char *text,
                       struct hutch_error *err)
{
    int r = check_arg(field, text, err);
    return r < 0 ? r : text_list_add(&request->command, field, text, err);
}

static int add_dependency(struct hutch_request *request, const char *field, const char *text,
                          struct hutch_error *err)
{
    if (text[0] == '\0')
        return error_request(err, "%s: is empty", field);
    return text_list_add(&request->dependencies, field, text, err);
}

static int add_require(struct hutch_request *request, const char *field, const char *text,
                       struct hutch_error *err)
{
    return request_option_find("require")->set(request, field, text, err);
}

MEMBER(on_allowed_imports)
{
    return each_string((struct strings){request, field, request_import}, value, err);
}

MEMBER(on_dependencies)
{
    if (value.type == JSON_NULL)
        return 0;
    return each_string((struct strings){request, field, add_dependency}, value, err);
}

MEMBER(on_command)
{
    return each_string((struct strings){request, field, add_command}, value, err);
}

MEMBER(on_require)
{
    return each_string((struct strings){request, field, add_require}, value, err);
}

/* exec: the object the code gets; run: the script's arguments. */
MEMBER(on_args)
{
    if (request->verb == HUTCH_VERB_RUN)
        return each_string((struct strings){request, field, add_arg}, value, err);
    int r = need_type(field, value, JSON_OBJECT, err);
    return r < 0 ? r : request_args(request, value.text, value.len, err);
}

/* ---- single texts ---- */

MEMBER(on_code)
{
    _cleanup_free_ char *code = NULL;
    size_t len;
    int r = get_data(field, value, &code, &len, err);
    return r < 0 ? r : request_code(request, field, code, len, err);
}

MEMBER(on_check)
{
    _cleanup_free_ char *text = NULL;
    int r = get_text(field, value, &text, err);
    if (r < 0)
        return r;
    if (strcmp(text, "strict") != 0 && strcmp(text, "none") != 0)
        return error_request(err, "%s: '%.40s' is not one of strict, none", field, text);
    request->unchecked = strcmp(text, "none") == 0;
    return 0;
}

MEMBER(on_agent_id)
{
    if (value.type == JSON_NULL)
        return 0;
    _cleanup_free_ char *text = NULL;
    int r = get_text(field, value, &text, err);
    if (r == 0)
        r = check_identifier(field, text, err);
    return r < 0 ? r : text_replace(&request->agent_id, text, err);
}

/* An option whose name is the member's; null is as good as leaving it out. */
MEMBER(on_option)
{
    if (value.type == JSON_NULL)
        return 0;
    _cleanup_free_ char *text = NULL;
    int r = get_text(field, value, &text, err);
    return r < 0 ? r : request_option_find(field)->set(request, field, text, err);
}

MEMBER(on_stdin)
{
    _cleanup_free_ char *data = NULL;
    size_t len;
    int r = get_data(field, value, &data, &len, err);
    return r < 0 ? r : hutch_request_set_stdin(request, data, len, err);
}

/* ---- environment ---- */

static int on_variable(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    char field[FIELD_MAX];
    (void)snprintf(field, sizeof(field), "env.%.150s", key);
    if (strchr(key, '='))
        return error_request(err, "%s: a variable's name has no '='", field);
    _cleanup_free_ char *text = NULL;
    int r = get_text(field, value, &text, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *pair = NULL;
    if (asprintf(&pair, "%s=%s", key, text) < 0) {
        pair = NULL;
        return error_oom(err, HUTCH_STAGE_REQUEST);
    }
    return request_env(ctx, field, pair, err);
}

MEMBER(on_env)
{
    int r = need_type(field, value, JSON_OBJECT, err);
    return r < 0 ? r : json_object_each(value, HUTCH_STAGE_REQUEST, on_variable, request, err);
}

/* ---- input files ---- */

struct file_members {
    const char *field; /* "files[2]" */
    char *name;
    void *data;
    size_t len;
    bool executable;
};

static void file_members_free(struct file_members *file)
{
    free(file->name);
    free(file->data);
}

static int get_base64(const char *field, struct json_slice value, struct file_members *file,
                      struct hutch_error *err)
{
    int r = need_type(field, value, JSON_STRING, err);
    if (r < 0)
        return r;
    r = json_base64(value, &file->data, &file->len);
    if (r == -ENOMEM)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    return r < 0 ? error_request(err, "%s: not base64 (with padding)", field) : 0;
}

static int on_file_member(void *ctx, const char *key, struct json_slice value,
                          struct hutch_error *err)
{
    struct file_members *file = ctx;
    char field[FIELD_MAX];
    (void)snprintf(field, sizeof(field), "%s.%.100s", file->field, key);
    bool is_text = strcmp(key, "text") == 0;
    if (strcmp(key, "name") == 0)
        return get_text(field, value, &file->name, err);
    if ((is_text || strcmp(key, "data") == 0) && file->data)
        return error_request(err, "%s: give data (base64) or text, not both", file->field);
    if (is_text) {
        char *text;
        int r = get_data(field, value, &text, &file->len, err);
        if (r == 0)
            file->data = text;
        return r;
    }
    if (strcmp(key, "data") == 0)
        return get_base64(field, value, file, err);
    if (strcmp(key, "executable") == 0) {
        file->executable = json_is_true(value);
        return need_type(field, value, JSON_BOOL, err);
    }
    return error_request(err, "%s: unknown member '%.80s'; there are name, data, text, executable",
                         file->field, key);
}

static int on_file(void *ctx, size_t index, struct json_slice value, struct hutch_error *err)
{
    char field[FIELD_MAX];
    (void)snprintf(field, sizeof(field), "files[%zu]", index);
    int r = need_type(field, value, JSON_OBJECT, err);
    if (r < 0)
        return r;
    _cleanup_(file_members_free) struct file_members file = {.field = field};
    r = json_object_each(value, HUTCH_STAGE_REQUEST, on_file_member, &file, err);
    if (r < 0)
        return r;
    if (!file.name || !file.data)
        return error_request(err, "%s: needs a name, and data or text", field);
    return request_file(ctx, field, file.name, file.data, file.len, file.executable, err);
}

MEMBER(on_files)
{
    int r = need_type(field, value, JSON_ARRAY, err);
    return r < 0 ? r : json_array_each(value, HUTCH_STAGE_REQUEST, on_file, request, err);
}

/* ---- the document ---- */

#define RUN OPTION_RUN
#define EXEC OPTION_EXEC

static const struct member MEMBERS[] = {
    {"code", RUN | EXEC, on_code},
    {"language", RUN, on_option},
    {"args", RUN | EXEC, on_args},
    {"command", RUN, on_command},
    {"allowed_imports", EXEC, on_allowed_imports},
    {"timeout_s", RUN | EXEC, on_top_limit},
    {"memory_mb", RUN | EXEC, on_top_limit},
    {"limits", RUN | EXEC, on_limits},
    {"check", EXEC, on_check},
    {"policy", RUN | EXEC, on_option},
    {"python", RUN | EXEC, on_option},
    {"agent_id", EXEC, on_agent_id},
    {"dependencies", EXEC, on_dependencies},
    {"files", RUN, on_files},
    {"env", RUN, on_env},
    {"stdin", RUN, on_stdin},
    {"require", RUN, on_require},
};

static int unknown_member(const struct hutch_request *request, const char *key,
                          struct hutch_error *err)
{
    _cleanup_buf_ struct buf known = BUF(0);
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        if (MEMBERS[i].verbs & (1U << request->verb))
            buf_printf(&known, "%s%s", known.len ? ", " : "", MEMBERS[i].name);
    }
    buf_put(&known, "", 1);
    return error_request(err, "unknown member '%.80s' in the request; there are %s", key,
                         known.failed ? "others" : known.data);
}

static int on_member(void *ctx, const char *key, struct json_slice value, struct hutch_error *err)
{
    struct hutch_request *request = ctx;
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        if (strcmp(MEMBERS[i].name, key) == 0 && (MEMBERS[i].verbs & (1U << request->verb)))
            return MEMBERS[i].set(request, key, value, err);
    }
    return unknown_member(request, key, err);
}

static void cleanup_request(struct hutch_request **request)
{
    hutch_request_free(*request);
}

int hutch_request_from_json(enum hutch_verb verb, const char *json, size_t json_len,
                            struct hutch_request **ret_request, struct hutch_error *err)
{
    if (!json)
        return error_request(err, "the request text is NULL");
    if (json_len > REQUEST_JSON_MAX)
        return error_request(err, "the request is longer than %zu bytes", REQUEST_JSON_MAX);
    struct json_slice document;
    int r = json_parse(json, json_len, JSON_MAX_DEPTH, HUTCH_STAGE_REQUEST, &document, err);
    if (r == 0)
        r = need_type("the request", document, JSON_OBJECT, err);
    if (r < 0)
        return r;
    _cleanup_(cleanup_request) struct hutch_request *request = NULL;
    r = hutch_request_new(verb, &request, err);
    if (r == 0)
        r = json_object_each(document, HUTCH_STAGE_REQUEST, on_member, request, err);
    if (r == 0 && verb == HUTCH_VERB_EXEC && !request->code)
        r = error_request(err, "code: exec needs it");
    if (r < 0)
        return r;
    *ret_request = take_ptr(request);
    return 0;
}
