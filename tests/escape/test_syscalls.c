/* test_syscalls.c - system calls: what no honest program needs gets through outside, not inside. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/host.h"
#include "support/probe.h"

TestSuite(syscalls, .timeout = 120);

#define DEFAULT NULL

Test(syscalls, mount_family)
{
    static const char *const attempts[] = {
        "mount_tmpfs", "#mount_proc",   "mount_bind",  "#mount_remount", "umount",   "pivot_root",
        "chroot",      "open_tree",     "move_mount",  "fsopen",         "fsconfig", "fsmount",
        "fspick",      "mount_setattr", "sethostname", "setdomainname",  NULL};
    expect_denied(attempts, DEFAULT);
}

Test(syscalls, namespaces)
{
    static const char *const attempts[] = {"unshare_user",   "unshare_mount", "unshare_net",
                                           "unshare_pid",    "unshare_ipc",   "unshare_uts",
                                           "unshare_cgroup", "unshare_time",  "setns",
                                           "clone_user",     "clone_mount",   "clone_net",
                                           "clone_pid",      "clone_ipc",     "clone_uts",
                                           "clone_cgroup",   "clone3_user",   NULL};
    expect_denied(attempts, DEFAULT);
}

Test(syscalls, clone3_is_enosys_and_clone_with_namespaces_is_eperm)
{
    struct attempts box = probe_in_box(
        LIST("clone3_plain", "clone3_user", "clone_user", "unshare_user", "setns", "clone_plain"),
        DEFAULT);
    cr_expect_str_eq(attempt_result(&box, "clone3_plain"), "ENOSYS");
    cr_expect_str_eq(attempt_result(&box, "clone3_user"), "ENOSYS");
    cr_expect_str_eq(attempt_result(&box, "clone_user"), "EPERM");
    cr_expect_str_eq(attempt_result(&box, "unshare_user"), "EPERM");
    cr_expect_str_eq(attempt_result(&box, "setns"), "EPERM");
    cr_expect_str_eq(attempt_result(&box, "clone_plain"), "OK");
}

Test(syscalls, memory_and_fds_of_other_processes)
{
    expect_denied(LIST("ptrace_traceme", "ptrace_seize", "process_vm_readv", "process_vm_writev",
                       "process_madvise", "kcmp", "pidfd_getfd"),
                  DEFAULT);
}

Test(syscalls, machinery_of_the_kernel)
{
    expect_denied(LIST("#bpf", "io_uring_setup", "io_uring_enter", "io_uring_register",
                       "#userfaultfd", "#perf_event_open", "keyctl", "add_key", "request_key",
                       "#open_by_handle_at", "quotactl", "#fanotify_init", "modify_ldt", "seccomp"),
                  DEFAULT);
}

Test(syscalls, io_uring_is_enosys)
{
    struct attempts box = probe_in_box(LIST("io_uring_setup"), DEFAULT);
    cr_assert_str_eq(attempt_result(&box, "io_uring_setup"), "ENOSYS");
}

Test(syscalls, the_machine_itself)
{
    expect_denied(LIST("#swapon", "#swapoff", "#reboot", "#acct", "#kexec_load", "#kexec_file_load",
                       "#init_module", "#finit_module", "#delete_module", "settimeofday",
                       "clock_settime", "clock_adjtime", "#ioperm", "#iopl", "#syslog", "#vhangup",
                       "migrate_pages"),
                  DEFAULT);
}

Test(syscalls, shared_things_between_boxes)
{
    struct attempts a = probe_in_box(LIST("keyctl", "add_key"), DEFAULT);
    cr_expect_not(got_through(attempt_result(&a, "keyctl")));
    cr_expect_not(got_through(attempt_result(&a, "add_key")));
    /* System V queues are refused or private to the box's own ipc namespace: what one box makes
     * under a fixed key, the next doesn't see. */
    static const char MAKE[] = "import ctypes, errno\n"
                               "c = ctypes.CDLL(None, use_errno=True)\n"
                               "r = c.msgget(0x68757463, 0o1666)\n"
                               "print('made' if r >= 0 else errno.errorcode[ctypes.get_errno()])\n";
    static const char LOOK[] = "import ctypes, errno\n"
                               "c = ctypes.CDLL(None, use_errno=True)\n"
                               "r = c.msgget(0x68757463, 0)\n"
                               "print('SEEN' if r >= 0 else 'not seen')\n";
    _cleanup_answer_ struct answer make = run_py(MAKE, LIST("--policy", "default"));
    expect_clean(&make);
    _cleanup_answer_ struct answer look = run_py(LOOK, LIST("--policy", "default"));
    expect_stdout(&look, "not seen\n");
}

Test(syscalls, hidden_memory_is_refused_where_a_watchdog_counts)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    expect_clean(&a);
    struct attempts box = probe_in_box(LIST("memfd_create", "shmget", "memfd_secret"), DEFAULT);
    cr_expect_not(got_through(attempt_result(&box, "memfd_secret")));
    if (answer_is(&a, "receipt.layers.memory", "watchdog")) {
        cr_expect_not(got_through(attempt_result(&box, "memfd_create")));
        cr_expect_not(got_through(attempt_result(&box, "shmget")));
    } else {
        cr_expect_str_eq(attempt_result(&box, "memfd_create"), "OK");
    }
}

