/*
 * seccomp.c - the shipped profiles, and the choice between a name and a file.
 */
#include "kernel/seccomp.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kernel/seccomp_file.h"

const struct policy_shipped *policy_shipped_find(const char *name)
{
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        if (strcmp(name, POLICY_SHIPPED[i].name) == 0)
            return &POLICY_SHIPPED[i];
    return NULL;
}

bool policy_is_path(const char *name_or_path)
{
    size_t len = strlen(name_or_path);
    return strchr(name_or_path, '/') || (len > 5 && strcmp(name_or_path + len - 5, ".json") == 0);
}

static struct policy_program shipped_program(const struct policy_shipped *shipped,
                                             enum policy_variant variant)
{
    return (struct policy_program){.insns = shipped->code[variant].insns,
                                   .len = shipped->code[variant].len};
}

int policy_load(const char *name_or_path, bool watchdog, struct policy_program *ret,
                struct hutch_error *err)
{
    enum policy_variant variant = watchdog ? POLICY_WATCHDOG : POLICY_CGROUP;
    if (policy_is_path(name_or_path))
        return policy_load_file(name_or_path, variant, ret, err);
    const struct policy_shipped *shipped = policy_shipped_find(name_or_path);
    if (!shipped || shipped->internal)
        return error_request(err,
                             "policy: there is no profile \"%.64s\"; hutch policy list names "
                             "them, a file is named by its path or ends in .json",
                             name_or_path);
    *ret = shipped_program(shipped, variant);
    return 0;
}

struct policy_program policy_init_program(void)
{
    return shipped_program(policy_shipped_find("init"), POLICY_CGROUP);
}

void policy_program_free(struct policy_program *program)
{
    free(program->owned);
    *program = (struct policy_program){0};
}

bool policy_exec_by_fd(const char *name_or_path)
{
    return strcmp(name_or_path, "tool") == 0;
}
