#include "request/request.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static struct hutch_error err;

static void cleanup_request(struct hutch_request **request)
{
    hutch_request_free(*request);
}
#define _cleanup_request_ _cleanup_(cleanup_request)

static struct hutch_request *new_request(enum hutch_verb verb)
{
    struct hutch_request *request = NULL;
    cr_assert_eq(hutch_request_new(verb, &request, &err), 0);
    return request;
}

static void accepts(struct hutch_request *request, const char *option, const char *value)
{
    cr_assert_eq(hutch_request_set(request, option, value, &err), 0, "%s %s: %s", option, value,
                 err.message);
}

static void refuses(struct hutch_request *request, const char *option, const char *value,
                    const char *words)
{
    memset(&err, 0, sizeof(err));
    cr_assert_eq(hutch_request_set(request, option, value, &err), -EINVAL, "%s %s", option, value);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert(strstr(err.message, option), "'%s' names no %s", err.message, option);
    cr_assert(strstr(err.message, words), "'%s' has no '%s'", err.message, words);
}

Test(options, defaults_of_run)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    cr_assert_eq(r->limits.timeout_ms, 30000);
    cr_assert_eq(r->limits.memory_bytes, 512 << 20);
    cr_assert_eq(r->limits.cpus_milli, 1000);
    cr_assert_eq(r->limits.cpu_time_ms, 0);
    cr_assert_eq(r->limits.pids, 64);
    cr_assert_eq(r->limits.disk_bytes, 64 << 20);
    cr_assert_eq(r->limits.max_output_bytes, 64000);
    cr_assert_eq(r->require, LAYER_DEFAULT_REQUIRED);
    cr_assert_eq(r->allow_missing, 0);
    cr_assert_eq(r->flood, FLOOD_DROP);
    cr_assert_str_eq(r->rootfs, "host");
    cr_assert_str_eq(r->workdir, "/work");
    cr_assert(r->collect_files);
    cr_assert_not(r->omit_file_data);
    cr_assert_eq(r->stdin_fd, -1);
    cr_assert_eq(r->stdout_fd, -1);
    cr_assert_eq(r->stderr_fd, -1);
}

Test(options, defaults_of_exec)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    cr_assert_eq(r->limits.timeout_ms, 5000);
    cr_assert_eq(r->limits.memory_bytes, 128 << 20);
    cr_assert_eq(r->limits.pids, 64);
    cr_assert_not(r->collect_files);
}

Test(options, every_limit_at_its_edges)
{
    static const struct {
        const char *option, *least, *most, *below, *above;
        uint64_t least_value, most_value;
        size_t offset;
    } CASES[] = {
#define AT(m) offsetof(struct limits, m)
        {"timeout", "0.001", "86400", "0.0009", "86400.001", 1, 86400000, AT(timeout_ms)},
        {"cpu-time", "0.001", "86400", "0", "86401", 1, 86400000, AT(cpu_time_ms)},
        {"memory", "1M", "1T", "1048575", "1025G", 1 << 20, 1ULL << 40, AT(memory_bytes)},
        {"cpus", "0.01", "1024", "0.0099", "1024.0001", 10, 1024000, AT(cpus_milli)},
        {"pids", "1", "32768", "0", "32769", 1, 32768, AT(pids)},
        {"disk", "64K", "1T", "65535", "2T", 65536, 1ULL << 40, AT(disk_bytes)},
        {"max-output", "0", "1G", "-1", "1073741825", 0, 1 << 30, AT(max_output_bytes)},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
        const uint64_t *slot = (const void *)((const char *)&r->limits + CASES[i].offset);
        accepts(r, CASES[i].option, CASES[i].least);
        cr_assert_eq(*slot, CASES[i].least_value, "%s", CASES[i].option);
        accepts(r, CASES[i].option, CASES[i].most);
        cr_assert_eq(*slot, CASES[i].most_value, "%s", CASES[i].option);
        refuses(r, CASES[i].option, CASES[i].below, "give ");
        refuses(r, CASES[i].option, CASES[i].above, "out of range");
        static const char *const BAD[] = {"",         "x",    "1x",   " 1", "nan",
                                          "inf",      "none", "0x10", "-5", "18446744073709551616T",
                                          "unlimited"};
        for (size_t j = 0; j < ARRAY_LEN(BAD); j++)
            refuses(r, CASES[i].option, BAD[j], "give ");
        refuses(r, CASES[i].option, "340282366920938463463374607431768211457", "out of range");
        cr_assert_eq(*slot, CASES[i].most_value, "%s changed on failure", CASES[i].option);
    }
}

Test(options, table_is_whole)
{
    for (size_t i = 0; i < REQUEST_OPTIONS_LEN; i++) {
        const struct request_option *row = &REQUEST_OPTIONS[i];
        cr_assert_eq(request_option_find(row->name), row);
        cr_assert_not_null(row->set);
        cr_assert_neq(row->verbs & (OPTION_RUN | OPTION_EXEC), 0);
        cr_assert(!row->help || strlen(row->help) < 58, "%s", row->help);
    }
    cr_assert_null(request_option_find("memor"));
    cr_assert_null(request_option_find(""));
}

