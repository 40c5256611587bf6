/*
 * policy.c - hutch policy: the shipped profiles, how much they let through, and what a user's
 * file would do in a box.
 */
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_file.h"

enum status { STATUS_OK = 0, STATUS_FINDINGS = 1, STATUS_USAGE = 2, STATUS_FAILED = 125 };

static int usage(void)
{
    fputs("usage: hutch policy list [-a]\n"
          "       hutch policy show NAME\n"
          "       hutch policy count NAME|FILE\n"
          "       hutch policy check FILE\n",
          stderr);
    return STATUS_USAGE;
}

static int failed(const struct hutch_error *err)
{
    fprintf(stderr, "hutch: %s\n", err->message);
    return err->stage == HUTCH_STAGE_REQUEST ? STATUS_USAGE : STATUS_FAILED;
}

static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("hutch: standard output");
    return STATUS_FAILED;
}

/* ---- list, show, count ---- */

static int list(int argc, char **argv)
{
    bool all = argc == 1 && strcmp(argv[0], "-a") == 0;
    if (argc > (all ? 1 : 0))
        return usage();
    for (size_t i = 0; i < POLICY_SHIPPED_LEN; i++)
        if (all || !POLICY_SHIPPED[i].internal)
            printf("%-8s %s\n", POLICY_SHIPPED[i].name, POLICY_SHIPPED[i].comment);
    return finish(STATUS_OK);
}

static int show(int argc, char **argv)
{
    if (argc != 1)
        return usage();
    const struct policy_shipped *shipped = policy_shipped_find(argv[0]);
    if (!shipped) {
        fprintf(stderr, "hutch: there is no profile \"%s\"; hutch policy list names them\n",
                argv[0]);
        return STATUS_USAGE;
    }
    fwrite(shipped->json, 1, shipped->json_len, stdout);
    return finish(STATUS_OK);
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
    struct hutch_error err;
    unsigned by_abi[POLICY_ABIS];
    if (argc != 1)
        return usage();
    if (load(argv[0], &program, &err) < 0)
        return failed(&err);
    printf("%u\n", policy_count(&program, by_abi));
    for (enum policy_abi abi = 0; abi < POLICY_ABIS; abi++)
        printf("%-6s %u\n", policy_abi_name(abi), by_abi[abi]);
    return finish(STATUS_OK);
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

static unsigned print_risks(const struct policy_program *program)
{
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_LEN(RISKS); i++)
        if (call_reachable(program, RISKS[i].number)) {
            printf("allows %s: %s\n", RISKS[i].name, RISKS[i].why);
            found++;
        }
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++)
        if (socket_allowed(program, FAMILIES[i].family)) {
            printf("allows sockets of family %s: kernel code that a box has no use for\n",
                   FAMILIES[i].name);
            found++;
        }
    if (!call_reachable(program, SYS_execve)) {
        puts("doesn't allow execve: no program can start");
        found++;
    }
    return found;
}

static int check(int argc, char **argv)
{
    _cleanup_(policy_program_free) struct policy_program program = {0};
    _cleanup_buf_ struct buf json = BUF(POLICY_FILE_MAX_BYTES + 1);
    _cleanup_buf_ struct buf notes = BUF(POLICY_FILE_MAX_BYTES * 64);
    struct hutch_error err;
    if (argc != 1)
        return usage();
    if (policy_read_file(argv[0], &json, &err) < 0 ||
        policy_load_text(argv[0], json.data, json.len, POLICY_CGROUP, &program, &notes, &err) < 0)
        return failed(&err);
    if (notes.len > 0)
        fwrite(notes.data, 1, notes.len, stdout);
    unsigned found = print_risks(&program);
    return finish(found || notes.len ? STATUS_FINDINGS : STATUS_OK);
}

/* Declared in cli/cli.h. */
int cli_policy(int argc, char **argv);
int cli_policy(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } ACTIONS[] = {{"list", list}, {"show", show}, {"count", count}, {"check", check}};
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(ACTIONS); i++)
        if (strcmp(argv[1], ACTIONS[i].name) == 0)
            return ACTIONS[i].run(argc - 2, argv + 2);
    return usage();
}
