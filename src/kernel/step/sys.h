/*
 * sys.h - raw system calls for the set-up steps: negative errno as the kernel gives it, no libc,
 * no errno variable. Used where libc must not be: in the freestanding init, between clone and
 * exec in a borrowed address space, and later inside an interpreter's process.
 *
 * step_call() is for calls that build the box; the test build can make the N-th of them fail.
 * sys_call() is for everything whose failure changes nothing.
 */
#ifndef HUTCH_KERNEL_STEP_SYS_H
#define HUTCH_KERNEL_STEP_SYS_H

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __x86_64__
#error "hutch's system call layer is written for x86-64"
#endif

static inline long sys_raw6(long nr, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

/* Pointers and integers alike go into registers. */
#define SYS_ARG(x) ((long)(x))
#define SYS_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define sys_call(...)                                                                              \
    SYS_PICK(__VA_ARGS__, sys_call6, sys_call5, sys_call4, sys_call3, sys_call2, sys_call1,        \
             sys_call0, 0)                                                                         \
    (__VA_ARGS__)
#define sys_call0(n) sys_raw6(n, 0, 0, 0, 0, 0, 0)
#define sys_call1(n, a) sys_raw6(n, SYS_ARG(a), 0, 0, 0, 0, 0)
#define sys_call2(n, a, b) sys_raw6(n, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define sys_call3(n, a, b, c) sys_raw6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define sys_call4(n, a, b, c, d) sys_raw6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define sys_call5(n, a, b, c, d, e)                                                                \
    sys_raw6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)
#define sys_call6(n, a, b, c, d, e, f)                                                             \
    sys_raw6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), SYS_ARG(f))

#ifdef HUTCH_TESTING
/* Counts set-up calls down; nonzero when this one is to fail. Defined in step/fault.c. */
int step_fault(void);
#define step_call(...) (step_fault() ? -1L : sys_call(__VA_ARGS__)) /* -EPERM */
#else
#define step_call(...) sys_call(__VA_ARGS__)
#endif

static inline void sys_close(int fd)
{
    if (fd >= 0)
        (void)sys_call(__NR_close, fd);
}

#endif