Test(options, unknown_and_misplaced_are_refused)
{
    _cleanup_request_ struct hutch_request *run = new_request(HUTCH_VERB_RUN);
    _cleanup_request_ struct hutch_request *exec = new_request(HUTCH_VERB_EXEC);
    refuses(run, "colour", "1", "there is no such option");
    refuses(exec, "env", "A=1", "not an option of exec");
    refuses(exec, "workdir", "/work", "not an option of exec");
    cr_assert_eq(hutch_request_set(NULL, "pids", "1", &err), -EINVAL);
    cr_assert_eq(hutch_request_set(run, NULL, "1", &err), -EINVAL);
    cr_assert_eq(hutch_request_set(run, "pids", NULL, &err), -EINVAL);
}

Test(options, choices)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "on-flood", "kill");
    cr_assert_eq(r->flood, FLOOD_KILL);
    accepts(r, "on-flood", "drop");
    cr_assert_eq(r->flood, FLOOD_DROP);
    refuses(r, "on-flood", "Kill", "drop, kill");
    accepts(r, "network", "none");
    refuses(r, "network", "host", "only none");
    accepts(r, "language", "javascript");
    cr_assert_eq(r->language, LANGUAGE_JAVASCRIPT);
    refuses(r, "language", "ruby", "python, javascript, bash");
    accepts(r, "writable-root", "1");
    cr_assert(r->writable_root);
    refuses(r, "writable-root", "yes", "no value");
    accepts(r, "collect", "names");
    cr_assert(r->collect_files && r->omit_file_data);
    accepts(r, "collect", "none");
    cr_assert(!r->collect_files && !r->omit_file_data);
    accepts(r, "collect", "data");
    cr_assert(r->collect_files && !r->omit_file_data);
    refuses(r, "collect", "all", "none, names, data");
}

Test(options, a_later_variable_replaces)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "env", "A=1");
    accepts(r, "env", "AB=2");
    accepts(r, "env", "EMPTY=");
    accepts(r, "env", "A=3=4");
    cr_assert_eq(r->env.len, 3);
    cr_assert_str_eq(r->env.items[0], "A=3=4");
    cr_assert_str_eq(r->env.items[1], "AB=2");
    refuses(r, "env", "A", "no '='");
    refuses(r, "env", "=1", "no name");
    refuses(r, "env", "", "no '='");
    _cleanup_free_ char *big = malloc(200000);
    memset(big, 'x', 200000);
    memcpy(big, "A=", 2);
    big[200000 - 1] = '\0';
    refuses(r, "env", big, "longer than");
}

Test(options, paths_of_the_host_are_absolute)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "python", "/opt/venv/bin/python");
    refuses(r, "python", "python3", "absolute");
    accepts(r, "rootfs", "/srv/root");
    accepts(r, "rootfs", "host");
    refuses(r, "rootfs", "debian", "come later; give 'host' or a directory");
    refuses(r, "rootfs", "", "come later");
    refuses(r, "rootfs", "./x", "absolute");
    cr_assert_str_eq(r->rootfs, "host");
}

Test(options, binds)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "ro-bind", "/a:/data");
    accepts(r, "bind", "/with:colon/x:/./work//sub/");
    cr_assert_eq(r->binds_len, 2);
    cr_assert_str_eq(r->binds[0].source, "/a");
    cr_assert_str_eq(r->binds[0].target, "/data");
    cr_assert_not(r->binds[0].writable);
    cr_assert_str_eq(r->binds[1].source, "/with:colon/x");
    cr_assert_str_eq(r->binds[1].target, "/work/sub");
    cr_assert(r->binds[1].writable);
    accepts(r, "bind", "/a:/procs"); /* only whole components count */
}

Test(options, binds_that_are_refused)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    static const struct {
        const char *value, *words;
    } CASES[] = {
        {"/a", "not SRC:DST"},       {"", "not SRC:DST"},          {":/b", "not SRC:DST"},
        {"/a:b", "not SRC:DST"},     {"a:/b", "not an absolute"},  {"/a:/b/../c", "'..'"},
        {"/a:/b/..", "'..'"},        {"/a:/proc", "own /proc"},    {"/a:/proc/x", "own /proc"},
        {"/a:/dev/shm", "own /dev"}, {"/a:/sys", "own /sys"},      {"/a:/run", "own /run/hutch"},
        {"/a:/", "own /proc"},       {"/a:/run/hutch/x", "own /"}, {"/a:/b:ro", "--ro-bind"},
        {"/a:/./", "own /proc"},     {"/a://proc", "own /proc"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        refuses(r, "ro-bind", CASES[i].value, CASES[i].words);
        refuses(r, "bind", CASES[i].value, CASES[i].words);
    }
    cr_assert_eq(r->binds_len, 0);
}

Test(options, binds_are_counted)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    for (int i = 0; i < 256; i++)
        accepts(r, "bind", "/a:/b");
    refuses(r, "bind", "/a:/b", "more than 256");
}

