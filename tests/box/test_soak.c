/* test_soak.c - a thousand runs of every outcome in one host: nothing is left of any of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <hutch.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(soak, .timeout = 600);

struct outcome {
    const char *name, *language, *code;
    const char *options[6];
    const char *reason;
};

static const struct outcome OUTCOMES[] = {
    {"ok", "bash", "echo fine >out; echo fine", {NULL}, "exit"},
    {"python", "python", "print(sum(range(100)))", {NULL}, "exit"},
    {"exception", "python", "raise ValueError('x')", {NULL}, "exit"},
    {"timeout", "bash", "sleep 600", {"timeout", "0.05"}, "timeout"},
    {"memory", "python", "x = [b'x' * 1000000 for _ in range(1000)]", {"memory", "32M"}, "memory"},
    {"flood", "bash", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2", {NULL}, "exit"},
    {"orphans", "bash", "for i in 1 2 3; do (setsid sleep 600 &) ; done", {NULL}, "exit"},
    {"sleeper", "bash", "setsid sleep 600 &", {NULL}, "exit"},
    {"signal", "bash", "kill -9 $$", {NULL}, "signal"},
    {"links", "bash", "ln -s / l; mkfifo f; mkdir -p a/b; chmod 0 a", {NULL}, "exit"},
    {"setup", "bash", "true", {"workdir", "/nowhere"}, NULL},
};
#define OUTCOMES_LEN (sizeof OUTCOMES / sizeof OUTCOMES[0])

static void run_one(const struct outcome *outcome)
{
    struct hutch_request *request = NULL;
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    cr_assert_eq(hutch_request_new(HUTCH_VERB_RUN, &request, &err), 0, "%s", err.message);
    cr_assert_eq(hutch_request_set_code(request, outcome->language, outcome->code,
                                        strlen(outcome->code), &err),
                 0, "%s", err.message);
    for (size_t i = 0; outcome->options[i]; i += 2)
        cr_assert_eq(hutch_request_set(request, outcome->options[i], outcome->options[i + 1], &err),
                     0, "%s", err.message);
    cr_assert_eq(hutch_run(request, &result, &err), 0, "%s: %s", outcome->name, err.message);
    if (outcome->reason)
        cr_assert_str_eq(hutch_result_reason(result), outcome->reason, "%s: %s", outcome->name,
                         hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_request_free(request);
}

static void exec_one(void)
{
    struct hutch_request *request = NULL;
    struct hutch_result *result = NULL;
    struct hutch_error err = {0};
    static const char REQUEST[] = "{\"code\":\"return args['x']\",\"args\":{\"x\":[1,2]}}";
    cr_assert_eq(hutch_request_from_json(HUTCH_VERB_EXEC, REQUEST, strlen(REQUEST), &request, &err),
                 0, "%s", err.message);
    cr_assert_eq(hutch_exec(request, &result, &err), 0, "%s", err.message);
    cr_assert_str_eq(hutch_result_reason(result), "exit", "%s", hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_request_free(request);
}

static void all_once(void)
{
    for (size_t i = 0; i < OUTCOMES_LEN; i++)
        run_one(&OUTCOMES[i]);
    exec_one();
}

/* Root can have a /tmp that nobody else writes to; a plain user's is told by the owner. */
static void own_tmp(void)
{
    if (!is_root())
        return;
    cr_assert_eq(unshare(CLONE_NEWNS), 0, "%s", strerror(errno));
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0, "%s", strerror(errno));
    cr_assert_eq(mount("none", "/tmp", "tmpfs", 0, NULL), 0, "%s", strerror(errno));
    cr_assert_eq(setenv("TMPDIR", "/tmp", 1), 0);
}

static const char *tmp_names(void)
{
    const char *mine = "";
    char *names = strdup(names_now("/tmp")), *save;
    for (char *name = strtok_r(names, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
        struct stat info;
        if (lstat(path_in("/tmp", name), &info) == 0 && info.st_uid == geteuid() &&
            strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0)
            mine = text_format("%s%s\n", mine, name);
    }
    return mine;
}

/* A box's cgroup that still holds processes, or that is still there at all below ours; the parent
 * that all boxes share may stay. */
static void expect_no_busy_cgroup(void)
{
    _cleanup_output_ struct output o = spawn_run(
        &(struct spawn){.argv = LIST("find", "/sys/fs/cgroup", "-name", "*hutch*", "-type", "d")});
    char *save;
    for (char *dir = strtok_r(o.out, "\n", &save); dir; dir = strtok_r(NULL, "\n", &save)) {
        const char *processes = file_text(path_in(dir, "cgroup.procs"));
        cr_expect(!processes || !*processes, "%s still holds %s", dir, processes);
    }
}

static size_t resident_kib(void)
{
    const char *at = strstr(file_text("/proc/self/status"), "VmRSS:");
    return at ? strtoul(at + 6, NULL, 10) : 0;
}

Test(soak, a_thousand_runs_leave_nothing)
{
    /* Of 12 runs each; env HUTCH_TEST_SOAK says how many where a thousand runs take too long. */
    const char *asked = getenv("HUTCH_TEST_SOAK");
    long rounds = asked ? strtol(asked, NULL, 10) : slow() > 2 ? 10 : 84;
    cr_assert_gt(rounds, 0);
    processes_watch();
    own_tmp();
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    cr_assert_eq(chdir(dir.path), 0);
    all_once(); /* what is kept on purpose (a loaded library, say) is kept from here on */
    const char *fds = fds_now(), *mounts = mounts_now(), *tmp = tmp_names();
    size_t before = resident_kib();
    for (long i = 0; i < rounds; i++)
        all_once();
    expect_nothing_left();
    expect_no_busy_cgroup();
    cr_assert_str_eq(fds_now(), fds);
    cr_assert_str_eq(lines_new(mounts, mounts_now()), "");
    cr_assert_str_eq(tmp_names(), tmp);
    cr_assert_str_eq(names_now("."), "");
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed for a while, and looks for leaks itself */
    cr_assert_lt(resident_kib(), before + 16384, "the host has grown from %zu KiB", before);
#else
    (void)before;
#endif
}
