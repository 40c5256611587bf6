/*
 * limits.c - set-id files in a directory (the argument), memory that nobody counts, and the
 * scheduling of another process of the same user.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define SET_ID 06755
#define FCHMODAT2 452

/* ---- set-id files: what is left there tells the same as the answer ---- */

static const char *name_in(const char *dir, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A plain file, whatever was there; its fd. */
static int plain(const char *path)
{
    unlink(path);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
}

#define ON_PLAIN(function, name, call)                                                             \
    static int function(const char *arg)                                                           \
    {                                                                                              \
        const char *path = name_in(arg, name);                                                     \
        int fd = plain(path);                                                                      \
        return fd < 0 ? errno : RESULT(call);                                                      \
    }
#define ON_NEW(function, name, call)                                                               \
    static int function(const char *arg)                                                           \
    {                                                                                              \
        const char *path = name_in(arg, name);                                                     \
        umask(0);                                                                                  \
        unlink(path);                                                                              \
        return RESULT(call);                                                                       \
    }

ON_PLAIN(setid_chmod, "chmod", syscall(SYS_chmod, path, SET_ID))
ON_PLAIN(setid_chmod_high, "chmod-high", syscall(SYS_chmod, path, SET_ID | HIGH))
ON_PLAIN(setid_fchmod, "fchmod", syscall(SYS_fchmod, fd, SET_ID))
ON_PLAIN(setid_fchmodat, "fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, SET_ID))
ON_PLAIN(setid_fchmodat2, "fchmodat2", syscall(FCHMODAT2, AT_FDCWD, path, SET_ID, 0))
ON_PLAIN(setid_uid_only, "uid", syscall(SYS_chmod, path, 04755))
ON_PLAIN(setid_gid_only, "gid", syscall(SYS_chmod, path, 02755))
ON_NEW(setid_open, "open", syscall(SYS_open, path, O_WRONLY | O_CREAT, SET_ID))
ON_NEW(setid_openat, "openat", syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, SET_ID))
ON_NEW(setid_openat_high, "openat-high",
       syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | HIGH, SET_ID | HIGH))
ON_NEW(setid_openat2, "openat2",
       syscall(SYS_openat2, AT_FDCWD, path,
               &(struct open_how){.flags = O_WRONLY | O_CREAT, .mode = SET_ID},
               sizeof(struct open_how)))
ON_NEW(setid_creat, "creat", syscall(SYS_creat, path, SET_ID))
ON_NEW(setid_mknod, "mknod", syscall(SYS_mknod, path, S_IFREG | SET_ID, 0))
ON_NEW(setid_mknodat, "mknodat", syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | SET_ID, 0))

static int named_tmpfile(const char *dir, const char *name, mode_t mode)
{
    char link[64];
    umask(0);
    unlink(name_in(dir, name));
    int fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
    if (fd < 0)
        return errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return RESULT(linkat(AT_FDCWD, link, AT_FDCWD, name_in(dir, name), AT_SYMLINK_FOLLOW));
}
static int setid_tmpfile(const char *arg)
{
    return named_tmpfile(arg, "tmpfile", SET_ID);
}
static int plain_tmpfile(const char *arg)
{
    return named_tmpfile(arg, "plain-tmpfile", 0755);
}
ON_PLAIN(plain_chmod, "plain-chmod", syscall(SYS_chmod, path, 01755))
ON_NEW(plain_creat, "plain-creat", syscall(SYS_creat, path, 0755))

/* ---- memory ---- */

#define PAGE 4096UL

static int map(int flags, int fd)
{
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED ? errno : 0;
}
static int map_shared(const char *arg)
{
    return (void)arg, map(MAP_SHARED | MAP_ANONYMOUS, -1);
}
static int map_shared_validate(const char *arg)
{
    return (void)arg, map(MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1);
}
static int map_private(const char *arg)
{
    return (void)arg, map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
static int map_shared_file(const char *arg)
{
    int fd = plain(name_in(arg, "map"));
    return fd < 0 || ftruncate(fd, PAGE) < 0 ? errno : map(MAP_SHARED, fd);
}
static int memfd(const char *arg)
{
    return (void)arg, RESULT(syscall(SYS_memfd_create, "plain", 0));
}
static int shmget_plain(const char *arg)
{
    return (void)arg, RESULT(shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600));
}
static int map_zero(const char *arg)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    return (void)arg, fd < 0 ? errno : map(MAP_SHARED, fd);
}
static int map_huge(const char *arg)
{
    return (void)arg, map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}