Test(options, workdir)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "workdir", "/tmp//x/");
    cr_assert_str_eq(r->workdir, "/tmp/x");
    accepts(r, "workdir", "/");
    cr_assert_str_eq(r->workdir, "/");
    refuses(r, "workdir", "x", "absolute");
    refuses(r, "workdir", "", "absolute");
    refuses(r, "workdir", "/a/../proc", "'..'");
    refuses(r, "workdir", "/proc/self/fd/3", "below /proc");
    char longest[5000];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    refuses(r, "workdir", longest, "longer");
}

Test(options, policy_is_a_name_or_a_file)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "policy", "tool");
    accepts(r, "policy", "./x y");
    accepts(r, "policy", "p.json");
    refuses(r, "policy", "", "hutch policy list");
    refuses(r, "policy", "a b", "neither");
    refuses(r, "policy", ".json", "neither");
}

Test(options, layers_add_up)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "require", "memory,pids");
    accepts(r, "require", "landlock");
    cr_assert_eq(r->require_named,
                 LAYER_BIT(LAYER_MEMORY) | LAYER_BIT(LAYER_PIDS) | LAYER_BIT(LAYER_LANDLOCK));
    cr_assert_eq(r->require, LAYER_DEFAULT_REQUIRED | r->require_named);
    accepts(r, "require", "all");
    cr_assert_eq(r->require, LAYER_ALL);
    static const char *const BAD[] = {"",       "memory,", ",memory", "memory,,pids",
                                      "Memory", "ram",     "al",      "all "};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        refuses(r, "require", BAD[i], "is not a layer; there are user_ns pid_ns");
}

Test(options, what_may_be_missing)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "allow-missing", "net_ns,ipc_ns");
    cr_assert_eq(r->allow_missing, LAYER_BIT(LAYER_NET_NS) | LAYER_BIT(LAYER_IPC_NS));
    for (int i = 0; i < LAYER_COUNT; i++) {
        const char *name = layer_name((enum layer)i);
        if (LAYER_NEVER_MISSING & LAYER_BIT(i))
            refuses(r, "allow-missing", name, "can never be missing: without it");
        else
            accepts(r, "allow-missing", name);
    }
    refuses(r, "allow-missing", "all", "is not a layer");
}

Test(options, host_ids)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    accepts(r, "host-ids", "1:1");
    accepts(r, "host-ids", "4294967294:1");
    accepts(r, "host-ids", "200000:65536");
    cr_assert_str_eq(r->host_ids, "200000:65536");
    static const char *const BAD[] = {
        "1",     "0:1",  "1:0",          "1:",           ":1",          "",
        "1:2:3", "-1:1", "4294967295:1", "4294967294:2", "1:4294967295"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        refuses(r, "host-ids", BAD[i], "host-ids: '");
}

static void lowers(const char *option, const char *first, const char *second, uint64_t want,
                   const uint64_t *slot, struct hutch_request *r)
{
    accepts(r, option, first);
    cr_assert_eq(request_set_lowering(r, option, second, &err), 0, "%s", err.message);
    cr_assert_eq(*slot, want, "%s: %llu", option, (unsigned long long)*slot);
}

Test(options, lowering_never_raises)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    lowers("timeout", "2", "3", 2000, &r->limits.timeout_ms, r);
    lowers("timeout", "2", "1", 1000, &r->limits.timeout_ms, r);
    lowers("memory", "64M", "1G", 64 << 20, &r->limits.memory_bytes, r);
    lowers("memory", "64M", "32M", 32 << 20, &r->limits.memory_bytes, r);
    lowers("cpus", "0.5", "2", 500, &r->limits.cpus_milli, r);
    lowers("pids", "8", "9", 8, &r->limits.pids, r);
    lowers("disk", "1M", "2M", 1 << 20, &r->limits.disk_bytes, r);
    lowers("max-output", "0", "1", 0, &r->limits.max_output_bytes, r);
    lowers("max-output", "10", "0", 0, &r->limits.max_output_bytes, r);
}

Test(options, lowering_from_none_sets)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    cr_assert_eq(r->limits.cpu_time_ms, 0);
    cr_assert_eq(request_set_lowering(r, "cpu-time", "2", &err), 0);
    cr_assert_eq(r->limits.cpu_time_ms, 2000);
    cr_assert_eq(request_set_lowering(r, "cpu-time", "3", &err), 0);
    cr_assert_eq(r->limits.cpu_time_ms, 2000);
}

Test(options, lowering_names_the_option_with_its_dashes)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    cr_assert_eq(request_set_lowering(r, "pids", "x", &err), -EINVAL);
    cr_assert(strncmp(err.message, "--pids: ", 8) == 0, "%s", err.message);
    cr_assert_eq(request_set_lowering(r, "policy", "python", &err), 0);
    cr_assert_str_eq(r->policy, "python");
    cr_assert_eq(request_set_lowering(r, "env", "A=1", &err), -EINVAL);
}
