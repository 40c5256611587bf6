/* sample.c - see sample.h. */
#include "support/sample.h"

#include <criterion/criterion.h>
#include <string.h>

#include "kernel/step/step.h"

static const struct sock_filter PROGRAM_FILTER[] = {{0x20, 0, 0, 4}, {0x06, 0, 0, 0x7fff0000}};
static const struct sock_filter INIT_FILTER[] = {{0x06, 0, 0, 0x7fff0000}};

struct facts sample_facts(void)
{
    const layer_mask limits = LAYER_BIT(LAYER_CGROUP) | LAYER_BIT(LAYER_MEMORY) |
                              LAYER_BIT(LAYER_PIDS) | LAYER_BIT(LAYER_CPU);
    return (struct facts){
        .mode = PLAN_MODE_SELF,
        .euid = 1234,
        .egid = 5678,
        .entries = {{.name = "usr", .present = true},
                    {.name = "bin", .present = true, .is_link = true, .target = "usr/bin"},
                    {.name = "lib", .present = true, .is_link = true, .target = "/usr/lib"},
                    {.name = "lib32"}},
        .entries_len = 4,
        .etc_present = 0x7, /* alternatives/, ld.so.cache, ssl/certs/ */
        .localtime = "/usr/share/zoneinfo/Europe/Berlin",
        .interpreter = "/usr/bin/interpreter",
        .rootfs_host_index = -1,
        .cpu_mask = {0x33},
        .cpus = 4,
        .seccomp = PROGRAM_FILTER,
        .seccomp_len = ARRAY_LEN(PROGRAM_FILTER),
        .init_seccomp = INIT_FILTER,
        .init_seccomp_len = ARRAY_LEN(INIT_FILTER),
        .layers = LAYER_ALL & ~limits,
    };
}

struct facts sample_root_facts(void)
{
    struct facts facts = sample_facts();
    facts.mode = PLAN_MODE_ROOT;
    facts.euid = facts.egid = 0;
    facts.host_id = 1900000123;
    facts.cgroup_memory = facts.cgroup_pids = facts.cgroup_cpu = true;
    return facts;
}

struct hutch_request *sample_code(enum hutch_verb verb, const char *language, const char *code)
{
    struct hutch_request *request = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_new(verb, &request, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_code(request, language, code, strlen(code), &err), 0, "%s",
                 err.message);
    return request;
}

struct hutch_request *sample_command(const char *const *argv)
{
    struct hutch_request *request = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_new(HUTCH_VERB_RUN, &request, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_command(request, argv, &err), 0, "%s", err.message);
    return request;
}

void sample_set(struct hutch_request *request, const char *option, const char *value)
{
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_set(request, option, value, &err), 0, "%s", err.message);
}

void sample_file(struct hutch_request *request, const char *name, unsigned mode)
{
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_add_file(request, name, name, strlen(name), mode, &err), 0, "%s",
                 err.message);
}

struct buf sample_plan(const struct hutch_request *request, enum plan_purpose purpose,
                       const struct facts *facts)
{
    struct buf block = BUF(0);
    struct hutch_error err = {0};
    cr_assert_eq(request_check(request, &err), 0, "%s", err.message);
    cr_assert_eq(plan_build(request, purpose, facts, &block, &err), 0, "%s", err.message);
    cr_assert_eq(plan_check(block.data, block.len), 0, "init would refuse the block");
    return block;
}
