/* abi.c - foreign call numbers, and ioctls. */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

#define X32 0x40000000L

#define ATTEMPT(name, call)                                                                        \
    static int name(const char *arg)                                                               \
    {                                                                                              \
        (void)arg;                                                                                 \
        return RESULT(call);                                                                       \
    }

/* A call by its i386 number. Pointers must lie below 4 GiB, so these take none. */
static long int80(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

ATTEMPT(int80_getpid, int80(20, 0, 0, 0))
ATTEMPT(int80_unshare_user, int80(310, CLONE_NEWUSER, 0, 0))
ATTEMPT(int80_mount, int80(21, 0, 0, 0))
ATTEMPT(int80_keyctl, int80(288, 0, -2, 1))
ATTEMPT(int80_bpf, int80(357, 0, 0, 8))
ATTEMPT(int80_socket_netlink, int80(359, 16, 3, 0))
ATTEMPT(int80_ptrace_traceme, int80(26, 0, 0, 0))

ATTEMPT(x32_getpid, syscall(X32 | SYS_getpid))
ATTEMPT(x32_unshare_user, syscall(X32 | SYS_unshare, CLONE_NEWUSER))
ATTEMPT(x32_mount, syscall(X32 | SYS_mount, NULL, NULL, NULL, 0UL, NULL))
ATTEMPT(x32_keyctl, syscall(X32 | SYS_keyctl, 0, -2, 1))
ATTEMPT(x32_ptrace, syscall(X32 | 521L, 0, 0, 0, 0))
ATTEMPT(number_unknown, syscall(1023))

/* Standard input is no terminal and no namespace here: the kernel says ENOTTY. */
ATTEMPT(ioctl_tiocsti, ioctl(0, TIOCSTI, "x"))
ATTEMPT(ioctl_tiocsti_high, syscall(SYS_ioctl, 0, TIOCSTI | HIGH, "x"))
ATTEMPT(ioctl_tioclinux, ioctl(0, TIOCLINUX, "\x03"))
ATTEMPT(ioctl_tioclinux_high, syscall(SYS_ioctl, 0, TIOCLINUX | HIGH, "\x03"))
ATTEMPT(ioctl_tiocsetd, ioctl(0, TIOCSETD, &(int){0}))
ATTEMPT(ioctl_ns_userns, ioctl(0, NS_GET_USERNS))
ATTEMPT(ioctl_ns_parent, ioctl(0, NS_GET_PARENT))
ATTEMPT(ioctl_ns_parent_high, syscall(SYS_ioctl, 0, NS_GET_PARENT | HIGH))
ATTEMPT(ioctl_tcgets, ioctl(0, TCGETS, &(struct termios){0}))

/* TIOCSTI where it would work: on a terminal of our own. */
static int pty_tiocsti(const char *arg)
{
    (void)arg;
    int main_side = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), zero = 0;
    if (main_side < 0 || ioctl(main_side, TIOCSPTLCK, &zero) < 0)
        return errno;
    setsid();
    int side = ioctl(main_side, TIOCGPTPEER, O_RDWR);
    if (side < 0 || ioctl(side, TIOCSCTTY, 0) < 0)
        return errno;
    return RESULT(ioctl(side, TIOCSTI, "x"));
}

const struct attempt ABI[] = {
    {"int80_getpid", int80_getpid},
    {"int80_unshare_user", int80_unshare_user},
    {"int80_mount", int80_mount},
    {"int80_keyctl", int80_keyctl},
    {"int80_bpf", int80_bpf},
    {"int80_socket_netlink", int80_socket_netlink},
    {"int80_ptrace_traceme", int80_ptrace_traceme},
    {"x32_getpid", x32_getpid},
    {"x32_unshare_user", x32_unshare_user},
    {"x32_mount", x32_mount},
    {"x32_keyctl", x32_keyctl},
    {"x32_ptrace", x32_ptrace},
    {"number_unknown", number_unknown},
    {"ioctl_tiocsti", ioctl_tiocsti},
    {"ioctl_tiocsti_high", ioctl_tiocsti_high},
    {"ioctl_tioclinux", ioctl_tioclinux},
    {"ioctl_tioclinux_high", ioctl_tioclinux_high},
    {"ioctl_tiocsetd", ioctl_tiocsetd},
    {"ioctl_ns_userns", ioctl_ns_userns},
    {"ioctl_ns_parent", ioctl_ns_parent},
    {"ioctl_ns_parent_high", ioctl_ns_parent_high},
    {"ioctl_tcgets", ioctl_tcgets},
    {"pty_tiocsti", pty_tiocsti},
    {NULL, NULL},
};
