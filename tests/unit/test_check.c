/*
 * test_check.c - the one check of a plan block: what init would misread is refused, whatever
 * field it is in.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "kernel/step/step.h"
#include "support/sample.h"
#include "support/spawn.h"

/* A plan that uses everything a block can have. */
static struct buf block;
static struct plan_header *header;

static void set_up(void)
{
    static struct facts_bind binds[2] = {{.is_dir = true, .host_index = 0},
                                         {.is_dir = true, .host_index = -1}};
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "-c", "true"));
    struct facts facts = sample_root_facts();
    facts.rootfs_host_index = 1;
    facts.host_sources = 2;
    facts.binds = binds;
    sample_set(request, "rootfs", "/srv/root");
    sample_set(request, "bind", "/srv/a:/a");
    sample_set(request, "ro-bind", "/srv/b:/b");
    sample_set(request, "cpus", "1");
    sample_file(request, "in", 0644);
    block = sample_plan(request, PLAN_RUN, &facts);
    header = (void *)block.data;
}

static void tear_down(void)
{
    buf_free(&block);
}

TestSuite(check, .init = set_up, .fini = tear_down, .timeout = 60);

static void *at(size_t offset)
{
    return block.data + offset;
}

/* Writes `value` over a field, checks, puts the old value back. */
static int check_with(void *field, size_t size, uint64_t value)
{
    char before[8];
    memcpy(before, field, size);
    memcpy(field, &value, size);
    int r = plan_check(block.data, block.len);
    memcpy(field, before, size);
    return r;
}

#define REFUSED(field, value)                                                                      \
    cr_expect_eq(check_with(&(field), sizeof(field), (value)), -EINVAL, "%s = %llu", #field,       \
                 (unsigned long long)(value))
#define ACCEPTED(field, value)                                                                     \
    cr_expect_eq(check_with(&(field), sizeof(field), (value)), 0, "%s = %llu", #field,             \
                 (unsigned long long)(value))

static const uint64_t HUGE_VALUES[] = {0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};

/* An offset may not be below the header, nor behind the block. */
#define OFFSET_REFUSED(field)                                                                      \
    do {                                                                                           \
        REFUSED(field, 1);                                                                         \
        REFUSED(field, sizeof(struct plan_header) - 1);                                            \
        REFUSED(field, block.len);                                                                 \
        REFUSED(field, block.len + 1);                                                             \
        for (size_t huge_ = 0; huge_ < ARRAY_LEN(HUGE_VALUES); huge_++)                            \
            REFUSED(field, HUGE_VALUES[huge_]);                                                    \
    } while (0)

Test(check, a_plan_of_ours_is_accepted)
{
    cr_assert_eq(plan_check(block.data, block.len), 0);
}

Test(check, every_truncated_block_is_refused)
{
    for (size_t len = 0; len < block.len; len++) {
        /* Exactly as large, so that a sanitizer sees a read behind it. */
        char *cut = aligned_alloc(8, (len + 15) & ~(size_t)7);
        cr_assert_not_null(cut);
        memcpy(cut, block.data, len);
        cr_assert_eq(plan_check(cut, len), -EINVAL, "%zu of %zu bytes", len, block.len);
        free(cut);
    }
}

Test(check, a_cut_block_whose_size_is_made_right_is_refused)
{
    for (size_t len = sizeof(*header) + 1; len < block.len; len += 8) {
        char *cut = aligned_alloc(8, (len + 7) & ~(size_t)7);
        cr_assert_not_null(cut);
        memcpy(cut, block.data, len);
        ((struct plan_header *)(void *)cut)->size = (uint32_t)len;
        cut[len - 1] = '\0';
        cr_assert_eq(plan_check(cut, len), -EINVAL, "%zu of %zu bytes", len, block.len);
        free(cut);
    }
}

