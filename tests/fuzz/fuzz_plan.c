/*
 * The plan block, as init and `hutch plan` read it. The first byte chooses: the rest is the block
 * itself, or patches to a real one. What plan_check() lets through must then be readable to its
 * last offset without a look at the size.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kernel/step/step.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct hutch_request *request;
static struct buf real;
static volatile uint64_t sink; /* keeps the reads */

static void need(int r)
{
    if (r < 0)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct sock_filter filter[] = {{0x06, 0, 0, 0x7fff0000}};
    static const char *const command[] = {"sh", "-c", "true", NULL};
    static struct facts_bind bind = {.is_dir = true, .host_index = -1};
    static struct facts facts = {
        .mode = PLAN_MODE_SELF,
        .euid = 1000,
        .egid = 1000,
        .entries = {{.name = "usr", .present = true},
                    {.name = "bin", .present = true, .is_link = true, .target = "usr/bin"}},
        .entries_len = 2,
        .binds = &bind,
        .rootfs_host_index = -1,
        .cpus = 1,
        .cpu_mask = {1},
        .seccomp = filter,
        .init_seccomp = filter,
        .seccomp_len = 1,
        .init_seccomp_len = 1,
        .layers = LAYER_ALL,
    };
    (void)argc, (void)argv;
    need(hutch_request_new(HUTCH_VERB_RUN, &request, NULL));
    need(hutch_request_set_command(request, command, NULL));
    need(hutch_request_add_file(request, "in", "input", 5, 0100, NULL));
    need(hutch_request_set(request, "ro-bind", "/srv:/data", NULL));
    need(plan_build(request, PLAN_RUN, &facts, &real, NULL));
    return 0;
}

/* The bytes as a block, with the members that are easily right made right if `repair`. */
static char *raw_block(const uint8_t *data, size_t size, bool repair)
{
    char *block = malloc(size ? size : 1);
    struct plan_header *header = (void *)block;
    if (!block)
        abort();
    if (size)
        memcpy(block, data, size);
    if (repair && size > sizeof(*header)) {
        header->magic = PLAN_MAGIC;
        header->version = PLAN_VERSION;
        header->size = (uint32_t)size;
        block[size - 1] = '\0';
    }
    return block;
}

/* Patches of six bytes: where (in the header, or anywhere), and what. */
static char *patched_block(const uint8_t *data, size_t size, bool in_header)
{
    char *block = malloc(real.len);
    size_t reach = (in_header ? sizeof(struct plan_header) : real.len) - sizeof(uint32_t) + 1;
    if (!block)
        abort();
    memcpy(block, real.data, real.len);
    for (size_t i = 0; i + 6 <= size; i += 6)
        memcpy(block + (size_t)(data[i] | data[i + 1] << 8) % reach, data + i + 2, 4);
    return block;
}

static void read_bytes(const char *block, uint64_t offset, uint64_t len)
{
    for (uint64_t i = 0; i < len; i++)
        sink += (unsigned char)block[offset + i];
}

static void read_span(const char *block, struct plan_span span, size_t element)
{
    read_bytes(block, span.offset, (uint64_t)span.count * element);
}

/* What plan_json() doesn't show: filters, file data, limits. */
static void read_rest(const char *block)
{
    const struct plan_header *h = (const void *)block;
    const struct plan_op *ops = (const void *)(block + h->ops.offset);
    read_span(block, h->seccomp, sizeof(struct sock_filter));
    read_span(block, h->init_seccomp, sizeof(struct sock_filter));
    read_span(block, h->rlimits, sizeof(struct plan_rlimit));
    read_span(block, h->affinity, sizeof(uint64_t));
    for (uint32_t i = 0; i < h->ops.count && i < 64; i++)
        if (ops[i].kind == PLAN_OP_FILE)
            read_bytes(block, ops[i].data, ops[i].data_len);
}

static void read_all(const char *block, size_t size)
{
    struct buf json = BUF(1 << 20);
    struct json_slice value;
    read_rest(block);
    if (plan_json(request, block, size, &json, NULL) == 0 && !json.failed)
        need(json_parse(json.data, json.len, JSON_MAX_DEPTH, HUTCH_STAGE_PLAN, &value, NULL));
    buf_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 16384)
        return 0;
    unsigned mode = data[0] & 3;
    bool patched = mode >= 2;
    char *block = patched ? patched_block(data + 1, size - 1, mode == 2)
                          : raw_block(data + 1, size - 1, mode == 1);
    size_t len = patched ? real.len : size - 1;
    if (plan_check(block, len) == 0)
        read_all(block, len);
    free(block);
    return 0;
}
