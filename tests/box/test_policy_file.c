/* test_policy_file.c - seccomp profiles that the user brings. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(policy_file, .timeout = 120);

#define ALLOW_ALL_BUT(names, action)                                                               \
    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[" names                       \
    "],\"action\":\"" action "\",\"errnoRet\":13}]}"

static struct answer run_with(const char *profile, const char *const *argv)
{
    struct tempdir dir = tempdir_new();
    const char *path = file_new(dir.path, "profile.json", profile, 0644);
    struct answer a = run_command(LIST("--policy", path), argv);
    tempdir_free(&dir);
    return a;
}

Test(policy_file, its_errno_reaches_the_program)
{
    _cleanup_answer_ struct answer a =
        run_with(ALLOW_ALL_BUT("\"mkdir\", \"mkdirat\"", "SCMP_ACT_ERRNO"), LIST("mkdir", "d"));
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 1);
    expect(&a, strstr(answer_text(&a, "stderr"), "Permission denied"));
}

Test(policy_file, a_kill_is_reason_syscall_and_status_159)
{
    static const char *const actions[] = {"SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL"};
    for (size_t i = 0; i < 2; i++) {
        const char *profile =
            text_format("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"mkdir\","
                        "\"mkdirat\"],\"action\":\"%s\"}]}",
                        actions[i]);
        _cleanup_answer_ struct answer a = run_with(profile, LIST("mkdir", "d"));
        expect_reason(&a, "syscall");
        expect(&a, a.o.exit_code == 159);
    }
}

Test(policy_file, shipped_profiles_are_taken_by_name)
{
    static const char *const names[] = {"default", "python", "node"};
    for (size_t i = 0; i < 3; i++) {
        _cleanup_answer_ struct answer a =
            run_command(LIST("--policy", names[i]), LIST("sh", "-c", "echo ok | cat"));
        expect_stdout(&a, "ok\n");
    }
}

Test(policy_file, a_shipped_profile_given_as_a_file_works_the_same)
{
    _cleanup_answer_ struct answer shown = hutch(LIST("policy", "show", "default"));
    expect(&shown, shown.json != NULL);
    _cleanup_answer_ struct answer a = run_with(shown.o.out, LIST("sh", "-c", "echo ok | cat"));
    expect_stdout(&a, "ok\n");
    expect(&a, answer_is(&a, "receipt.layers.seccomp", "on"));
}

Test(policy_file, names_that_this_kernel_or_libseccomp_lack_are_no_error)
{
    _cleanup_answer_ struct answer a =
        run_with("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":"
                 "[\"a_call_of_the_future\"],\"action\":\"SCMP_ACT_ERRNO\"}]}",
                 LIST("echo", "ok"));
    expect_stdout(&a, "ok\n");
}

Test(policy_file, dockers_own_form_is_taken)
{
    _cleanup_answer_ struct answer a = run_with(
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"defaultErrnoRet\":1,"
        "\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_"
        "X86\","
        "\"SCMP_ARCH_X32\"]}],\"syscalls\":[{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ERRNO\","
        "\"args\":[{\"index\":0,\"value\":2114060288,\"valueTwo\":2114060288,\"op\":"
        "\"SCMP_CMP_MASKED_EQ\"}],\"comment\":\"\",\"includes\":{},\"excludes\":{\"caps\":["
        "\"CAP_SYS_ADMIN\"],\"arches\":[\"s390\",\"s390x\"]}}]}",
        LIST("sh", "-c", "echo ok | cat"));
    expect_stdout(&a, "ok\n");
}

Test(policy_file, a_file_that_is_no_profile_is_refused_before_anything_runs)
{
    static const char *const texts[] = {
        "nonsense", "{}", "[]", "{\"defaultAction\":\"SCMP_ACT_TRACE\",\"syscalls\":[]}",
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"read\"],\"action\":"
        "\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":9,\"value\":0,\"op\":\"SCMP_CMP_EQ\"}]}]}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        _cleanup_answer_ struct answer a = run_with(texts[i], LIST("echo", "ran"));
        expect(&a, a.o.exit_code == 2 || a.o.exit_code == 125);
        expect(&a, !strstr(a.o.out, "ran\\n"));
    }
}
