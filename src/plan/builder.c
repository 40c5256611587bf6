/* builder.c - the plan block's bytes. */
#include "plan/builder.h"

#include <string.h>

#include "base/error.h"

#define PAGE 4096ULL
/* For directories, links and what the kernel rounds up: far more than any plan needs. */
#define SCRATCH_SPARE (8ULL << 20)

void builder_init(struct builder *b, const struct hutch_request *request, enum plan_purpose purpose,
                  const struct facts *facts)
{
    *b = (struct builder){.request = request, .facts = facts, .purpose = purpose};
    b->block.max = PLAN_MAX_BYTES;
    buf_put(&b->block, &b->header, sizeof(b->header)); /* filled in at the end */
}

void builder_free(struct builder *b)
{
    struct buf *all[] = {&b->block, &b->argv,  &b->env,     &b->path_dirs, &b->sources, &b->lower,
                         &b->ops,   &b->masks, &b->rlimits, &b->access,    &b->made};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_free(all[i]);
}

uint32_t builder_data(struct builder *b, const void *data, size_t len)
{
    uint32_t offset = (uint32_t)b->block.len; /* below PLAN_MAX_BYTES by the buffer's bound */

    buf_put(&b->block, data, len);
    return offset;
}

uint32_t builder_text(struct builder *b, const char *text)
{
    return builder_data(b, text, strlen(text) + 1);
}

static const char *relative(const char *path)
{
    while (*path == '/')
        path++;
    return path;
}

/* How `made` marks its paths. */
enum { MADE_DIR = 'r', MADE_DATA_DIR = 'd', MADE_FILE = 'f' };

static void put_op(struct builder *b, const struct plan_op *op)
{
    buf_put(&b->ops, op, sizeof(*op));
}

static bool is_made(const struct builder *b, char mark, const char *path)
{
    for (size_t at = 0; at < b->made.len; at += strlen(b->made.data + at) + 1)
        if (b->made.data[at] == mark && strcmp(b->made.data + at + 1, path) == 0)
            return true;
    return false;
}

static void note_made(struct builder *b, char mark, const char *path)
{
    buf_put(&b->made, &mark, 1);
    buf_put(&b->made, path, strlen(path) + 1);
}

bool builder_has(const struct builder *b, const char *path)
{
    path = relative(path);
    return is_made(b, MADE_DIR, path) || is_made(b, MADE_FILE, path);
}

/* "a/b/c": makes a and a/b. */
static void parents(struct builder *b, const char *path, uint32_t flags)
{
    char parent[FACTS_PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        if (len == 0 || len >= sizeof(parent))
            continue;
        memcpy(parent, path, len);
        parent[len] = '\0';
        builder_dir(b, parent, 0755, flags);
    }
}

void builder_dir(struct builder *b, const char *path, uint32_t mode, uint32_t flags)
{
    struct plan_op op = {.kind = PLAN_OP_DIR, .mode = mode, .flags = flags & PLAN_IN_DATA};

    const char mark = (flags & PLAN_IN_DATA) ? MADE_DATA_DIR : MADE_DIR;

    path = relative(path);
    if (*path == '\0' || is_made(b, mark, path))
        return;
    parents(b, path, flags);
    note_made(b, mark, path);
    op.path = builder_text(b, path);
    put_op(b, &op);
}

void builder_file(struct builder *b, const char *path, uint32_t mode, uint32_t flags,
                  const void *data, size_t len)
{
    struct plan_op op = {.kind = PLAN_OP_FILE, .mode = mode, .flags = flags & PLAN_IN_DATA};

    path = relative(path);
    parents(b, path, flags);
    if ((flags & PLAN_IN_DATA) == 0) /* there they can be many, and no bind meets one */
        note_made(b, MADE_FILE, path);
    if (!(flags & PLAN_IN_DATA))
        b->header.scratch_bytes += (len + PAGE - 1) / PAGE * PAGE;
    op.path = builder_text(b, path);
    op.data = builder_data(b, data, len);
    op.data_len = (uint32_t)len;
    put_op(b, &op);
}

void builder_symlink(struct builder *b, const char *path, const char *target)
{
    struct plan_op op = {.kind = PLAN_OP_SYMLINK};

    path = relative(path);
    parents(b, path, 0);
    op.path = builder_text(b, path);
    op.text = builder_text(b, target);
    put_op(b, &op);
}

void builder_bind(struct builder *b, uint32_t source, const char *path, uint32_t flags)
{
    struct plan_op op = {.kind = PLAN_OP_BIND, .flags = flags, .source = source};

    op.path = builder_text(b, relative(path));
    put_op(b, &op);
}

void builder_bind_data(struct builder *b, const char *dir, const char *path, uint32_t flags)
{
    struct plan_op op = {.kind = PLAN_OP_BIND_DATA, .flags = flags};

    op.path = builder_text(b, relative(path));
    op.text = builder_text(b, dir);
    put_op(b, &op);
}

void builder_op(struct builder *b, enum plan_op_kind kind, const char *path)
{
    struct plan_op op = {.kind = kind};

    op.path = builder_text(b, relative(path));
    put_op(b, &op);
}