Test(check, size_alignment_and_the_last_byte)
{
    char *copy = aligned_alloc(8, (block.len + 16) & ~(size_t)7);
    cr_assert_not_null(copy);
    memcpy(copy + 1, block.data, block.len);
    cr_assert_eq(plan_check(copy + 1, block.len), -EINVAL, "not aligned");
    memcpy(copy, block.data, block.len);
    copy[block.len] = '\0';
    cr_assert_eq(plan_check(copy, block.len + 1), -EINVAL, "one byte more than it says");
    copy[block.len - 1] = 'x';
    cr_assert_eq(plan_check(copy, block.len), -EINVAL, "no NUL at the end");
    cr_assert_eq(plan_check(copy, sizeof(*header)), -EINVAL, "the header alone");
    free(copy);
}

Test(check, every_number_of_the_header)
{
    REFUSED(header->magic, PLAN_MAGIC + 1);
    REFUSED(header->magic, 0);
    REFUSED(header->version, PLAN_VERSION + 1);
    REFUSED(header->version, 0);
    REFUSED(header->size, block.len - 1);
    REFUSED(header->size, block.len + 1);
    REFUSED(header->size, 0);
    REFUSED(header->flags, 1U << 5);
    REFUSED(header->flags, 1U << 31);
    REFUSED(header->mode, 0);
    REFUSED(header->mode, 3);
    REFUSED(header->layers, LAYER_BIT(LAYER_COUNT));
    REFUSED(header->required, LAYER_BIT(LAYER_COUNT));
    REFUSED(header->host_sources, 1); /* fewer than the sources say */
    REFUSED(header->host_sources, 0);
    REFUSED(header->host_sources, PLAN_HOST_SOURCES_MAX + 1);
    REFUSED(header->root_kind, 0);
    REFUSED(header->root_kind, 3);
    REFUSED(header->wall_ms, 0);
    REFUSED(header->data_bytes, 0);
    REFUSED(header->data_inodes, 0);
    REFUSED(header->nice, 20);
    REFUSED(header->nice, UINT32_MAX); /* -1 would be faster than the host */
    REFUSED(header->reserved, 1);
    ACCEPTED(header->mode, PLAN_MODE_SELF);
    ACCEPTED(header->root_kind, PLAN_ROOT_TMPFS);
    ACCEPTED(header->cpu_time_ms, 1);
    ACCEPTED(header->memory_bytes, 1 << 20);
    ACCEPTED(header->nice, 19);
}

Test(check, ids_are_never_0_and_never_none)
{
    REFUSED(header->uid, 0);
    REFUSED(header->gid, 0);
    REFUSED(header->uid, UINT32_MAX);
    REFUSED(header->gid, UINT32_MAX);
    REFUSED(header->outside_uid, UINT32_MAX);
    REFUSED(header->outside_gid, UINT32_MAX);
    ACCEPTED(header->uid, 1001);
}

Test(check, every_text_of_the_header)
{
    OFFSET_REFUSED(header->hostname);
    OFFSET_REFUSED(header->workdir);
    OFFSET_REFUSED(header->program);
    REFUSED(header->hostname, 0);
    REFUSED(header->workdir, 0);
    REFUSED(header->program, 0);
    REFUSED(header->workdir, header->workdir + 1); /* "work": not absolute */
}

struct span_row {
    const char *name;
    struct plan_span *span;
    size_t element;
};

static const struct span_row *spans(size_t *ret_len)
{
    static struct span_row rows[16];
    const struct span_row all[] = {
        {"argv", &header->argv, 8},
        {"env", &header->env, 8},
        {"affinity", &header->affinity, 8},
        {"path_dirs", &header->path_dirs, 4},
        {"sources", &header->sources, sizeof(struct plan_source)},
        {"lower", &header->lower, 4},
        {"ops", &header->ops, sizeof(struct plan_op)},
        {"masks", &header->masks, sizeof(struct plan_op)},
        {"rlimits", &header->rlimits, sizeof(struct plan_rlimit)},
        {"access", &header->access, sizeof(struct plan_access_rule)},
        {"seccomp", &header->seccomp, 8},
        {"init_seccomp", &header->init_seccomp, 8},
    };
    memcpy(rows, all, sizeof(all));
    *ret_len = ARRAY_LEN(all);
    return rows;
}

