/*
 * test_hosts.c - hosts that lack something: odd callers, older kernels, containers. hutch works
 * there or names what is missing; it never runs weaker without saying so.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/command.h"
#include "support/deny.h"
#include "support/host.h"

TestSuite(hosts, .timeout = 200);

/* ---- callers ---- */

static void umask_all(void *arg)
{
    (void)arg;
    umask(0777);
}

Test(hosts, umask_of_0777)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *data = file_new(dir.path, "data", "abc", 0644), *out = path_in(dir.path, "out");
    struct spawn base = {.child = umask_all};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--file", data, "--file",
                               text_format("%s:d/e", data), "--", "sh", "-c", "cat data d/e"));
    expect_stdout(&a, "abcabc");
    _cleanup_answer_ struct answer b =
        hutch_with(&base, LIST("run", "--out", out, "--", "sh", "-c", "umask 0; echo x >y"));
    expect(&b, b.o.exit_code == 0 || b.o.exit_code == 125);
    _cleanup_answer_ struct answer c = exec_request("{\"code\":\"return 1\"}", NULL);
    expect_clean(&c);
    (void)chmod(out, 0755);
}

static void delete_cwd(void *arg)
{
    if (chdir(arg) < 0 || rmdir(arg) < 0)
        _exit(124);
}

Test(hosts, deleted_current_directory)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    char gone[300];
    cr_assert_lt(snprintf(gone, sizeof gone, "%s/gone", dir.path), (int)sizeof gone);
    cr_assert_eq(mkdir(gone, 0755), 0);
    struct spawn base = {.child = delete_cwd, .arg = gone};
    _cleanup_answer_ struct answer a = hutch_with(&base, LIST("run", "--json", "--", "pwd"));
    expect_stdout(&a, "/work\n");
}

Test(hosts, empty_environment)
{
    struct spawn base = {.env = (const char *const[]){NULL}};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--", "sh", "-c", "echo $HOME"));
    expect_stdout(&a, "/tmp\n");
}

static void close_one(void *arg)
{
    close(*(int *)arg);
}

Test(hosts, closed_standard_streams)
{
    for (int fd = 0; fd < 3; fd++) {
        struct spawn base = {.child = close_one, .arg = &fd};
        _cleanup_answer_ struct answer a =
            hutch_with(&base, LIST("run", "--json", "--", "sh", "-c", "echo ok; echo err >&2"));
        if (fd == 1) {
            expect(&a, a.o.signal == 0 && a.o.exit_code >= 0);
            continue;
        }
        expect(&a, a.o.exit_code == 0);
        expect(&a, answer_is(&a, "stdout", "ok\n") && answer_is(&a, "stderr", "err\n"));
        _cleanup_answer_ struct answer b =
            hutch_with(&base, LIST("run", "--", "sh", "-c", "echo ok; cat"));
        expect(&b, b.o.exit_code == 0 && strcmp(b.o.out, "ok\n") == 0);
    }
}

static void all_closed(void *arg)
{
    (void)arg;
    close(0);
    close(1);
    close(2);
}

Test(hosts, all_standard_streams_closed)
{
    struct spawn base = {.child = all_closed};
    processes_watch();
    _cleanup_answer_ struct answer a = hutch_with(&base, LIST("run", "--", "sh", "-c", "exit 9"));
    expect(&a, a.o.exit_code == 9 || a.o.exit_code == 125);
    expect_nothing_left();
}

static void few_files(void *arg)
{
    rlim_t most = *(rlim_t *)arg;
    struct rlimit limit = {most, most};
    setrlimit(RLIMIT_NOFILE, &limit);
}

Test(hosts, few_file_descriptors_work_or_are_a_named_error)
{
    for (rlim_t most = 64; most >= 4; most = most > 32 ? most - 16 : most - 3) {
        struct spawn base = {.child = few_files, .arg = &most};
        _cleanup_answer_ struct answer a =
            hutch_with(&base, LIST("run", "--json", "--", "echo", "ok"));
        if (a.json && answer_is(&a, "reason", "exit")) {
            expect_stdout(&a, "ok\n");
            continue;
        }
        expect(&a, most < 64 && a.o.signal == 0 && a.o.exit_code != 0);
    }
}

static void many_files(void *arg)
{
    (void)arg;
    int fd = open("/etc/hostname", O_RDONLY);
    for (int i = 0; i < 500; i++)
        if (dup(fd) < 0)
            break;
}

