/* test_tree.c - the file tree: nothing of the host, nothing written, nothing through /proc. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/host.h"
#include "support/probe.h"

TestSuite(tree, .timeout = 120);

/* Outside the attempt works; inside it must not. */
static void expect_not_ok(const char *const *attempts)
{
    struct attempts outside = probe_outside(attempts, false), box = probe_in_box(attempts, NULL);
    for (const char *const *a = attempts; *a; a++) {
        cr_assert_str_eq(attempt_result(&outside, *a), "OK", "%s outside", *a);
        cr_expect_str_neq(attempt_result(&box, *a), "OK", "%s inside", *a);
    }
}

Test(tree, files_of_the_host_are_not_there)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *file = file_new(dir.path, "secret", "canary", 0644);
    expect_not_ok(LIST(text_format("read:%s", file), text_format("climb:%s", file), "list:/home",
                       "list:/sys", "list:/var/lib"));
}

Test(tree, init_cannot_be_opened_read_or_rewritten)
{
    struct attempts box = probe_in_box(
        LIST("write:/proc/1/exe", "read:/proc/1/exe", "read:/proc/1/environ", "read:/proc/1/mem",
             "write:/proc/1/mem", "read:/proc/1/maps", "list:/proc/1/fd", "list:/proc/1/root",
             "list:/proc/1/cwd", "read:/proc/1/stack"),
        NULL);
    static const char *const attempts[] = {
        "write:/proc/1/exe", "read:/proc/1/exe",  "read:/proc/1/environ", "read:/proc/1/mem",
        "write:/proc/1/mem", "read:/proc/1/maps", "list:/proc/1/fd",      "list:/proc/1/root",
        "list:/proc/1/cwd",  "read:/proc/1/stack"};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        cr_expect_str_neq(attempt_result(&box, attempts[i]), "OK", "%s", attempts[i]);
    /* The same questions work about a process that isn't walled off. */
    struct attempts control = probe_outside(
        LIST("read:/proc/self/exe", "read:/proc/self/environ", "list:/proc/self/fd"), false);
    cr_assert_str_eq(attempt_result(&control, "read:/proc/self/environ"), "OK");
    cr_assert_str_eq(attempt_result(&control, "list:/proc/self/fd"), "OK");
}

Test(tree, programs_of_the_system_cannot_be_opened_for_writing)
{
    _cleanup_answer_ struct answer a =
        run_py("import os, glob\n"
               "for f in ['/usr/bin/env', '/bin/sh', '/proc/self/exe', '/etc/passwd'] + "
               "glob.glob('/run/hutch/**', recursive=True):\n"
               "    try: os.open(f, os.O_WRONLY); print('OPENED', f)\n"
               "    except OSError: pass\n"
               "for pid in glob.glob('/proc/[0-9]*/exe'):\n"
               "    try: os.open(pid, os.O_RDWR); print('OPENED', pid)\n"
               "    except OSError: pass\n"
               "print('done')\n",
               NULL);
    expect_stdout(&a, "done\n");
}

Test(tree, sysctls_are_read_only)
{
    struct attempts box = probe_in_box(
        LIST("write:/proc/sys/kernel/core_pattern", "write:/proc/sys/kernel/hostname",
             "write:/proc/sys/net/ipv4/ip_forward", "write:/proc/sys/user/max_user_namespaces",
             "write:/proc/sys/vm/overcommit_memory", "write:/proc/sysrq-trigger"),
        NULL);
    for (const char *const *a =
             LIST("write:/proc/sys/kernel/core_pattern", "write:/proc/sys/kernel/hostname",
                  "write:/proc/sys/net/ipv4/ip_forward", "write:/proc/sys/user/max_user_namespaces",
                  "write:/proc/sys/vm/overcommit_memory", "write:/proc/sysrq-trigger");
         *a; a++)
        cr_expect_str_neq(attempt_result(&box, *a), "OK", "%s", *a);
    /* In namespaces of its own anybody may write the network's. */
    struct attempts control = probe_outside(LIST("write:/proc/sys/net/ipv4/ip_forward"), true);
    cr_assert_str_eq(attempt_result(&control, "write:/proc/sys/net/ipv4/ip_forward"), "OK");
}

