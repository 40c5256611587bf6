/*
 * check.c - the one check of a plan block, before init believes a byte of it.
 *
 * The host is trusted, so this is no wall; it is what makes a truncated or mismatched block
 * (another version's init, a bug in the encoder) an error instead of a wild read as PID 1.
 */
#include "kernel/step/step.h"

#define INVALID (-22)    /* -EINVAL */
#define FILTER_MAX 4096U /* BPF_MAXINSNS */
#define RLIMITS 16U      /* RLIM_NLIMITS */
#define NICE_MAX 19U

struct block {
    const char *bytes;
    uint64_t size;
};

static int span_fits(const struct block *b, struct plan_span span, uint64_t element)
{
    return span.count == 0 ||
           (span.offset % 8 == 0 && span.offset >= sizeof(struct plan_header) &&
            span.offset <= b->size && (uint64_t)span.count * element <= b->size - span.offset);
}

/* The block ends in NUL, so a text that starts inside it ends inside it. */
static int text_fits(const struct block *b, uint64_t offset)
{
    return offset >= sizeof(struct plan_header) && offset < b->size;
}

static int is_absolute(const struct block *b, uint64_t offset)
{
    return text_fits(b, offset) && b->bytes[offset] == '/';
}

static int texts_fit(const struct block *b, struct plan_span span)
{
    const uint64_t *slots = (const void *)(b->bytes + span.offset);

    if (!span_fits(b, span, sizeof(*slots)) || span.count == 0 || slots[span.count - 1] != 0)
        return 0;
    for (uint32_t i = 0; i + 1 < span.count; i++)
        if (!text_fits(b, slots[i]))
            return 0;
    return 1;
}

/* Relative, and no component is "..". */
static int path_is_inside(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return 0;
    for (const char *p = path; *p != '\0'; p++)
        if ((p == path || p[-1] == '/') && p[0] == '.' && p[1] == '.' &&
            (p[2] == '/' || p[2] == '\0'))
            return 0;
    return 1;
}

#define OP_FLAGS (PLAN_READONLY | PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC | PLAN_IN_DATA)
#define MODE_BITS 07777U

static int op_fits(const struct block *b, const struct plan_header *h, const struct plan_op *op)
{
    if (op->kind == 0 || op->kind >= PLAN_OP_KINDS || (op->flags & ~OP_FLAGS) != 0 ||
        (op->mode & ~MODE_BITS) != 0 || !text_fits(b, op->path) ||
        !path_is_inside(b->bytes + op->path))
        return 0;
    if ((op->kind == PLAN_OP_SYMLINK || op->kind == PLAN_OP_BIND_DATA) && !text_fits(b, op->text))
        return 0;
    if (op->kind == PLAN_OP_BIND && op->source >= h->sources.count)
        return 0;
    return op->kind != PLAN_OP_FILE || (op->data <= b->size && op->data_len <= b->size - op->data);
}

static int ops_fit(const struct block *b, const struct plan_header *h, struct plan_span span)
{
    const struct plan_op *ops = (const void *)(b->bytes + span.offset);

    if (!span_fits(b, span, sizeof(*ops)))
        return 0;
    for (uint32_t i = 0; i < span.count; i++)
        if (!op_fits(b, h, &ops[i]))
            return 0;
    return 1;
}

static int sources_fit(const struct block *b, const struct plan_header *h)
{
    const struct plan_source *sources = (const void *)(b->bytes + h->sources.offset);
    const uint32_t *lower = (const void *)(b->bytes + h->lower.offset);

    if (h->host_sources > PLAN_HOST_SOURCES_MAX || h->sources.count > PLAN_SOURCES_MAX ||
        !span_fits(b, h->sources, sizeof(*sources)) || !span_fits(b, h->lower, sizeof(*lower)))
        return 0;
    for (uint32_t i = 0; i < h->sources.count; i++)
        if (sources[i].path != 0 ? !text_fits(b, sources[i].path)
                                 : sources[i].host_index >= h->host_sources)
            return 0;
    for (uint32_t i = 0; i < h->lower.count; i++)
        if (lower[i] >= h->sources.count)
            return 0;
    return 1;
}