Test(hosts, open_files_of_the_caller_are_not_in_the_box)
{
    struct spawn base = {.child = many_files, .keep_fds = true};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--ro-bind", text_format("%s:/probe", probe_path()),
                               "--", "/probe", "fds"));
    expect_clean(&a);
    const char *out = answer_text(&a, "stdout");
    expect(&a, strstr(out, "fd 0 ") && strstr(out, "fd 1 ") && strstr(out, "fd 2 "));
    expect(&a, !strstr(out, "fd 3") && !strstr(out, "hostname"));
}

/* ---- kernels and containers ---- */

static struct answer run_denied(struct deny *deny, const char *const *options)
{
    struct spawn base = {.child = child_deny, .arg = deny};
    return hutch_with(&base, join(join(LIST("run", "--json"), options), LIST("--", "echo", "ok")));
}

Test(hosts, no_new_privs_on_the_caller)
{
    struct deny nothing = {.error = EPERM};
    _cleanup_answer_ struct answer a = run_denied(&nothing, NULL);
    expect_stdout(&a, "ok\n");
}

Test(hosts, clone3_that_is_enosys)
{
    struct deny deny = {.numbers = {SYS_clone3}, .error = ENOSYS};
    _cleanup_answer_ struct answer a = run_denied(&deny, NULL);
    expect_stdout(&a, "ok\n");
}

Test(hosts, landlock_that_is_enosys_is_in_the_receipt_or_refused)
{
    struct deny deny = {
        .numbers = {SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self},
        .error = ENOSYS};
    _cleanup_answer_ struct answer a = run_denied(&deny, NULL);
    expect_stdout(&a, "ok\n");
    expect(&a, !answer_is(&a, "receipt.layers.landlock", "on"));
    bool named = false;
    for (size_t i = 0; i < answer_len(&a, "receipt.missing"); i++)
        named |= answer_is(&a, text_format("receipt.missing.%zu.layer", i), "landlock");
    expect(&a, named);
    _cleanup_answer_ struct answer b = run_denied(&deny, LIST("--require", "landlock"));
    expect_reason(&b, "setup");
    expect(&b, strcasestr(answer_text(&b, "error"), "landlock"));
    _cleanup_answer_ struct answer c = run_denied(&deny, LIST("--require", "all"));
    expect_reason(&c, "setup");
}

Test(hosts, newer_calls_that_are_missing_never_make_a_weaker_box)
{
    static const long calls[] = {SYS_clone3,     SYS_close_range,   SYS_openat2,
                                 SYS_pidfd_open, SYS_memfd_create,  SYS_execveat,
                                 SYS_open_tree,  SYS_mount_setattr, SYS_fsopen,
                                 SYS_move_mount, SYS_faccessat2,    SYS_pidfd_send_signal};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        static const int errors[] = {ENOSYS, EPERM};
        for (int e = 0; e < 2; e++) {
            struct deny deny = {.numbers = {calls[i]}, .error = errors[e]};
            _cleanup_answer_ struct answer a = run_denied(&deny, NULL);
            cr_assert_not_null(a.json, "call %ld: %s", calls[i], answer_show(&a));
            if (answer_is(&a, "reason", "exit"))
                expect_stdout(&a, "ok\n");
            else
                expect_reason(&a, "setup");
        }
    }
}

static struct answer doctor_denied(struct deny *deny)
{
    struct spawn base = {.child = child_deny, .arg = deny};
    return hutch_with(&base, LIST("doctor", "--json"));
}

Test(hosts, user_namespaces_that_a_container_refuses_are_named)
{
    struct deny deny = {.numbers = {SYS_clone3},
                        .error = ENOSYS,
                        .clone_flags = CLONE_NEWUSER | CLONE_NEWNS,
                        .clone_error = EPERM};
    _cleanup_answer_ struct answer run = run_denied(&deny, NULL);
    expect_reason(&run, "setup");
    expect(&run, strcasestr(answer_text(&run, "error"), "namespace"));
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect(&a, a.json && a.o.exit_code != 0 && !answer_bool(&a, "can_run"));
    expect(&a, answer_len(&a, "blockers") > 0 && strcasestr(a.o.out, "seccomp"));
}

/* What follows needs a user namespace of somebody who isn't the machine's root (a self-map onto
 * root is refused, and that would be all that the doctor says). */
static const char *const *as_nobody(const char *script)
{
    const char *const *shell = LIST("unshare", "-Urm", "--propagation", "private", "sh", "-c",
                                    text_format("%s\nexec %s doctor --json", script, hutch_path()));
    return is_root()
               ? join(LIST("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"), shell)
               : join(shell, NULL);
}

static struct answer doctor_after(const char *script)
{
    struct spawn spec = {.argv = as_nobody(script)};
    struct answer a = {.o = spawn_run(&spec)};
    a.json = yajl_tree_parse(a.o.out, NULL, 0);
    cr_assert_not_null(a.json, "%s", answer_show(&a));
    return a;
}