Test(tree, user_namespaces_are_off_by_sysctl_too)
{
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("cat", "/proc/sys/user/max_user_namespaces"));
    expect_stdout(&a, "0\n");
}

Test(tree, sensitive_files_of_proc_are_masked)
{
    static const char *const masked[] = {"read:/proc/kcore",
                                         "read:/proc/keys",
                                         "read:/proc/kallsyms",
                                         "read:/proc/timer_list",
                                         "read:/proc/sched_debug",
                                         "read:/proc/kmsg",
                                         NULL};
    struct attempts box = probe_in_box(masked, NULL);
    for (size_t i = 0; masked[i]; i++)
        cr_expect_str_neq(attempt_result(&box, masked[i]), "OK", "%s", masked[i]);
    /* Outside, root reads at least these two. */
    struct attempts outside = probe_outside(LIST("read:/proc/keys", "read:/proc/kallsyms"), false);
    cr_expect_str_eq(attempt_result(&outside, "read:/proc/kallsyms"), "OK");
}

Test(tree, devices_cannot_be_made_and_only_harmless_ones_are_there)
{
    struct attempts control = probe_outside(LIST("mknod_char:/tmp/hutch-test-node"), false);
    if (is_root())
        cr_assert_str_eq(attempt_result(&control, "mknod_char:/tmp/hutch-test-node"), "OK");
    struct attempts box =
        probe_in_box(LIST("mknod_char:/work/n", "mknod_block:/work/n", "read:/dev/mem",
                          "read:/dev/kmsg", "read:/dev/vda", "read:/dev/sda", "write:/dev/null",
                          "read:/dev/urandom", "read:/dev/zero"),
                     NULL);
    cr_expect_str_neq(attempt_result(&box, "mknod_char:/work/n"), "OK");
    cr_expect_str_neq(attempt_result(&box, "mknod_block:/work/n"), "OK");
    cr_expect_str_eq(attempt_result(&box, "read:/dev/mem"), "ENOENT");
    cr_expect_str_eq(attempt_result(&box, "read:/dev/kmsg"), "ENOENT");
    cr_expect_str_eq(attempt_result(&box, "read:/dev/vda"), "ENOENT");
    cr_expect_str_eq(attempt_result(&box, "write:/dev/null"), "OK");
    cr_expect_str_eq(attempt_result(&box, "read:/dev/urandom"), "OK");
    cr_expect_str_eq(attempt_result(&box, "read:/dev/zero"), "OK");
    _cleanup_answer_ struct answer a =
        run_sh("for f in $(find /dev ! -type l ! -path '/dev/pts*'); do test -c $f && echo $f; "
               "test -b $f && echo BLOCK $f; done | sort | tr '\\n' ' '",
               NULL);
    expect_stdout(&a, "/dev/full /dev/null /dev/random /dev/urandom /dev/zero ");
}

Test(tree, every_mount_is_nosuid_and_the_right_ones_are_read_only)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("cat", "/proc/self/mountinfo"));
    expect_clean(&a);
    char *save, *text = strdup(answer_text(&a, "stdout"));
    int mounts = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char at[256] = "", flags[256] = "";
        cr_assert_eq(sscanf(line, "%*s %*s %*s %*s %255s %255s", at, flags), 2);
        mounts++;
        cr_expect(strstr(flags, "nosuid"), "%s", line);
        bool device = strncmp(at, "/dev/", 5) == 0;
        cr_expect(device || strstr(flags, "nodev"), "%s", line);
        bool writable = strcmp(at, "/work") == 0 || strcmp(at, "/tmp") == 0 ||
                        strcmp(at, "/dev/shm") == 0 || device || strcmp(at, "/proc") == 0;
        cr_expect(writable || strncmp(flags, "ro", 2) == 0, "%s", line);
        if (strcmp(at, "/tmp") == 0 || strcmp(at, "/dev/shm") == 0)
            cr_expect(strstr(flags, "noexec"), "%s", line);
    }
    cr_assert_gt(mounts, 5);
}

