/*
 * test_steps.c - every set-up step matters: with it in place its wall stands, and with it left
 * out (the test build's HUTCH_TEST_SKIP) the same look at the box finds the wall open, or the box
 * is refused. A step without a row here makes the last test fail.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/steps.h"
#include "support/command.h"
#include "support/host.h"
#include "support/probe.h"

TestSuite(steps, .timeout = 200);

extern char **environ;

struct omission {
    const char *step;
    const char *also;   /* steps that are left out in both runs, because they are a second wall */
    const char *script; /* sh in the box: its exit status 0 says that the wall stands */
    enum {
        OPEN = 1,      /* left out, the script says that the wall is open */
        REFUSED = 125, /* left out, there is no box at all */
        ENDED = -1,    /* left out, it doesn't get as far as the script's end */
    } left_out;
};

/* Init guards itself beside the program's first instructions. */
#define AWAIT(check) "for i in 1 2 3 4 5 6 7 8 9; do " check " && exit; sleep 0.1; done; false"

static const struct omission OMISSIONS[] = {
    {"close_fds", "program_fds", "! /probe -d fds | grep -q hutch-test-", OPEN},
    {"self_map", NULL, "true", REFUSED},
    {"time_namespace", NULL, "test \"$(readlink /proc/self/ns/time)\" != \"$HOST_TIME\"", OPEN},
    {"cgroup_namespace", NULL, "test \"$(readlink /proc/self/ns/cgroup)\" != \"$HOST_CGROUP\"",
     OPEN},
    {"oom_score", NULL, "test $(cat /proc/self/oom_score_adj) = 1000", OPEN},
    {"private_mounts", NULL, "! grep -q ' master:' /proc/self/mountinfo", OPEN},
    {"open_sources", NULL, "true", REFUSED},
    {"become_user", NULL, "test $(id -u):$(id -g) = 1000:1000", REFUSED},
    {"non_dumpable", "landlock",
     "! /probe read:/proc/1/environ list:/proc/1/fd read:/proc/1/maps | grep -E ' (OK|ENODATA)'",
     OPEN},
    {"scratch", NULL, "true", REFUSED},
    {"make_tree", NULL, "true", REFUSED},
    {"mount_root", NULL, "true", REFUSED},
    {"fill_root", NULL, "true", REFUSED},
    {"no_user_namespaces", "seccomp", "/probe unshare_user | grep -qv OK", OPEN},
    {"socket_buffers", NULL,
     "test $(cut -f3 /proc/sys/net/ipv4/tcp_wmem) -le 131072 -a "
     "$(cut -f3 /proc/sys/net/ipv4/tcp_rmem) -le 131072",
     OPEN},
    {"mask", NULL, "! head -c 1 /proc/kallsyms | grep -q .", OPEN},
    {"pivot", NULL, "test ! -e \"$HOST_SECRET\"", ENDED},
    {"detach_old_root", NULL,
     "test $(grep -cE '^[^ ]+ [^ ]+ [^ ]+ [^ ]+ / ' /proc/self/mountinfo) = 1", OPEN},
    {"loopback", NULL, "/probe connect_tcp:1 | grep -q ECONNREFUSED", OPEN},
    {"host_name", NULL, "test \"$(uname -n)\" != \"$HOST_NAME\"", OPEN},
    {"rlimits", NULL, "/probe limits | grep -q '^core 1 1$'", OPEN},
    {"signals", NULL,
     "grep -q 'SigIgn:.*0000$' /proc/self/status && "
     "grep -q 'SigBlk:.*0000000000000000$' /proc/self/status",
     OPEN},
    {"session", NULL, "test $(cut -d' ' -f6 /proc/self/stat) != 0", OPEN},
    {"schedule", NULL, "grep -qE 'Cpus_allowed_list:.[0-9]+$' /proc/self/status", OPEN},
    {"workdir", NULL, "test \"$(pwd)\" = /work", OPEN},
    {"drop_bounding", NULL, "grep -q 'CapBnd:.0000000000000000' /proc/self/status", OPEN},
    {"lock_securebits", "seccomp", "/probe status | grep -q 'Securebits: 0xef'", OPEN},
    {"drop_capabilities", NULL, "grep -q 'CapEff:.0000000000000000' /proc/self/status", OPEN},
    {"no_new_privs", NULL, "grep -q 'NoNewPrivs:.1' /proc/self/status", REFUSED},
    /* A right of its first version: the ends of signals came with the sixth. */
    {"landlock", NULL, "! (echo x > /proc/self/comm) 2> /dev/null", OPEN},
    {"program_fds", NULL, "test $(/probe -d fds | grep -c '^fd ') = 3", OPEN},
    {"seccomp", NULL,
     "test \"$(/probe keyctl io_uring_setup ptrace_traceme | grep -cE 'EPERM|ENOSYS')\" = 3", OPEN},
    {"guard_capabilities", NULL, AWAIT("grep -q 'CapEff:.0000000000000000' /proc/1/status"), OPEN},
    {"guard_filter", NULL, AWAIT("grep -q 'Seccomp:.2' /proc/1/status"), OPEN},
};
#define OMISSIONS_LEN (sizeof OMISSIONS / sizeof OMISSIONS[0])

