/*
 * policy.c - hutch policy: the shipped profiles, how much they let through, and what a user's
 * file would do in a box.
 */
#include <linux/audit.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_file.h"

static const char USAGE[] = "usage: hutch policy list [-a]\n"
                            "       hutch policy show NAME\n"
                            "       hutch policy count NAME|FILE\n"
                            "       hutch policy check FILE\n";

static int usage(void)
{
    cli_message("policy wants one of: list [-a], show NAME, count NAME|FILE, check FILE");
    return CLI_USAGE;
}

static int print(const struct buf *out, int status)
{
    int printed = cli_print(out->failed ? NULL : out->data, out->len);
    return printed == CLI_OK ? status : printed;
}

/* ---- list, show, count ---- */

static int list(int argc, char **argv)
{
    bool all = argc == 1 && strcmp(argv[0], "-a") == 0;
    _cleanup_buf_ struct buf out = BUF(0);
    if (argc > (all ? 1 : 0))
        return usage();
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        if (all || !POLICY_SHIPPED[i].internal)
            buf_printf(&out, "%-8s %s\n", POLICY_SHIPPED[i].name, POLICY_SHIPPED[i].comment);
    return print(&out, CLI_OK);
}

static int show(int argc, char **argv)
{
    if (argc != 1)
        return usage();
    const struct policy_shipped *shipped = policy_shipped_find(argv[0]);
    if (!shipped) {
        cli_message("there is no profile \"%s\"; hutch policy list names them", argv[0]);
        return CLI_USAGE;
    }
    return cli_print(shipped->json, shipped->json_len);
}

/* Like policy_load(), but the internal profiles can be looked at too. */
static int load(const char *name, struct policy_program *ret, struct hutch_error *err)
{
    const struct policy_shipped *shipped = policy_shipped_find(name);
    if (!shipped)
        return policy_load(name, false, ret, err);
    *ret = (struct policy_program){.insns = shipped->code[POLICY_CGROUP].insns,
                                   .len = shipped->code[POLICY_CGROUP].len};
    return 0;
}

static int count(int argc, char **argv)
{
    _cleanup_(policy_program_free) struct policy_program program = {0};
    _cleanup_buf_ struct buf out = BUF(0);
    struct hutch_error err;
    unsigned by_abi[POLICY_ABIS];
    if (argc != 1)
        return usage();
    if (load(argv[0], &program, &err) < 0)
        return cli_failed(&err);
    buf_printf(&out, "%u\n", policy_count(&program, by_abi));
    for (enum policy_abi abi = 0; abi < POLICY_ABIS; abi++)
        buf_printf(&out, "%-6s %u\n", policy_abi_name(abi), by_abi[abi]);
    return print(&out, CLI_OK);
}

/* ---- check ---- */

/* Calls that a box can do without, and what they give to code that is in one. */
static const struct {
    unsigned number;
    const char *name, *why;
} RISKS[] = {
    {SYS_io_uring_setup, "io_uring_setup", "its operations pass no filter"},
    {SYS_bpf, "bpf", "loads programs into the kernel"},
    {SYS_userfaultfd, "userfaultfd", "stops the kernel in the middle of a copy"},
    {SYS_perf_event_open, "perf_event_open", "a large interface with a history of holes"},
    {SYS_ptrace, "ptrace", "changes what another process of the box does"},
    {SYS_process_vm_readv, "process_vm_readv", "reads another process's memory"},
    {SYS_process_vm_writev, "process_vm_writev", "writes another process's memory"},
    {SYS_pidfd_getfd, "pidfd_getfd", "takes another process's descriptors"},
    {SYS_keyctl, "keyctl", "keyrings aren't part of any namespace"},
    {SYS_add_key, "add_key", "keyrings aren't part of any namespace"},
    {SYS_request_key, "request_key", "starts a program on the host"},
    {SYS_open_by_handle_at, "open_by_handle_at", "opens files by number, past every mount"},
    {SYS_mount, "mount", "only a capability stands before it"},
    {SYS_move_mount, "move_mount", "only a capability stands before it"},
    {SYS_fsopen, "fsopen", "only a capability stands before it"},
    {SYS_pivot_root, "pivot_root", "only a capability stands before it"},
    {SYS_init_module, "init_module", "only a capability stands before it"},
    {SYS_finit_module, "finit_module", "only a capability stands before it"},
    {SYS_kexec_load, "kexec_load", "only a capability stands before it"},
    {SYS_splice, "splice", "moves page-cache pages, a living family of kernel bugs"},
    {SYS_vmsplice, "vmsplice", "moves page-cache pages, a living family of kernel bugs"},
    {SYS_tee, "tee", "moves page-cache pages, a living family of kernel bugs"},
    {SYS_inotify_init1, "inotify_init1", "tells when others use the files that all boxes read"},
    {SYS_fanotify_init, "fanotify_init", "tells when others use the files that all boxes read"},
    {SYS_msgget, "msgget", "System V message queues hold memory that no process has"},
};

static const struct {
    int family;
    const char *name;
} FAMILIES[] = {
    {AF_NETLINK, "NETLINK"}, {AF_PACKET, "PACKET"}, {AF_ALG, "ALG"},
    {AF_VSOCK, "VSOCK"},     {AF_KEY, "KEY"},       {AF_XDP, "XDP"},
};

static bool socket_allowed(const struct policy_program *program, int family)
{
    struct seccomp_data data = {.nr = SYS_socket, .arch = AUDIT_ARCH_X86_64};
    data.args[0] = (unsigned)family;
    data.args[1] = SOCK_RAW;
    return policy_eval(program->insns, program->len, &data) == SECCOMP_RET_ALLOW;
}

static bool call_reachable(const struct policy_program *program, unsigned number)
{
    return policy_reachable(program->insns, program->len, POLICY_ABI_X86_64, number);
}

static void put_risks(const struct policy_program *program, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(RISKS); i++)
        if (call_reachable(program, RISKS[i].number))
            buf_printf(out, "allows %s: %s\n", RISKS[i].name, RISKS[i].why);
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++)
        if (socket_allowed(program, FAMILIES[i].family))
            buf_printf(out, "allows sockets of family %s: kernel code that a box has no use for\n",
                       FAMILIES[i].name);
    if (!call_reachable(program, SYS_execve) && !call_reachable(program, SYS_execveat))
        buf_puts(out, "allows neither execve nor execveat: no program can start\n");
}

/* Silent when there is nothing to say; else a finding a line. */
static int check(int argc, char **argv)
{
    _cleanup_(policy_program_free) struct policy_program program = {0};
    _cleanup_buf_ struct buf json = BUF(POLICY_FILE_MAX_BYTES + 1);
    _cleanup_buf_ struct buf out = BUF(0);
    struct hutch_error err;
    if (argc != 1)
        return usage();
    if (policy_read_file(argv[0], &json, &err) < 0 ||
        policy_load_text(argv[0], json.data, json.len, POLICY_CGROUP, &program, &out, &err) < 0)
        return cli_failed(&err);
    put_risks(&program, &out);
    return out.len == 0 ? CLI_OK : print(&out, CLI_NEGATIVE);
}

int cli_policy(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } ACTIONS[] = {{"list", list}, {"show", show}, {"count", count}, {"check", check}};
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cli_print(USAGE, sizeof(USAGE) - 1);
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(ACTIONS); i++)
        if (strcmp(argv[1], ACTIONS[i].name) == 0)
            return ACTIONS[i].run(argc - 2, argv + 2);
    return usage();
}