Test(tree, tmp_and_shm_run_no_programs_but_work_does)
{
    _cleanup_answer_ struct answer a =
        run_sh("for d in /work /tmp /dev/shm; do cp /bin/true $d/t; $d/t 2>/dev/null && echo $d; "
               "rm $d/t; done; true",
               NULL);
    expect_stdout(&a, "/work\n");
}

static void keep_open(void *arg)
{
    int fd = open(arg, O_RDONLY);
    if (fd < 0 || dup2(fd, 3) < 0 || dup2(fd, 1000) < 0)
        _exit(124);
}

Test(tree, open_files_of_the_host_are_not_handed_in)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    char path[300];
    cr_assert_gt(snprintf(path, sizeof path, "%s", file_new(dir.path, "secret", "canary", 0600)),
                 0);
    struct spawn outside = {
        .argv = LIST(probe_path(), "-d", "fds"), .child = keep_open, .arg = path, .keep_fds = true};
    _cleanup_output_ struct output control = spawn_run(&outside);
    cr_assert(strstr(control.out, "fd 3 /") && strstr(control.out, "secret"), "%s", control.out);
    struct spawn base = {.child = keep_open, .arg = path, .keep_fds = true};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--ro-bind", text_format("%s:" PROBE_IN_BOX, probe_path()),
                               "--", PROBE_IN_BOX, "-d", "fds"));
    expect(&a, a.o.exit_code == 0);
    expect(&a, !strstr(a.o.out, "secret"));
    size_t lines = 0;
    for (const char *at = a.o.out; *at; at++)
        lines += *at == '\n';
    expect(&a, lines == 4); /* 0, 1, 2 and the probe's own verdict */
}

Test(tree, exec_has_its_result_pipe_and_nothing_more)
{
    _cleanup_answer_ struct answer a =
        exec_body("import os\nreturn sorted(int(f) for f in os.listdir('/proc/self/fd'))",
                  "\"check\":\"none\"");
    expect_clean(&a);
    size_t len = answer_len(&a, "output");
    expect(&a, len <= 5); /* 0 to 3 and the listing itself */
    for (size_t i = 0; i < len; i++)
        expect(&a, answer_int(&a, text_format("output.%zu", i)) <= 4);
}

Test(tree, secrets_of_the_host_are_nowhere_in_proc)
{
    static const char CANARY[] = "canary-7f3a9c";
    const char *attempt = text_format("proc_holds:%s", CANARY);
    struct spawn base = {.env = LIST("PATH=/usr/bin:/bin", text_format("SECRET=%s", CANARY))};
    struct spawn outside = base;
    outside.argv = LIST(probe_path(), attempt);
    _cleanup_output_ struct output control = spawn_run(&outside);
    cr_assert(strstr(control.out, "found in /proc/"), "%s", control.out);
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--ro-bind", text_format("%s:" PROBE_IN_BOX, probe_path()),
                               "--", PROBE_IN_BOX, attempt));
    expect(&a, a.o.exit_code == 0 && !strstr(a.o.out, "found in"));
    expect(&a, strstr(a.o.out, "ENODATA"));
}

Test(tree, host_paths_are_not_told_by_mountinfo)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("cat", "/proc/self/mountinfo", "/proc/1/mountinfo"));
    expect(&a, answer_is(&a, "reason", "exit"));
    char cwd[4096];
    cr_assert_not_null(getcwd(cwd, sizeof cwd));
    expect(&a,
           strcmp(cwd, "/") == 0 || !strstr(answer_text(&a, "stdout"), text_format(" %s ", cwd)));
}

Test(tree, host_name_clock_and_machine_are_the_boxs_own)
{
    char name[256] = "";
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("uname", "-n"));
    expect_clean(&a);
    cr_assert_eq(gethostname(name, sizeof name), 0);
    expect(&a, strcmp(answer_text(&a, "stdout"), text_format("%s\n", name)) != 0);
}

Test(tree, only_the_boxs_processes_are_listed)
{
    _cleanup_answer_ struct answer a =
        run_sh("ls /proc | grep -c '^[0-9]'; cat /proc/[0-9]*/comm", NULL);
    expect_reason(&a, "exit");
    expect(&a, strtol(answer_text(&a, "stdout"), NULL, 10) <= 5);
}
