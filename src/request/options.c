/*
 * options.c - the table of options: a row and a handler for each. The command's parser and help,
 * hutch_request_set() and the check of the man page read it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "request/internal.h"

#define HANDLER(name)                                                                              \
    static int name(struct hutch_request *request, const char *field, const char *value,           \
                    struct hutch_error *err)

/* ---- limits: the table in limits.c knows the rest ---- */

#define LIMIT_HANDLER(name, option)                                                                \
    HANDLER(name)                                                                                  \
    {                                                                                              \
        return limit_set(&request->limits, option, field, value, err);                             \
    }
LIMIT_HANDLER(set_timeout, "timeout")
LIMIT_HANDLER(set_memory, "memory")
LIMIT_HANDLER(set_cpus, "cpus")
LIMIT_HANDLER(set_cpu_time, "cpu-time")
LIMIT_HANDLER(set_pids, "pids")
LIMIT_HANDLER(set_disk, "disk")
LIMIT_HANDLER(set_max_output, "max-output")

HANDLER(set_on_flood)
{
    if (strcmp(value, "drop") != 0 && strcmp(value, "kill") != 0)
        return error_request(err, "%s: '%.40s' is not one of drop, kill", field, value);
    request->flood = strcmp(value, "kill") == 0 ? FLOOD_KILL : FLOOD_DROP;
    return 0;
}

/* ---- what the program sees ---- */

HANDLER(set_env)
{
    return request_env(request, field, value, err);
}

HANDLER(set_language)
{
    return request_language(request, field, value, err);
}

HANDLER(set_python)
{
    if (value[0] != '/')
        return error_request(err, "%s: '%.80s' is not an absolute path of an interpreter", field,
                             value);
    return text_replace(&request->python, value, err);
}

HANDLER(set_rootfs)
{
    if (strcmp(value, "host") != 0 && !strchr(value, '/'))
        return error_request(err,
                             "%s: '%.80s': named root file systems come later; give 'host' or "
                             "a directory (with a slash: ./%.80s)",
                             field, value, value);
    if (strcmp(value, "host") != 0 && value[0] != '/')
        return error_request(err, "%s: '%.80s' is not an absolute path", field, value);
    return text_replace(&request->rootfs, value, err);
}

static int add_bind(struct hutch_request *request, const char *field, const char *value,
                    bool writable, struct hutch_error *err)
{
    if (request->binds_len >= 256)
        return error_request(err, "%s: more than 256 binds", field);
    struct bind *binds = reallocarray(request->binds, request->binds_len + 1, sizeof(*binds));
    if (!binds)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    request->binds = binds;
    int r = bind_parse(field, value, writable, &binds[request->binds_len], err);
    if (r == 0)
        request->binds_len++;
    return r;
}

HANDLER(set_ro_bind)
{
    return add_bind(request, field, value, false, err);
}

HANDLER(set_bind)
{
    return add_bind(request, field, value, true, err);
}

HANDLER(set_writable_root)
{
    if (strcmp(value, "1") != 0)
        return error_request(err, "%s: it takes no value", field);
    request->writable_root = true;
    return 0;
}

HANDLER(set_workdir)
{
    static const char *const NOT_FILES[] = {"/proc", "/sys", "/dev", "/run/hutch"};
    _cleanup_free_ char *path = NULL;
    int r = box_path(field, value, &path, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(NOT_FILES); i++) {
        if (path_below(path, NOT_FILES[i]))
            return error_request(err, "%s: '%.80s' is below %s; choose another directory", field,
                                 path, NOT_FILES[i]);
    }
    free(request->workdir);
    request->workdir = take_ptr(path);
    return 0;
}

/* ---- walls ---- */

HANDLER(set_policy)
{
    size_t len = strlen(value);
    bool file = strchr(value, '/') || (len > 5 && strcmp(value + len - 5, ".json") == 0);
    int r = file ? 0 : check_policy_name(field, value, err);
    return r < 0 ? r : text_replace(&request->policy, value, err);
}