static int rlimits_fit(const struct block *b, const struct plan_header *h)
{
    const struct plan_rlimit *limits = (const void *)(b->bytes + h->rlimits.offset);

    if (!span_fits(b, h->rlimits, sizeof(*limits)))
        return 0;
    for (uint32_t i = 0; i < h->rlimits.count; i++)
        if (limits[i].resource >= RLIMITS || limits[i].exact > 1)
            return 0;
    return 1;
}

static int lists_fit(const struct block *b, const struct plan_header *h)
{
    const uint32_t *dirs = (const void *)(b->bytes + h->path_dirs.offset);
    const struct plan_access_rule *rules = (const void *)(b->bytes + h->access.offset);

    if (!span_fits(b, h->path_dirs, sizeof(*dirs)) || !span_fits(b, h->access, sizeof(*rules)) ||
        !rlimits_fit(b, h) || !span_fits(b, h->affinity, sizeof(uint64_t)) ||
        h->affinity.count > PLAN_CPU_WORDS)
        return 0;
    for (uint32_t i = 0; i < h->path_dirs.count; i++)
        if (!text_fits(b, dirs[i]))
            return 0;
    for (uint32_t i = 0; i < h->access.count; i++)
        if (!is_absolute(b, rules[i].path) || rules[i].access < PLAN_ACCESS_READ ||
            rules[i].access >= PLAN_ACCESS_KINDS)
            return 0;
    return texts_fit(b, h->argv) && h->argv.count >= 2 && texts_fit(b, h->env);
}

#define FLAGS (PLAN_FLAG_RESULT_FD | PLAN_FLAG_EXEC_BY_FD | PLAN_FLAG_WRITABLE)
#define NO_ID 0xffffffffU /* -1: setresuid(2) would leave the id as it is */

/* What no plan of ours has: never the ids 0, always a limit of time and of disk. */
static int numbers_fit(const struct plan_header *h)
{
    return (h->flags & ~FLAGS) == 0 && (h->layers & ~LAYER_ALL) == 0 &&
           (h->required & ~LAYER_ALL) == 0 && h->uid != 0 && h->gid != 0 && h->uid != NO_ID &&
           h->gid != NO_ID && h->outside_uid != NO_ID && h->outside_gid != NO_ID &&
           h->wall_ms > 0 && h->scratch_bytes > 0 && h->data_bytes > 0 && h->data_inodes > 0 &&
           h->nice <= NICE_MAX && h->reserved == 0;
}

static int header_fits(const struct block *b, const struct plan_header *h)
{
    return h->magic == PLAN_MAGIC && h->version == PLAN_VERSION && h->size == b->size &&
           (h->mode == PLAN_MODE_ROOT || h->mode == PLAN_MODE_SELF) &&
           (h->root_kind == PLAN_ROOT_TMPFS || h->root_kind == PLAN_ROOT_OVERLAY) &&
           text_fits(b, h->hostname) && is_absolute(b, h->workdir) && text_fits(b, h->program) &&
           h->seccomp.count > 0 && h->seccomp.count <= FILTER_MAX && h->init_seccomp.count > 0 &&
           h->init_seccomp.count <= FILTER_MAX && span_fits(b, h->seccomp, 8) &&
           span_fits(b, h->init_seccomp, 8);
}

int plan_check(const void *block, size_t size)
{
    const struct block b = {.bytes = block, .size = size};
    const struct plan_header *h = block;

    if (size <= sizeof(*h) || size > PLAN_MAX_BYTES || b.bytes[size - 1] != '\0' ||
        (uintptr_t)block % 8 != 0)
        return INVALID;
    if (!header_fits(&b, h) || !numbers_fit(h) || !sources_fit(&b, h) || !lists_fit(&b, h))
        return INVALID;
    return ops_fit(&b, h, h->ops) && ops_fit(&b, h, h->masks) ? 0 : INVALID;
}
