/* json.c - a plan block as JSON: read back from the bytes that init gets. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/json.h"
#include "plan/plan.h"
#include "plan/steps.h"

struct view {
    const char *block;
    const struct plan_header *header;
    struct buf *json;
};

static const void *at(const struct view *v, uint64_t offset)
{
    return v->block + offset;
}

static void put_text(const struct view *v, const char *key, uint64_t offset)
{
    const char *text = at(v, offset);

    json_put_key(v->json, key);
    (void)json_put_string(v->json, text, strlen(text));
}

static void put_number(const struct view *v, const char *key, uint64_t number)
{
    json_put_key(v->json, key);
    buf_printf(v->json, "%" PRIu64, number);
}

static void put_name(const struct view *v, const char *key, const char *name)
{
    json_put_key(v->json, key);
    (void)json_put_string(v->json, name, strlen(name));
}

static void put_comma(const struct view *v, uint32_t index)
{
    if (index > 0)
        buf_puts(v->json, ",");
}

static void put_element(const struct view *v, uint32_t index, const char *text)
{
    put_comma(v, index);
    (void)json_put_string(v->json, text, strlen(text));
}

static void put_flags(const struct view *v, uint32_t flags)
{
    static const char *const NAMES[] = {"ro", "nosuid", "nodev", "noexec", "data"};
    uint32_t n = 0;

    json_put_key(v->json, "flags");
    buf_puts(v->json, "[");
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (flags & (1U << i))
            put_element(v, n++, NAMES[i]);
    buf_puts(v->json, "]");
}

static void put_source(const struct view *v, uint32_t index)
{
    const struct plan_source *sources = at(v, v->header->sources.offset);

    if (sources[index].path != 0)
        put_text(v, "source", sources[index].path);
    else
        put_number(v, "idmapped_source", sources[index].host_index);
}

static const char *const OP_NAMES[PLAN_OP_KINDS] = {
    [PLAN_OP_DIR] = "dir",
    [PLAN_OP_FILE] = "file",
    [PLAN_OP_SYMLINK] = "symlink",
    [PLAN_OP_BIND] = "bind",
    [PLAN_OP_BIND_DATA] = "bind-data",
    [PLAN_OP_PROC] = "proc",
    [PLAN_OP_DEVPTS] = "devpts",
    [PLAN_OP_MASK] = "mask",
    [PLAN_OP_READONLY] = "read-only",
};

static void put_op(const struct view *v, const struct plan_op *op)
{
    buf_puts(v->json, "{");
    put_name(v, "op", OP_NAMES[op->kind]);
    put_text(v, "path", op->path);
    if (op->kind == PLAN_OP_BIND)
        put_source(v, op->source);
    if (op->kind == PLAN_OP_SYMLINK || op->kind == PLAN_OP_BIND_DATA)
        put_text(v, op->kind == PLAN_OP_SYMLINK ? "target" : "from", op->text);
    if (op->kind == PLAN_OP_FILE)
        put_number(v, "size", op->data_len);
    if (op->kind == PLAN_OP_DIR || op->kind == PLAN_OP_FILE) {
        char mode[16];
        (void)snprintf(mode, sizeof(mode), "%04o", op->mode);
        put_name(v, "mode", mode);
    }
    if (op->flags != 0)
        put_flags(v, op->flags);
    buf_puts(v->json, "}");
}

static void put_ops(const struct view *v, const char *key, struct plan_span span)
{
    const struct plan_op *ops = at(v, span.offset);

    json_put_key(v->json, key);
    buf_puts(v->json, "[");
    for (uint32_t i = 0; i < span.count; i++) {
        put_comma(v, i);
        put_op(v, &ops[i]);
    }
    buf_puts(v->json, "]");
}

static void put_texts(const struct view *v, const char *key, struct plan_span span)
{
    const uint64_t *slots = at(v, span.offset);

    json_put_key(v->json, key);
    buf_puts(v->json, "[");
    for (uint32_t i = 0; i < span.count && slots[i] != 0; i++)
        put_element(v, i, at(v, slots[i]));
    buf_puts(v->json, "]");
}

static void put_layers(const struct view *v, const char *key, uint32_t mask)
{
    uint32_t n = 0;

    json_put_key(v->json, key);
    buf_puts(v->json, "[");
    for (unsigned i = 0; i < LAYER_COUNT; i++)
        if (mask & LAYER_BIT(i))
            put_element(v, n++, layer_name((enum layer)i));
    buf_puts(v->json, "]");
}

static void put_steps(const struct view *v)
{
    json_put_key(v->json, "steps");
    buf_puts(v->json, "[");
    for (unsigned i = 0; i < PLAN_STEP_read_plan; i++)
        put_element(v, i, plan_step_name(i));
    buf_puts(v->json, "]");
}

static const char *limit_name(uint32_t resource)
{
    static const struct {
        uint32_t resource;
        const char *name;
    } NAMES[] = {
        {RLIMIT_CORE, "core"},         {RLIMIT_NOFILE, "nofile"},   {RLIMIT_FSIZE, "fsize"},
        {RLIMIT_MSGQUEUE, "msgqueue"}, {RLIMIT_RTPRIO, "rtprio"},   {RLIMIT_MEMLOCK, "memlock"},
        {RLIMIT_NPROC, "nproc"},       {RLIMIT_CPU, "cpu_seconds"},
    };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (NAMES[i].resource == resource)
            return NAMES[i].name;
    return "other";
}

static void put_rlimits(const struct view *v)
{
    const struct plan_rlimit *limits = at(v, v->header->rlimits.offset);

    json_put_key(v->json, "rlimits");
    buf_puts(v->json, "{");
    for (uint32_t i = 0; i < v->header->rlimits.count; i++)
        put_number(v, limit_name(limits[i].resource), limits[i].value);
    buf_puts(v->json, "}");
}

static void put_access(const struct view *v)
{
    static const char *const NAMES[] = {"", "read", "write", "devices", "file"};
    const struct plan_access_rule *rules = at(v, v->header->access.offset);

    json_put_key(v->json, "landlock");
    buf_puts(v->json, "{");
    for (uint32_t i = 0; i < v->header->access.count; i++)
        put_name(v, at(v, rules[i].path), NAMES[rules[i].access]);
    buf_puts(v->json, "}");
}

static void put_limits(const struct view *v, const struct limits *limits)
{
    json_put_key(v->json, "limits");
    buf_puts(v->json, "{");
    put_number(v, "timeout_ms", limits->timeout_ms);
    put_number(v, "cpu_time_ms", limits->cpu_time_ms);
    put_number(v, "memory_bytes", limits->memory_bytes);
    put_number(v, "cpus_milli", limits->cpus_milli);
    put_number(v, "pids", limits->pids);
    put_number(v, "disk_bytes", limits->disk_bytes);
    put_number(v, "disk_inodes", v->header->data_inodes);
    put_number(v, "max_output_bytes", limits->max_output_bytes);
    put_name(v, "memory_kept_by", v->header->memory_bytes == 0 ? "cgroup" : "watchdog");
    buf_puts(v->json, "}");
}

static void put_ids(const struct view *v)
{
    const struct plan_header *h = v->header;

    put_name(v, "mode", h->mode == PLAN_MODE_ROOT ? "root" : "self-map");
    json_put_key(v->json, "ids");
    buf_puts(v->json, "{");
    put_number(v, "uid", h->uid);
    put_number(v, "gid", h->gid);
    if (h->mode == PLAN_MODE_SELF) {
        put_number(v, "host_uid", h->outside_uid);
        put_number(v, "host_gid", h->outside_gid);
    } else {
        put_name(v, "host_uid", "drawn for each run");
    }
    buf_puts(v->json, "}");
}

static void put_lower(const struct view *v)
{
    const uint32_t *lower = at(v, v->header->lower.offset);

    json_put_key(v->json, "lower");
    buf_puts(v->json, "[");
    for (uint32_t i = 0; i < v->header->lower.count; i++) {
        put_comma(v, i);
        buf_puts(v->json, "{");
        put_source(v, lower[i]);
        buf_puts(v->json, "}");
    }
    buf_puts(v->json, "]");
}

static void put_root(const struct view *v)
{
    const struct plan_header *h = v->header;

    json_put_key(v->json, "root");
    buf_puts(v->json, "{");
    put_name(v, "kind", h->root_kind == PLAN_ROOT_OVERLAY ? "overlay" : "tmpfs");
    json_put_key(v->json, "writable");
    buf_puts(v->json, (h->flags & PLAN_FLAG_WRITABLE) ? "true" : "false");
    put_lower(v);
    put_ops(v, "ops", h->ops);
    put_ops(v, "masks", h->masks);
    buf_puts(v->json, "}");
}

static void put_program(const struct view *v)
{
    const struct plan_header *h = v->header;

    json_put_key(v->json, "program");
    buf_puts(v->json, "{");
    put_text(v, "path", h->program);
    put_texts(v, "argv", h->argv);
    put_texts(v, "env", h->env);
    put_text(v, "workdir", h->workdir);
    put_text(v, "hostname", h->hostname);
    put_number(v, "nice", h->nice);
    put_number(v, "seccomp_instructions", h->seccomp.count);
    json_put_key(v->json, "exec_by_fd");
    buf_puts(v->json, (h->flags & PLAN_FLAG_EXEC_BY_FD) ? "true" : "false");
    buf_puts(v->json, "}");
}

int plan_json(const struct hutch_request *request, const void *block, size_t len,
              struct buf *ret_json, struct hutch_error *err)
{
    const struct view v = {.block = block, .header = block, .json = ret_json};

    if (len < sizeof(*v.header) || v.header->magic != PLAN_MAGIC)
        return error_set(err, HUTCH_STAGE_PLAN, EINVAL, "not a plan block");
    buf_puts(ret_json, "{");
    put_number(&v, "version", v.header->version);
    put_ids(&v);
    put_layers(&v, "layers", v.header->layers);
    put_layers(&v, "required", v.header->required);
    put_limits(&v, &request->limits);
    put_steps(&v);
    put_root(&v);
    put_rlimits(&v);
    put_access(&v);
    put_program(&v);
    buf_puts(ret_json, "}");
    return ret_json->failed != 0 ? error_oom(err, HUTCH_STAGE_PLAN) : 0;
}