HANDLER(set_network)
{
    (void)request;
    if (strcmp(value, "none") != 0)
        return error_request(err, "%s: '%.40s': only none is supported; a box has loopback alone",
                             field, value);
    return 0;
}

static int unknown_layer(const char *field, const char *name, size_t len, struct hutch_error *err)
{
    _cleanup_buf_ struct buf known = BUF(0);
    for (int i = 0; i < LAYER_COUNT; i++)
        buf_printf(&known, " %s", layer_name((enum layer)i));
    buf_put(&known, "", 1);
    return error_request(err, "%s: '%.*s' is not a layer; there are%s", field,
                         len < 40 ? (int)len : 40, name, known.failed ? "" : known.data);
}

/* "LAYER[,LAYER]"; `all` only where it makes sense. */
static int parse_layers(const char *field, const char *value, bool all_allowed,
                        layer_mask *ret_mask, struct hutch_error *err)
{
    layer_mask mask = 0;
    for (const char *at = value;; at++) {
        size_t len = strcspn(at, ",");
        int layer = layer_from_name(at, len);
        if (layer >= 0)
            mask |= LAYER_BIT(layer);
        else if (all_allowed && len == 3 && memcmp(at, "all", 3) == 0)
            mask |= LAYER_ALL;
        else
            return unknown_layer(field, at, len, err);
        at += len;
        if (*at == '\0')
            break;
    }
    *ret_mask = mask;
    return 0;
}

HANDLER(set_require)
{
    layer_mask mask;
    int r = parse_layers(field, value, true, &mask, err);
    if (r < 0)
        return r;
    request->require |= mask;
    request->require_named |= mask;
    return 0;
}

static const char *why_never(enum layer layer)
{
    switch (layer) {
    case LAYER_USER_NS:
        return "without it the box's privileges would be the host's";
    case LAYER_PID_NS:
        return "without it a box could not be ended as a whole";
    case LAYER_MOUNT_NS:
    case LAYER_ROOT:
        return "without it the box would see the host's files";
    case LAYER_CAPS:
        return "without it the box could undo its other walls";
    default:
        return "without it the whole kernel would be in reach";
    }
}

HANDLER(set_allow_missing)
{
    layer_mask mask;
    int r = parse_layers(field, value, false, &mask, err);
    if (r < 0)
        return r;
    for (int i = 0; i < LAYER_COUNT; i++) {
        if (mask & LAYER_NEVER_MISSING & LAYER_BIT(i))
            return error_request(err, "%s: %s can never be missing: %s", field,
                                 layer_name((enum layer)i), why_never((enum layer)i));
    }
    request->allow_missing |= mask;
    return 0;
}

HANDLER(set_host_ids)
{
    const uint64_t most = UINT32_MAX - 1; /* (uid_t)-1 means "none" */
    const char *colon = strchr(value, ':');
    if (!colon)
        return error_request(err, "%s: '%.40s' is not FIRST:COUNT", field, value);
    _cleanup_free_ char *first_text = strndup(value, (size_t)(colon - value));
    if (!first_text)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    uint64_t first, count;
    int r = num_u64(field, first_text, 1, most, &first, err);
    if (r == 0)
        r = num_u64(field, colon + 1, 1, most - first + 1, &count, err);
    return r < 0 ? r : text_replace(&request->host_ids, value, err);
}

/* ---- for hosts: what is read of the produced files ---- */

HANDLER(set_collect)
{
    static const char *const CHOICES[] = {"none", "names", "data"};
    size_t i = 0;
    while (i < ARRAY_LEN(CHOICES) && strcmp(CHOICES[i], value) != 0)
        i++;
    if (i == ARRAY_LEN(CHOICES))
        return error_request(err, "%s: '%.40s' is not one of none, names, data", field, value);
    request->collect_files = i > 0;
    request->omit_file_data = i == 1;
    return 0;
}

#define RUN OPTION_RUN
#define BOTH (OPTION_RUN | OPTION_EXEC)

