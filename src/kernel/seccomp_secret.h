/*
 * seccomp_secret.h - how the first exec passes a filter that allows no other.
 *
 * A profile that starts its program by fd (tool) allows execveat(PLAN_EXEC_FD, "", ..,
 * AT_EMPTY_PATH) alone. That is not enough: with an absolute path the kernel ignores the fd, and
 * a filter can't see the path, so execveat(1023, "/bin/sh", ..) would pass for ever. Therefore
 * the rule also compares the call's sixth argument, which execveat doesn't have and the kernel
 * doesn't read, with a secret of this box. Whoever installs the filter draws 64 random bits,
 * writes them into its copy of the filter and passes them as the sixth argument; the exec then
 * replaces the memory and clears the registers that held them. Nothing in the box can read a
 * filter back, so the rule has been used up.
 *
 * Only <linux/filter.h> and <stdint.h>: compiled into the freestanding init too.
 */
#ifndef HUTCH_KERNEL_SECCOMP_SECRET_H
#define HUTCH_KERNEL_SECCOMP_SECRET_H

#include <linux/filter.h>
#include <stdint.h>

/* What policy/tool.json has in the secret's place (as one number: 7526492938761759847). The
 * halves occur nowhere else. */
#define POLICY_SECRET_HIGH 0x68737973U
#define POLICY_SECRET_LOW 0x63616c67U

/* Puts the secret into a filter. 0, or -1 unless the place of either half was found exactly
 * once; then the filter must not be used. */
static inline int policy_secret_put(struct sock_filter *insns, unsigned len, uint64_t secret)
{
    unsigned high = 0, low = 0;
    for (unsigned i = 0; i < len; i++) {
        if (insns[i].code != (BPF_JMP | BPF_JEQ | BPF_K))
            continue;
        if (insns[i].k == POLICY_SECRET_HIGH) {
            insns[i].k = (uint32_t)(secret >> 32);
            high++;
        } else if (insns[i].k == POLICY_SECRET_LOW) {
            insns[i].k = (uint32_t)secret;
            low++;
        }
    }
    return high == 1 && low == 1 ? 0 : -1;
}

#endif