static int memfd_huge(const char *arg)
{
    return (void)arg, RESULT(syscall(SYS_memfd_create, "huge", MFD_HUGETLB));
}
static int shmget_huge(const char *arg)
{
    return (void)arg, RESULT(shmget(IPC_PRIVATE, PAGE, IPC_CREAT | SHM_HUGETLB | 0600));
}

static int buffer(unsigned long level, unsigned long option)
{
    int size = 1 << 16;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? errno : RESULT(syscall(SYS_setsockopt, fd, level, option, &size, sizeof size));
}
static int sndbuf(const char *arg)
{
    return (void)arg, buffer(SOL_SOCKET, SO_SNDBUF);
}
static int rcvbuf(const char *arg)
{
    return (void)arg, buffer(SOL_SOCKET, SO_RCVBUF);
}
static int sndbuf_high(const char *arg)
{
    return (void)arg, buffer(SOL_SOCKET | HIGH, SO_SNDBUF | HIGH);
}

/* ---- another process of the same user, as a box's init is to its program ---- */

static pid_t other(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static int done(pid_t pid, int result)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return result;
}

#define ON_OTHER(function, call)                                                                   \
    static int function(const char *arg)                                                           \
    {                                                                                              \
        (void)arg;                                                                                 \
        pid_t pid = other();                                                                       \
        return done(pid, RESULT(call));                                                            \
    }

static const struct rlimit FILES_64 = {64, 64};
static const struct sched_param PLAIN;
static const unsigned long ALL_CPUS[16] = {~0UL};

ON_OTHER(other_prlimit, syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &FILES_64, NULL))
ON_OTHER(other_affinity, syscall(SYS_sched_setaffinity, pid, sizeof ALL_CPUS, ALL_CPUS))
ON_OTHER(other_priority, syscall(SYS_setpriority, PRIO_PROCESS, pid, 1))
ON_OTHER(other_group_priority, (setpgid(pid, pid), syscall(SYS_setpriority, PRIO_PGRP, pid, 1)))
ON_OTHER(other_scheduler, syscall(SYS_sched_setscheduler, pid, SCHED_BATCH, &PLAIN))
ON_OTHER(other_param, syscall(SYS_sched_setparam, pid, &PLAIN))
/* IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE */
ON_OTHER(other_ioprio, syscall(SYS_ioprio_set, 1, pid, 3 << 13))

static int own_affinity(const char *arg)
{
    return (void)arg, RESULT(syscall(SYS_sched_setaffinity, 0, sizeof ALL_CPUS, ALL_CPUS));
}
static int own_priority(const char *arg)
{
    return (void)arg, RESULT(setpriority(PRIO_PROCESS, 0, 19));
}
static int own_prlimit(const char *arg)
{
    return (void)arg, RESULT(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &FILES_64, NULL));
}

const struct attempt LIMITS[] = {
    {"setid_chmod", setid_chmod},
    {"setid_chmod_high", setid_chmod_high},
    {"setid_fchmod", setid_fchmod},
    {"setid_fchmodat", setid_fchmodat},
    {"setid_fchmodat2", setid_fchmodat2},
    {"setid_uid_only", setid_uid_only},
    {"setid_gid_only", setid_gid_only},
    {"setid_open", setid_open},
    {"setid_openat", setid_openat},
    {"setid_openat_high", setid_openat_high},
    {"setid_openat2", setid_openat2},
    {"setid_creat", setid_creat},
    {"setid_mknod", setid_mknod},
    {"setid_mknodat", setid_mknodat},
    {"setid_tmpfile", setid_tmpfile},
    {"plain_tmpfile", plain_tmpfile},
    {"plain_chmod", plain_chmod},
    {"plain_creat", plain_creat},
    {"map_shared", map_shared},
    {"map_shared_validate", map_shared_validate},
    {"map_private", map_private},
    {"map_shared_file", map_shared_file},
    {"memfd", memfd},
    {"shmget", shmget_plain},
    {"map_zero", map_zero},
    {"map_huge", map_huge},
    {"memfd_huge", memfd_huge},
    {"shmget_huge", shmget_huge},
    {"sndbuf", sndbuf},
    {"rcvbuf", rcvbuf},
    {"sndbuf_high", sndbuf_high},
    {"other_prlimit", other_prlimit},
    {"other_affinity", other_affinity},
    {"other_priority", other_priority},
    {"other_group_priority", other_group_priority},
    {"other_scheduler", other_scheduler},
    {"other_param", other_param},
    {"other_ioprio", other_ioprio},
    {"own_affinity", own_affinity},
    {"own_priority", own_priority},
    {"own_prlimit", own_prlimit},
    {NULL, NULL},
};
