/* namespaces.c - the mount family, and ways into namespaces. */
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* sys/mount.h and linux/mount.h can't be had together. */
#define MNT_DETACH 2

/* Where it is allowed, what follows must change mounts and names of our own only, never the
 * machine's. Where it isn't, nothing that follows is allowed either. */
static void own_namespaces(void)
{
    if (syscall(SYS_unshare, CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
        syscall(SYS_mount, NULL, "/", NULL, (unsigned long)(MS_REC | MS_PRIVATE), NULL) < 0)
        _exit(ENOTRECOVERABLE);
}

#define ATTEMPT(name, call)                                                                        \
    static int name(const char *arg)                                                               \
    {                                                                                              \
        (void)arg;                                                                                 \
        return RESULT(call);                                                                       \
    }
#define OWN_ATTEMPT(name, call) ATTEMPT(name, (own_namespaces(), (call)))

OWN_ATTEMPT(mount_tmpfs, syscall(SYS_mount, "none", "/tmp", "tmpfs", 0UL, NULL))
OWN_ATTEMPT(mount_proc, syscall(SYS_mount, "proc", "/tmp", "proc", 0UL, NULL))
OWN_ATTEMPT(mount_bind, syscall(SYS_mount, "/tmp", "/tmp", NULL, (unsigned long)MS_BIND, NULL))
OWN_ATTEMPT(mount_remount,
            syscall(SYS_mount, NULL, "/proc", NULL, (unsigned long)(MS_REMOUNT | MS_BIND), NULL))
OWN_ATTEMPT(umount, syscall(SYS_umount2, "/proc", MNT_DETACH))
OWN_ATTEMPT(pivot_root, syscall(SYS_pivot_root, ".", "."))
OWN_ATTEMPT(chroot_, chroot("/tmp"))
OWN_ATTEMPT(open_tree_, syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE))
OWN_ATTEMPT(move_mount_, syscall(SYS_move_mount, -1, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH))
OWN_ATTEMPT(fsopen_, syscall(SYS_fsopen, "tmpfs", 0U))
OWN_ATTEMPT(fsconfig_, syscall(SYS_fsconfig, -1, 0U, NULL, NULL, 0))
OWN_ATTEMPT(fsmount_, syscall(SYS_fsmount, -1, 0U, 0U))
OWN_ATTEMPT(fspick_, syscall(SYS_fspick, AT_FDCWD, "/tmp", 0U))
OWN_ATTEMPT(mount_setattr_, syscall(SYS_mount_setattr, AT_FDCWD, "/", 0U, &(struct mount_attr){0},
                                    MOUNT_ATTR_SIZE_VER0))
OWN_ATTEMPT(sethostname_, syscall(SYS_sethostname, "probe", 5UL))
OWN_ATTEMPT(setdomainname_, syscall(SYS_setdomainname, "probe", 5UL))

ATTEMPT(unshare_user, syscall(SYS_unshare, CLONE_NEWUSER))
ATTEMPT(unshare_user_high, syscall(SYS_unshare, CLONE_NEWUSER | HIGH))
ATTEMPT(unshare_mount, syscall(SYS_unshare, CLONE_NEWNS))
ATTEMPT(unshare_net, syscall(SYS_unshare, CLONE_NEWNET))
ATTEMPT(unshare_pid, syscall(SYS_unshare, CLONE_NEWPID))
ATTEMPT(unshare_ipc, syscall(SYS_unshare, CLONE_NEWIPC))
ATTEMPT(unshare_uts, syscall(SYS_unshare, CLONE_NEWUTS))
ATTEMPT(unshare_cgroup, syscall(SYS_unshare, CLONE_NEWCGROUP))
ATTEMPT(unshare_time, syscall(SYS_unshare, CLONE_NEWTIME))
/* No fd at all: the kernel says EBADF. */
ATTEMPT(setns_, syscall(SYS_setns, -1, 0))

/* A child that ends at once; what counts is whether it was made. */
static int clone_with(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0UL, 0UL, 0UL, 0UL);
    if (pid == 0)
        _exit(0);
    int result = RESULT(pid);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return result;
}

static int clone3_with(unsigned long flags)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    int result = RESULT(pid);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return result;
}

static int clone_plain(const char *arg)
{
    return (void)arg, clone_with(0);
}
static int clone_user(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWUSER);
}
static int clone_mount(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWNS);
}
static int clone_net(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWNET);
}
static int clone_pid(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWPID);
}
static int clone_ipc(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWIPC);
}
static int clone_uts(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWUTS);
}
static int clone_cgroup(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWCGROUP);
}
/* clone's flags are its low 32 bits: with a bit above, the same child is made. */
static int clone_user_high(const char *arg)
{
    return (void)arg, clone_with(CLONE_NEWUSER | HIGH);
}
static int clone3_plain(const char *arg)
{
    return (void)arg, clone3_with(0);
}
static int clone3_user(const char *arg)
{
    return (void)arg, clone3_with(CLONE_NEWUSER);
}

const struct attempt NAMESPACES[] = {
    {"mount_tmpfs", mount_tmpfs},
    {"mount_proc", mount_proc},
    {"mount_bind", mount_bind},
    {"mount_remount", mount_remount},
    {"umount", umount},
    {"pivot_root", pivot_root},
    {"chroot", chroot_},
    {"open_tree", open_tree_},
    {"move_mount", move_mount_},
    {"fsopen", fsopen_},
    {"fsconfig", fsconfig_},
    {"fsmount", fsmount_},
    {"fspick", fspick_},
    {"mount_setattr", mount_setattr_},
    {"sethostname", sethostname_},
    {"setdomainname", setdomainname_},
    {"unshare_user", unshare_user},
    {"unshare_user_high", unshare_user_high},
    {"unshare_mount", unshare_mount},
    {"unshare_net", unshare_net},
    {"unshare_pid", unshare_pid},
    {"unshare_ipc", unshare_ipc},
    {"unshare_uts", unshare_uts},
    {"unshare_cgroup", unshare_cgroup},
    {"unshare_time", unshare_time},
    {"setns", setns_},
    {"clone_plain", clone_plain},
    {"clone_user", clone_user},
    {"clone_mount", clone_mount},
    {"clone_net", clone_net},
    {"clone_pid", clone_pid},
    {"clone_ipc", clone_ipc},
    {"clone_uts", clone_uts},
    {"clone_cgroup", clone_cgroup},
    {"clone_user_high", clone_user_high},
    {"clone3_plain", clone3_plain},
    {"clone3_user", clone3_user},
    {NULL, NULL},
};
