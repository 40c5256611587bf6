/* deny.c - see deny.h. */
#include "support/deny.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned add(struct sock_filter *code, unsigned at, unsigned short op, unsigned k,
                    unsigned char yes, unsigned char no)
{
    code[at] = (struct sock_filter){op, yes, no, k};
    return at + 1;
}

void child_deny(void *arg)
{
    const struct deny *deny = arg;
    struct sock_filter code[2 * DENY_MAX + 16];
    unsigned at = 0, refuse = SECCOMP_RET_ERRNO | (unsigned)deny->error;

    at = add(code, at, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (unsigned i = 0; i < DENY_MAX && deny->numbers[i]; i++) {
        at = add(code, at, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)deny->numbers[i], 0, 1);
        at = add(code, at, BPF_RET | BPF_K, refuse, 0, 0);
    }
    if (deny->clone_flags) {
        at = add(code, at, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
        at = add(code, at, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
        at = add(code, at, BPF_JMP | BPF_JSET | BPF_K, deny->clone_flags, 0, 1);
        at = add(code, at, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)deny->clone_error, 0, 0);
    }
    at = add(code, at, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog program = {(unsigned short)at, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        _exit(124);
}