/* Help texts of up to 18 characters share a line of the command's help with another. */
const struct request_option REQUEST_OPTIONS[] = {
    {"timeout", "S", "wall time (30)", BOTH, 0, set_timeout, "wall time (5)"},
    {"cpu-time", "S", "CPU time (none)", BOTH, 0, set_cpu_time},
    {"memory", "BYTES", "memory (512M)", BOTH, 0, set_memory, "memory (128M)"},
    {"cpus", "N", "CPUs (1), 0.01 up", BOTH, 0, set_cpus},
    {"pids", "N", "processes (64)", BOTH, 0, set_pids},
    {"disk", "BYTES", "/work + /tmp (64M)", BOTH, 0, set_disk},
    {"max-output", "BYTES", "bytes kept of each output stream (64000)", BOTH, 0, set_max_output},
    {"on-flood", "drop|kill", "output above that: drop it, or kill the box (drop)", BOTH, 0,
     set_on_flood},
    {"env", "K=V", "one variable", RUN, 0, set_env},
    {"language", "L", "python, javascript or bash (by suffix)", RUN, 0, set_language},
    {"python", "PATH", "interpreter; its prefix is shown read-only", BOTH, OPTION_PATH_IF_PATH,
     set_python},
    {"rootfs", "host|DIR", "root file system (host)", BOTH, OPTION_PATH_IF_PATH, set_rootfs},
    {"ro-bind", "SRC:DST", "show it, read-only", BOTH, OPTION_PATH_ALWAYS, set_ro_bind},
    {"bind", "SRC:DST", "show it, writable", BOTH, OPTION_PATH_ALWAYS, set_bind},
    {"writable-root", NULL, "root is writable", RUN, 0, set_writable_root},
    {"workdir", "DIR", "start here (/work)", RUN, 0, set_workdir},
    {"policy", "NAME|FILE", "seccomp profile: tool, python, node, default", BOTH,
     OPTION_PATH_IF_PATH, set_policy},
    {"network", "none", "loopback alone", BOTH, 0, set_network},
    {"require", "LAYER,..", "refuse to run without these layers, or all", BOTH, 0, set_require},
    {"allow-missing", "LAYER,..", "run even without these", BOTH, 0, set_allow_missing},
    {"host-ids", "FIRST:COUNT", "as root: host ids to choose from", BOTH, 0, set_host_ids},
    {"collect", "none|names|data", NULL, RUN, 0, set_collect},
};
const size_t REQUEST_OPTIONS_LEN = ARRAY_LEN(REQUEST_OPTIONS);

const struct request_option *request_option_find(const char *name)
{
    for (size_t i = 0; i < REQUEST_OPTIONS_LEN; i++) {
        if (strcmp(REQUEST_OPTIONS[i].name, name) == 0)
            return &REQUEST_OPTIONS[i];
    }
    return NULL;
}

static int apply(struct hutch_request *request, const char *option, const char *field,
                 const char *value, struct hutch_error *err)
{
    const struct request_option *row = request_option_find(option);
    if (!row)
        return error_request(err, "%.80s: there is no such option", field);
    if (!(row->verbs & (1U << request->verb)))
        return error_request(err, "%s: not an option of %s", field,
                             request->verb == HUTCH_VERB_EXEC ? "exec" : "run");
    return row->set(request, field, value, err);
}

int hutch_request_set(struct hutch_request *request, const char *option, const char *value,
                      struct hutch_error *err)
{
    if (!request || !option || !value)
        return error_request(err, "the request, the option or its value is NULL");
    return apply(request, option, option, value, err);
}

int request_set_lowering(struct hutch_request *request, const char *option, const char *value,
                         struct hutch_error *err)
{
    struct limits before = request->limits;
    _cleanup_free_ char *field = NULL;
    if (asprintf(&field, "--%s", option) < 0) {
        field = NULL;
        return error_oom(err, HUTCH_STAGE_REQUEST);
    }
    int r = apply(request, option, field, value, err);
    if (r == 0)
        limits_lower(&request->limits, &before);
    return r;
}