/* The caller's own peculiarities, which must not reach the box: an ignored signal, an open file. */
static void peculiar(void *arg)
{
    int fd = open(arg, O_RDONLY);
    signal(SIGUSR1, SIG_IGN);
    if (fd < 0 || dup2(fd, 300) < 0)
        _exit(124);
}

static const char *link_of(const char *path)
{
    char target[256] = "";
    cr_assert_gt(readlink(path, target, sizeof target - 1), 0, "%s", path);
    return text_format("%s", target);
}

static const char *const *box_arguments(const char *script, const char *secret)
{
    char name[256] = "";
    cr_assert_eq(gethostname(name, sizeof name), 0);
    return join(LIST("run", "--cpus", "1", "--ro-bind",
                     text_format("%s:" PROBE_IN_BOX, probe_path()), "--env",
                     text_format("HOST_TIME=%s", link_of("/proc/self/ns/time")), "--env",
                     text_format("HOST_CGROUP=%s", link_of("/proc/self/ns/cgroup")), "--env",
                     text_format("HOST_NAME=%s", name), "--env",
                     text_format("HOST_SECRET=%s", secret), "--", "sh", "-c", script),
                NULL);
}

/* Most steps can be looked at as whoever runs the tests. Mounts of the host that propagate need a
 * mount namespace made for it; a map of one's own id needs somebody who isn't root, and so does
 * init's dumpable flag, which the kernel itself takes away when root mode changes the id. */
static const char *const *prefix_for(const char *step)
{
    const char *const *nobody =
        is_root() ? LIST("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups") : NULL;
    if (strcmp(step, "self_map") == 0 || strcmp(step, "non_dumpable") == 0)
        return join(nobody, NULL);
    if (strcmp(step, "private_mounts") == 0)
        return join(nobody, LIST("unshare", "-Urm", "--propagation", "shared"));
    return NULL;
}

static struct answer look(const struct omission *o, const char *skip, const char *secret)
{
    char path[300];
    union {
        char *const *given;
        const char *const *wanted;
    } env = {.given = environ};
    cr_assert_lt(snprintf(path, sizeof path, "%s", secret), (int)sizeof path);
    struct spawn spec = {
        .argv = join(join(prefix_for(o->step), LIST(hutch_testing_path())),
                     box_arguments(o->script, secret)),
        .env = join(env.wanted, LIST(text_format("HUTCH_TEST_SKIP=%s", skip))),
        .child = peculiar,
        .arg = path,
        .keep_fds = true,
    };
    struct answer a = {.o = spawn_run(&spec)};
    cr_assert_not(a.o.late, "%s left out: hangs\n%s", skip, answer_show(&a));
    return a;
}