Test(syscalls, unknown_numbers_are_enosys_and_nothing_kills)
{
    _cleanup_answer_ struct answer a = run_py(
        "import ctypes, errno\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "for n in [337, 400, 480, 500, 600, 1000, 1023, 100000, 0x7fffffff]:\n"
        "    ctypes.set_errno(0)\n"
        "    r = c.syscall(ctypes.c_long(n), 0, 0, 0, 0, 0, 0)\n"
        "    if (r, ctypes.get_errno()) != (-1, errno.ENOSYS): print(n, r, ctypes.get_errno())\n"
        "print('done')\n",
        NULL);
    expect_stdout(&a, "done\n");
}

Test(syscalls, refused_arguments)
{
    expect_denied(LIST("personality_no_random", "prctl_ambient", "#prctl_securebits",
                       "setrlimit_core", "prlimit_core"),
                  DEFAULT);
    struct attempts box = probe_in_box(LIST("prctl_set_mm", "prctl_ptracer"), DEFAULT);
    cr_expect_not(got_through(attempt_result(&box, "prctl_set_mm")));
    cr_expect(!got_through(attempt_result(&box, "prctl_ptracer")) ||
              strcmp(attempt_result(&box, "prctl_ptracer"), "EINVAL") == 0);
}

Test(syscalls, refused_arguments_with_high_bits)
{
    expect_denied(LIST("clone_user_high", "personality_no_random_high", "prctl_ambient_high",
                       "setrlimit_core_high", "prlimit_core_high", "socket_netlink_high",
                       "#socket_raw_high", "socket_mptcp_high", "setsockopt_ulp_high",
                       "ioctl_tiocsti_high", "ioctl_tioclinux_high", "ioctl_ns_parent_high"),
                  DEFAULT);
}

Test(syscalls, honest_arguments_work)
{
    expect_allowed(LIST("clone_plain", "prctl_name", "getrlimit_core", "socket_unix", "socket_tcp",
                        "socket_udp", "mknod_fifo:/work/f"),
                   DEFAULT);
}

Test(syscalls, xattrs_are_eopnotsupp)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    struct attempts box = probe_in_box(LIST("setxattr:/work"), DEFAULT);
    cr_assert_str_eq(attempt_result(&box, "setxattr:/work"), "EOPNOTSUPP");
}

Test(syscalls, foreign_abis_are_refused)
{
    expect_denied(LIST("int80_getpid", "int80_unshare_user", "int80_mount", "int80_keyctl",
                       "#int80_bpf", "int80_socket_netlink", "int80_ptrace_traceme"),
                  DEFAULT);
    struct attempts box = probe_in_box(
        LIST("x32_getpid", "x32_unshare_user", "x32_mount", "x32_keyctl", "x32_ptrace"), DEFAULT);
    static const char *const x32[] = {"x32_getpid", "x32_unshare_user", "x32_mount", "x32_keyctl",
                                      "x32_ptrace"};
    for (size_t i = 0; i < 5; i++)
        cr_expect_str_eq(attempt_result(&box, x32[i]), "ENOSYS", "%s", x32[i]);
}

Test(syscalls, ioctls_that_inject_or_lead_to_namespaces)
{
    expect_denied(LIST("ioctl_tiocsti", "ioctl_tioclinux", "ioctl_tiocsetd", "ioctl_ns_userns",
                       "ioctl_ns_parent", "pty_tiocsti"),
                  DEFAULT);
    struct attempts box = probe_in_box(LIST("ioctl_tcgets"), DEFAULT);
    cr_expect_str_eq(attempt_result(&box, "ioctl_tcgets"), "ENOTTY");
}

/* The same walls stand in the other profiles. */
static void expect_profile_denies(const char *profile)
{
    static const char *const attempts[] = {"mount_tmpfs",
                                           "fsopen",
                                           "unshare_user",
                                           "clone_user",
                                           "clone_user_high",
                                           "clone3_user",
                                           "setns",
                                           "ptrace_seize",
                                           "process_vm_readv",
                                           "#bpf",
                                           "io_uring_setup",
                                           "#userfaultfd",
                                           "#perf_event_open",
                                           "keyctl",
                                           "#open_by_handle_at",
                                           "pidfd_getfd",
                                           "int80_getpid",
                                           "socket_netlink",
                                           "socket_vsock",
                                           "ioctl_tiocsti",
                                           "ioctl_tiocsti_high",
                                           "setrlimit_core",
                                           "prlimit_core",
                                           "personality_no_random",
                                           NULL};
    expect_denied(attempts, LIST("--policy", profile));
}

Test(syscalls, python_profile)
{
    expect_profile_denies("python");
}
Test(syscalls, node_profile)
{
    expect_profile_denies("node");
}