static void span_refused(const struct span_row *row, uint32_t offset, uint32_t count)
{
    struct plan_span before = *row->span;
    *row->span = (struct plan_span){offset, count};
    cr_expect_eq(plan_check(block.data, block.len), -EINVAL, "%s: offset %u, count %u", row->name,
                 offset, count);
    *row->span = before;
}

Test(check, every_span_stays_inside)
{
    size_t len;
    const struct span_row *rows = spans(&len);
    for (size_t i = 0; i < len; i++) {
        const struct plan_span span = *rows[i].span;
        const uint32_t room = (uint32_t)(block.len - span.offset);
        cr_assert_gt(span.count, 0, "the sample has no %s", rows[i].name);
        span_refused(&rows[i], span.offset + 1, span.count);
        span_refused(&rows[i], span.offset + 4, span.count);
        span_refused(&rows[i], 0, span.count);
        span_refused(&rows[i], sizeof(*header) - 8, span.count);
        span_refused(&rows[i], (uint32_t)block.len & ~7U, span.count);
        span_refused(&rows[i], ((uint32_t)block.len + 8) & ~7U, span.count);
        span_refused(&rows[i], 0xfffffff8, span.count);
        span_refused(&rows[i], 0x80000000, span.count);
        span_refused(&rows[i], span.offset, room / (uint32_t)rows[i].element + 1);
        span_refused(&rows[i], span.offset, 0x20000000); /* x 8: a 32-bit product of 0 */
        span_refused(&rows[i], span.offset, UINT32_MAX);
    }
}

Test(check, what_must_be_there_is)
{
    REFUSED(header->argv.count, 0);
    REFUSED(header->argv.count, 1); /* no NULL at the end */
    REFUSED(header->env.count, 0);
    REFUSED(header->env.count, header->env.count - 1);
    REFUSED(header->seccomp.count, 0); /* never without a filter */
    REFUSED(header->init_seccomp.count, 0);
    REFUSED(header->seccomp.count, 4097);
    REFUSED(header->affinity.count, PLAN_CPU_WORDS + 1);
    REFUSED(header->sources.count, PLAN_SOURCES_MAX + 1);
    REFUSED(header->sources.count, 0); /* binds name them */
    ACCEPTED(header->affinity.count, 0);
    ACCEPTED(header->lower.count, 0);
    ACCEPTED(header->access.count, 0);
}

Test(check, every_argument_and_variable)
{
    const struct plan_span lists[] = {header->argv, header->env};
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        uint64_t *slots = at(lists[k].offset);
        for (uint32_t i = 0; i + 1 < lists[k].count; i++) {
            OFFSET_REFUSED(slots[i]);
            REFUSED(slots[i], 0);
            REFUSED(slots[i], UINT64_MAX);
            REFUSED(slots[i], (1ULL << 32) + sizeof(*header)); /* not cut to 32 bits */
        }
        REFUSED(slots[lists[k].count - 1], sizeof(*header));
    }
}

Test(check, every_source)
{
    struct plan_source *sources = at(header->sources.offset);
    unsigned of_host = 0;
    for (uint32_t i = 0; i < header->sources.count; i++) {
        if (sources[i].path != 0) {
            OFFSET_REFUSED(sources[i].path);
            continue;
        }
        REFUSED(sources[i].host_index, header->host_sources);
        REFUSED(sources[i].host_index, UINT32_MAX);
        of_host++;
    }
    cr_assert_eq(of_host, 2);
    uint32_t *lower = at(header->lower.offset);
    REFUSED(lower[0], header->sources.count);
    REFUSED(lower[0], UINT32_MAX);
}

