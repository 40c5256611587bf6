/* test_ids.c - who the program is: no capability, no way to one, nobody else's id. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/host.h"
#include "support/probe.h"

TestSuite(ids, .timeout = 120);

static void expect_line(const struct attempts *box, const char *line)
{
    cr_expect(strstr(box->text, line), "no '%s'\n%s", line, answer_show(&box->answer));
}

Test(ids, every_capability_set_is_empty_and_privileges_are_locked)
{
    struct attempts box = probe_in_box(LIST("status"), NULL);
    static const char *const lines[] = {"CapInh:\t0000000000000000",
                                        "CapPrm:\t0000000000000000",
                                        "CapEff:\t0000000000000000",
                                        "CapBnd:\t0000000000000000",
                                        "CapAmb:\t0000000000000000",
                                        "NoNewPrivs:\t1",
                                        "Seccomp:\t2",
                                        "Uid:\t1000\t1000\t1000\t1000",
                                        "Gid:\t1000\t1000\t1000\t1000"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        expect_line(&box, lines[i]);
    cr_expect_null(strstr(box.text, "Bounding:"), "%s", box.text);
    /* The filter refuses the question; without it: NOROOT, NO_SETUID_FIXUP and
     * NO_CAP_AMBIENT_RAISE set, all four of them locked. */
    struct attempts unfiltered = probe_without("seccomp", LIST("status"), NULL);
    expect_line(&unfiltered, "Seccomp:\t0");
    expect_line(&unfiltered, "Securebits: 0xef\n");
}

Test(ids, root_mode_leaves_no_supplementary_group)
{
    struct attempts box = probe_in_box(LIST("status"), NULL);
    if (is_root())
        cr_assert(strstr(box.text, "Groups:\t \n") || strstr(box.text, "Groups:\t\n"), "%s",
                  box.text);
    else
        cr_assert(strstr(box.text, "Groups:"), "%s", box.text);
}

Test(ids, no_id_but_its_own)
{
    expect_denied(LIST("#setgroups", "capset"), NULL);
    struct attempts outside = probe_outside(LIST("setuid:0", "setgid:0"), true);
    cr_assert_str_eq(attempt_result(&outside, "setuid:0"), "OK");
    struct attempts box =
        probe_in_box(LIST("setuid:0", "setgid:0", "setuid:1001", "setuid:1000"), NULL);
    cr_expect_str_neq(attempt_result(&box, "setuid:0"), "OK");
    cr_expect_str_neq(attempt_result(&box, "setgid:0"), "OK");
    cr_expect_str_neq(attempt_result(&box, "setuid:1001"), "OK");
}

Test(ids, a_setuid_copy_of_a_shell_changes_nothing)
{
    _cleanup_answer_ struct answer a = run_sh("cp /bin/sh s; chmod 6755 s; ./s -c 'id -u; grep -c "
                                              "CapEff:.0000000000000000 /proc/self/status'",
                                              NULL);
    expect_reason(&a, "exit");
    cr_assert_str_eq(answer_text(&a, "stdout"), "1000\n1\n");
}

/* The loader tells its auxiliary vector to nobody whose program changes the id. */
Test(ids, a_setuid_root_program_of_the_host_changes_nothing)
{
    static const char LOOK[] = "LD_SHOW_AUXV=1 /usr/bin/su --version";
    const char *const *drop =
        is_root() ? LIST("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups") : NULL;
    struct spawn spec = {.argv = join(drop, LIST("sh", "-c", LOOK))};
    _cleanup_output_ struct output control = spawn_run(&spec);
    cr_assert(control.exit_code == 0 && !strstr(control.out, "AT_SECURE"), "%s%s", control.out,
              control.err);
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("sh", "-c", LOOK));
    expect_clean(&a);
    expect(&a, strstr(answer_text(&a, "stdout"), "AT_SECURE:") != NULL);
}

Test(ids, a_setuid_program_brought_in_changes_nothing)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    _cleanup_output_ struct output o = spawn_run(&(struct spawn){
        .argv = LIST("sh", "-c", "cp $0 $1/p && chmod 4755 $1/p", probe_path(), dir.path)});
    cr_assert_eq(o.exit_code, 0);
    if (is_root()) { /* outside, somebody else becomes root by it */
        _cleanup_output_ struct output control = spawn_run(
            &(struct spawn){.argv = LIST("setpriv", "--reuid=54321", "--regid=54321",
                                         "--clear-groups", path_in(dir.path, "p"), "status")});
        cr_assert(strstr(control.out, "Uid:\t54321\t0\t0\t0"), "%s", control.out);
    }
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", text_format("%s:/in", dir.path)), LIST("/in/p", "status"));
    expect_clean(&a);
    expect(&a, strstr(answer_text(&a, "stdout"), "Uid:\t1000\t1000\t1000\t1000"));
    expect(&a, strstr(answer_text(&a, "stdout"), "CapEff:\t0000000000000000"));
}

Test(ids, processes_of_the_host_cannot_be_signalled)
{
    struct spawn bystander = {.argv = LIST("sleep", "100")};
    struct child child;
    struct output o;
    spawn_start(&bystander, &child);
    const char *attempt = text_format("kill:%d", child.pid);
    struct attempts outside = probe_outside(LIST(attempt), false);
    cr_assert_str_eq(attempt_result(&outside, attempt), "OK");
    struct attempts box = probe_in_box(LIST(attempt), NULL);
    cr_assert_str_eq(attempt_result(&box, attempt), "ESRCH");
    spawn_kill(&child, SIGKILL);
    spawn_finish(&child, &o);
}

/* The host's id of a running box's program, which sleeps a time of its own. It is looked for until
 * it is there: what the box says comes before its exec. */
static unsigned host_uid_of_a_box(void)
{
    static const char LOOK[] =
        "for i in $(seq 300); do ps -eo uid=,comm=,args= | "
        "awk '$2 == \"sleep\" && $4 == 47.11 {print $1; exit}' | grep . && exit; sleep 0.05; done";
    struct spawn spec = {.argv =
                             LIST(hutch_path(), "run", "--timeout", "60", "--", "sleep", "47.11")};
    struct child child;
    struct output o;
    spawn_start(&spec, &child);
    _cleanup_output_ struct output ps = spawn_run(&(struct spawn){.argv = LIST("sh", "-c", LOOK)});
    spawn_kill(&child, SIGKILL);
    spawn_finish(&child, &o);
    cr_assert(*ps.out, "the box's program never showed up: %s", o.err);
    return (unsigned)strtoul(ps.out, NULL, 10);
}

Test(ids, every_box_of_root_has_a_host_id_of_its_own_that_is_nobodys)
{
    unsigned first = host_uid_of_a_box(), second = host_uid_of_a_box();
    if (!is_root()) { /* a plain user has one id to give */
        cr_assert_eq(first, geteuid());
        return;
    }
    cr_assert_gt(first, 65535, "host id %u", first);
    cr_assert_gt(second, 65535, "host id %u", second);
    cr_assert_neq(first, second);
}

Test(ids, core_files_are_off_and_cannot_be_turned_on)
{
    struct attempts box = probe_in_box(LIST("limits", "prlimit_core", "setrlimit_core"), NULL);
    cr_assert(strstr(box.text, "core 1 1\n"), "%s", box.text);
    expect_denied(LIST("prlimit_core", "prlimit_core_high", "setrlimit_core"), NULL);
}