static void check_omission(const struct omission *o, const char *secret)
{
    const char *also = o->also ? o->also : "";
    _cleanup_answer_ struct answer in_place = look(o, also, secret);
    cr_assert_eq(in_place.o.exit_code, 0, "%s: with the step the wall must stand\n%s", o->step,
                 answer_show(&in_place));
    _cleanup_answer_ struct answer left_out =
        look(o, text_format("%s%s%s", o->step, o->also ? "," : "", also), secret);
    int status = left_out.o.exit_code;
    bool as_wanted = o->left_out == ENDED ? status != 0 : status == (int)o->left_out;
    cr_expect(as_wanted, "%s left out: %s was expected\n%s", o->step,
              o->left_out == OPEN ? "an open wall" : "a refusal", answer_show(&left_out));
}

/* Steps that have nothing to do for whoever runs the tests, or where a cgroup counts memory. */
static bool has_no_part_here(const char *step)
{
    if (strcmp(step, "oom_score") == 0)
        return is_root(); /* the host does it in root mode */
    if (strcmp(step, "become_user") == 0)
        return !is_root(); /* in self-map mode the map alone makes the id */
    if (strcmp(step, "socket_buffers") != 0)
        return false;
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    return answer_is(&a, "receipt.layers.memory", "cgroup");
}

static void check_range(size_t first, size_t end)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *secret = file_new(dir.path, "secret", "canary", 0644);
    for (size_t i = first; i < end; i++)
        if (!has_no_part_here(OMISSIONS[i].step))
            check_omission(&OMISSIONS[i], secret);
}

Test(steps, first_quarter_left_out_one_by_one)
{
    check_range(0, OMISSIONS_LEN / 4);
}
Test(steps, second_quarter_left_out_one_by_one)
{
    check_range(OMISSIONS_LEN / 4, OMISSIONS_LEN / 2);
}
Test(steps, third_quarter_left_out_one_by_one)
{
    check_range(OMISSIONS_LEN / 2, 3 * OMISSIONS_LEN / 4);
}
Test(steps, last_quarter_left_out_one_by_one)
{
    check_range(3 * OMISSIONS_LEN / 4, OMISSIONS_LEN);
}

/* The one step that only exec takes. */
Test(steps, exec_fd_left_out_is_refused)
{
    static const char REQUEST[] = "{\"code\":\"return 1\"}";
    union {
        char *const *given;
        const char *const *wanted;
    } env = {.given = environ};
    struct spawn spec = {.argv = LIST(hutch_testing_path()),
                         .env = join(env.wanted, LIST("HUTCH_TEST_SKIP=exec_fd")),
                         .input = REQUEST,
                         .input_len = sizeof REQUEST - 1};
    _cleanup_answer_ struct answer a = hutch_with(&spec, LIST("exec", "-"));
    expect_reason(&a, "setup");
    spec.env = NULL;
    _cleanup_answer_ struct answer b = hutch_with(&spec, LIST("exec", "-"));
    expect_clean(&b);
}

Test(steps, every_step_has_a_row)
{
    for (unsigned step = 0; step < PLAN_STEP_read_plan; step++) {
        bool found = strcmp(plan_step_name(step), "exec_fd") == 0;
        for (size_t i = 0; i < OMISSIONS_LEN; i++)
            found |= strcmp(OMISSIONS[i].step, plan_step_name(step)) == 0;
        cr_expect(found, "no test leaves out %s", plan_step_name(step));
    }
}

Test(steps, the_shipped_command_has_no_such_switch)
{
    union {
        char *const *given;
        const char *const *wanted;
    } env = {.given = environ};
    struct spawn spec = {
        .env = join(env.wanted, LIST("HUTCH_TEST_SKIP=seccomp", "HUTCH_TEST_FAULT=3"))};
    _cleanup_answer_ struct answer a =
        hutch_with(&spec, LIST("run", "--", "sh", "-c", "grep -q 'Seccomp:.2' /proc/self/status"));
    expect(&a, a.o.exit_code == 0);
}