void builder_mask(struct builder *b, enum plan_op_kind kind, const char *path)
{
    struct plan_op op = {.kind = kind};

    op.path = builder_text(b, relative(path));
    buf_put(&b->masks, &op, sizeof(op));
}

uint32_t builder_source(struct builder *b, const char *path, int host_index)
{
    struct plan_source source = {0};
    uint32_t index = (uint32_t)(b->sources.len / sizeof(source));

    if (host_index < 0)
        source.path = builder_text(b, path);
    else
        source.host_index = (uint32_t)host_index;
    buf_put(&b->sources, &source, sizeof(source));
    return index;
}

void builder_lower(struct builder *b, uint32_t source)
{
    buf_put(&b->lower, &source, sizeof(source));
}

static void put_slot(struct buf *table, uint64_t offset)
{
    buf_put(table, &offset, sizeof(offset));
}

void builder_argv(struct builder *b, const char *text)
{
    put_slot(&b->argv, builder_text(b, text));
}

void builder_env_text(struct builder *b, const char *pair)
{
    put_slot(&b->env, builder_text(b, pair));
}

void builder_env(struct builder *b, const char *name, const char *value)
{
    uint32_t offset = builder_data(b, name, strlen(name));

    buf_puts(&b->block, "=");
    (void)builder_text(b, value);
    put_slot(&b->env, offset);
}

void builder_path_dir(struct builder *b, const char *dir)
{
    uint32_t offset = builder_text(b, dir);

    buf_put(&b->path_dirs, &offset, sizeof(offset));
}

void builder_rlimit(struct builder *b, uint32_t resource, uint64_t value, bool exact)
{
    struct plan_rlimit limit = {.resource = resource, .exact = exact, .value = value};

    buf_put(&b->rlimits, &limit, sizeof(limit));
}

void builder_access(struct builder *b, const char *path, enum plan_access access)
{
    struct plan_access_rule rule = {.access = access};

    rule.path = builder_text(b, path);
    buf_put(&b->access, &rule, sizeof(rule));
}

static struct plan_span append(struct builder *b, const void *data, size_t len, size_t element)
{
    static const char ZEROS[8];
    struct plan_span span = {.count = (uint32_t)(len / element)};

    buf_put(&b->block, ZEROS, (8 - b->block.len % 8) % 8);
    span.offset = (uint32_t)b->block.len;
    buf_put(&b->block, data, len);
    return span;
}

static void append_tables(struct builder *b)
{
    const struct {
        struct buf *table;
        size_t element;
        struct plan_span *span;
    } tables[] = {
        {&b->argv, sizeof(uint64_t), &b->header.argv},
        {&b->env, sizeof(uint64_t), &b->header.env},
        {&b->path_dirs, sizeof(uint32_t), &b->header.path_dirs},
        {&b->sources, sizeof(struct plan_source), &b->header.sources},
        {&b->lower, sizeof(uint32_t), &b->header.lower},
        {&b->ops, sizeof(struct plan_op), &b->header.ops},
        {&b->masks, sizeof(struct plan_op), &b->header.masks},
        {&b->rlimits, sizeof(struct plan_rlimit), &b->header.rlimits},
        {&b->access, sizeof(struct plan_access_rule), &b->header.access},
    };

    put_slot(&b->argv, 0);
    put_slot(&b->env, 0);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        *tables[i].span = append(b, tables[i].table->data, tables[i].table->len, tables[i].element);
    b->header.seccomp =
        append(b, b->facts->seccomp, b->facts->seccomp_len * sizeof(struct sock_filter),
               sizeof(struct sock_filter));
    b->header.init_seccomp =
        append(b, b->facts->init_seccomp, b->facts->init_seccomp_len * sizeof(struct sock_filter),
               sizeof(struct sock_filter));
}

static int first_failure(const struct builder *b)
{
    const struct buf *all[] = {&b->block,   &b->argv,   &b->env, &b->path_dirs,
                               &b->sources, &b->lower,  &b->ops, &b->masks,
                               &b->rlimits, &b->access, &b->made};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->failed != 0)
            return all[i]->failed;
    return 0;
}

int builder_finish(struct builder *b, struct buf *ret_block, struct hutch_error *err)
{
    int failed;

    append_tables(b);
    buf_put(&b->block, "", 1); /* every text ends inside the block */
    failed = first_failure(b);
    if (failed == -E2BIG)
        return error_set(err, HUTCH_STAGE_PLAN, EFBIG,
                         "the code and input files together are over 2 GiB; bind them with "
                         "--ro-bind instead");
    if (failed != 0)
        return error_oom(err, HUTCH_STAGE_PLAN);
    b->header.scratch_bytes += SCRATCH_SPARE;
    b->header.magic = PLAN_MAGIC;
    b->header.version = PLAN_VERSION;
    b->header.size = (uint32_t)b->block.len;
    memcpy(b->block.data, &b->header, sizeof(b->header));
    *ret_block = b->block;
    b->block = BUF(0);
    return 0;
}