Test(check, every_search_directory_and_access_rule)
{
    uint32_t *dirs = at(header->path_dirs.offset);
    struct plan_access_rule *rules = at(header->access.offset);
    for (uint32_t i = 0; i < header->path_dirs.count; i++)
        OFFSET_REFUSED(dirs[i]);
    for (uint32_t i = 0; i < header->access.count; i++) {
        OFFSET_REFUSED(rules[i].path);
        REFUSED(rules[i].path, rules[i].path + 1); /* not absolute */
        REFUSED(rules[i].access, 0);
        REFUSED(rules[i].access, PLAN_ACCESS_KINDS);
    }
}

Test(check, every_rlimit)
{
    struct plan_rlimit *limits = at(header->rlimits.offset);
    for (uint32_t i = 0; i < header->rlimits.count; i++) {
        REFUSED(limits[i].resource, 16);
        REFUSED(limits[i].resource, UINT32_MAX);
        REFUSED(limits[i].exact, 2);
        ACCEPTED(limits[i].value, UINT64_MAX);
    }
}

static void op_refused(struct plan_op *op)
{
    OFFSET_REFUSED(op->path);
    REFUSED(op->path, 0);
    REFUSED(op->kind, 0);
    REFUSED(op->kind, PLAN_OP_KINDS);
    REFUSED(op->kind, UINT32_MAX);
    REFUSED(op->flags, 1U << 5);
    REFUSED(op->flags, 1U << 31);
    REFUSED(op->mode, 010000); /* a file's type */
    if (op->kind == PLAN_OP_SYMLINK || op->kind == PLAN_OP_BIND_DATA)
        OFFSET_REFUSED(op->text);
    if (op->kind == PLAN_OP_BIND) {
        REFUSED(op->source, header->sources.count);
        REFUSED(op->source, UINT32_MAX);
    }
    if (op->kind == PLAN_OP_FILE) {
        REFUSED(op->data_len, block.len - op->data + 1);
        REFUSED(op->data_len, UINT32_MAX);
        REFUSED(op->data, block.len + 1);
        REFUSED(op->data, UINT32_MAX);
    }
}

Test(check, every_operation)
{
    const struct plan_span lists[] = {header->ops, header->masks};
    uint32_t kinds = 0;
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        struct plan_op *ops = at(lists[k].offset);
        for (uint32_t i = 0; i < lists[k].count; i++) {
            kinds |= 1U << ops[i].kind;
            op_refused(&ops[i]);
        }
    }
    cr_assert_eq(kinds, (1U << PLAN_OP_KINDS) - 2, "the sample has operations of every kind");
}

/* Written over an operation's own path, which is long enough for each. */
static int check_path(const char *path)
{
    struct plan_op *ops = at(header->masks.offset);
    char *text = NULL, before[32];
    for (uint32_t i = 0; i < header->masks.count && !text; i++)
        if (strcmp(at(ops[i].path), "proc/latency_stats") == 0)
            text = at(ops[i].path);
    cr_assert(text && strlen(path) <= strlen("proc/latency_stats"));
    memcpy(before, text, strlen(text) + 1);
    memcpy(text, path, strlen(path) + 1);
    int r = plan_check(block.data, block.len);
    memcpy(text, before, strlen(before) + 1);
    return r;
}

Test(check, paths_stay_in_the_root)
{
    static const char *const OUTSIDE[] = {"",      "/",     "/proc",  "..",
                                          "../x",  "a/..",  "a/../b", "a/b/../../../c",
                                          "a//..", "../..", "./.."};
    static const char *const INSIDE[] = {"a",     "..a",   "a..",   "a/..b",
                                         "a../b", "a/...", ".../a", "a/.b/..c"};
    for (size_t i = 0; i < ARRAY_LEN(OUTSIDE); i++)
        cr_expect_eq(check_path(OUTSIDE[i]), -EINVAL, "'%s'", OUTSIDE[i]);
    for (size_t i = 0; i < ARRAY_LEN(INSIDE); i++)
        cr_expect_eq(check_path(INSIDE[i]), 0, "'%s'", INSIDE[i]);
}