Test(hosts, a_nested_user_namespace_is_good_enough)
{
    _cleanup_answer_ struct answer a = doctor_after("true");
    expect(&a, a.o.exit_code == 0 && answer_bool(&a, "can_run"));
}

Test(hosts, max_user_namespaces_of_0_is_named_with_its_remedy)
{
    _cleanup_answer_ struct answer a = doctor_after("echo 0 >/proc/sys/user/max_user_namespaces");
    expect(&a, a.o.exit_code != 0 && !answer_bool(&a, "can_run"));
    expect(&a, strstr(a.o.out, "user.max_user_namespaces"));
}

Test(hosts, a_masked_proc_is_named)
{
    _cleanup_answer_ struct answer a =
        doctor_after("mount --bind /dev/null /proc/keys; mount -t tmpfs none /proc/tty");
    expect(&a, a.o.exit_code != 0 && !answer_bool(&a, "can_run"));
    expect(&a, strstr(a.o.out, "/proc"));
}

Test(hosts, every_blocker_is_named_at_once)
{
    _cleanup_answer_ struct answer a =
        doctor_after("mount --bind /dev/null /proc/keys; mount -t tmpfs none /proc/tty;"
                     "echo 0 >/proc/sys/user/max_net_namespaces");
    expect(&a, a.o.exit_code != 0);
    expect(&a, strstr(a.o.out, "/proc") && strstr(a.o.out, "max_net_namespaces"));
}

Test(hosts, root_of_a_user_namespace_maps_itself_but_never_onto_the_machines_root)
{
    struct spawn spec = {.argv = LIST("unshare", "-Ur", hutch_path(), "run", "--", "id", "-u")};
    _cleanup_answer_ struct answer a = {.o = spawn_run(&spec)};
    if (is_root())
        expect(&a, a.o.exit_code == 125 && strstr(a.o.err, "root"));
    else
        expect(&a, a.o.exit_code == 0 && strcmp(a.o.out, "1000\n") == 0);
}

Test(hosts, two_instances_that_believe_to_be_pid_1_do_not_collide)
{
    struct spawn spec = {
        .argv = LIST("unshare", is_root() ? "-pf" : "-Urpf", "--mount-proc", "sh", "-c",
                     text_format("exec %s run -- sh -c 'sleep 0.3; echo ok'", hutch_path()))};
    struct child children[2];
    spawn_start(&spec, &children[0]);
    spawn_start(&spec, &children[1]);
    for (int i = 0; i < 2; i++) {
        _cleanup_output_ struct output o = {0};
        spawn_finish(&children[i], &o);
        cr_expect(o.exit_code == 0 && strcmp(o.out, "ok\n") == 0, "%d: %d %s%s", i, o.exit_code,
                  o.out, o.err);
    }
}

Test(hosts, a_namespace_that_is_refused_is_named_and_can_be_let_go)
{
    static const struct {
        unsigned flag;
        const char *layer;
    } cases[] = {{CLONE_NEWNET, "net_ns"}, {CLONE_NEWIPC, "ipc_ns"}, {CLONE_NEWUTS, "uts_ns"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct deny deny = {.numbers = {SYS_clone3},
                            .error = ENOSYS,
                            .clone_flags = cases[i].flag,
                            .clone_error = EPERM};
        _cleanup_answer_ struct answer a = run_denied(&deny, NULL);
        expect_reason(&a, "setup");
        expect(&a, strstr(answer_text(&a, "error"), "namespace"));
        _cleanup_answer_ struct answer b =
            run_denied(&deny, LIST("--allow-missing", cases[i].layer));
        expect_stdout(&b, "ok\n");
        expect(&b, !answer_is(&b, text_format("receipt.layers.%s", cases[i].layer), "on"));
        bool named = false;
        for (size_t k = 0; k < answer_len(&b, "receipt.missing"); k++)
            named |= answer_is(&b, text_format("receipt.missing.%zu.layer", k), cases[i].layer);
        expect(&b, named);
    }
}

Test(hosts, require_all_insists_on_what_the_receipt_says_is_missing)
{
    _cleanup_answer_ struct answer plain = run_command(NULL, LIST("true"));
    _cleanup_answer_ struct answer a = run_command(LIST("--require", "all"), LIST("true"));
    if (answer_len(&plain, "receipt.missing") == 0) {
        expect_clean(&a);
        return;
    }
    expect_reason(&a, "setup");
    expect(&a, strstr(answer_text(&a, "error"), answer_text(&plain, "receipt.missing.0.layer")));
}
