/* files.c - files, devices, what /proc tells, and what is open. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

static int read_(const char *arg)
{
    char byte;
    int fd = open(arg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, &byte, 1);
    return got < 0 ? errno : got == 0 ? ENODATA : 0;
}
/* Opened only: what would be written is nobody's harm. */
static int write_(const char *arg)
{
    return RESULT(open(arg, O_WRONLY | O_CLOEXEC));
}
/* Writes nothing, but through the file's own write. */
static int write_value(const char *arg)
{
    char path[PATH_MAX];
    const char *value = strchr(arg, '=');
    snprintf(path, sizeof path, "%.*s", (int)(value ? value - arg : 0), arg);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? errno : RESULT(write(fd, value + 1, strlen(value + 1)));
}
static int create(const char *arg)
{
    int result = RESULT(open(arg, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (result == 0)
        unlink(arg);
    return result;
}
static int mkdir_(const char *arg)
{
    int result = RESULT(mkdir(arg, 0700));
    if (result == 0)
        rmdir(arg);
    return result;
}
static int chmod_(const char *arg)
{
    return RESULT(chmod(arg, 04755));
}
static int list(const char *arg)
{
    DIR *dir = opendir(arg);
    return dir ? 0 : errno;
}
static int exists(const char *arg)
{
    struct stat info;
    return RESULT(lstat(arg, &info));
}
static int link_(const char *arg)
{
    int result = RESULT(link(arg, "/tmp/probe-link"));
    if (result == 0)
        unlink("/tmp/probe-link");
    return result;
}
static int exec_(const char *arg)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl(arg, arg, (char *)NULL);
        _exit(errno);
    }
    return pid < 0 || waitpid(pid, &status, 0) < 0 ? errno
           : WIFEXITED(status)                     ? WEXITSTATUS(status)
                                                   : EINTR;
}

static int node(const char *arg, mode_t mode, dev_t device)
{
    int result = RESULT(mknod(arg, mode | 0600, device));
    if (result == 0)
        unlink(arg);
    return result;
}
static int mknod_char(const char *arg)
{
    return node(arg, S_IFCHR, makedev(1, 3));
}
static int mknod_block(const char *arg)
{
    return node(arg, S_IFBLK, makedev(8, 0));
}
static int mknod_fifo(const char *arg)
{
    return node(arg, S_IFIFO, 0);
}
static int setxattr_(const char *arg)
{
    int result = RESULT(setxattr(arg, "user.probe", "x", 1, 0));
    if (result == 0)
        removexattr(arg, "user.probe");
    return result;
}

/* Every open fd, on a line of its own. */
static int fds(const char *arg)
{
    (void)arg;
    for (int fd = 0; fd < 4096; fd++) {
        char link[64], target[256] = "";
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof target - 1) < 0)
            target[0] = 0;
        printf("fd %d %s\n", fd, target);
    }
    return 0;
}

static int file_holds(const char *path, const char *text)
{
    static char data[1 << 20];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, data, sizeof data);
    close(fd);
    return len > 0 && memmem(data, (size_t)len, text, strlen(text)) != NULL;
}

/* Whether anything that /proc tells of the box's processes has that text in it. The probe's own
 * command line doesn't count: the text was handed to it there. */
static int proc_holds(const char *arg)
{
    static const char *const NAMES[] = {"environ", "cmdline", "mountinfo", "maps",
                                        "cgroup",  "status",  "comm",      "stat"};
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int found = 0;
    while (proc && (entry = readdir(proc))) {
        long pid = strtol(entry->d_name, NULL, 10);
        for (size_t i = 0; pid > 0 && i < sizeof NAMES / sizeof NAMES[0]; i++) {
            char path[PATH_MAX];
            if (strcmp(NAMES[i], "cmdline") == 0 && pid != 1)
                continue;
            snprintf(path, sizeof path, "/proc/%ld/%s", pid, NAMES[i]);
            if (file_holds(path, arg)) {
                printf("found in %s\n", path);
                found = 1;
            }
        }
    }
    return found ? 0 : ENODATA;
}

/* Up and out of the working directory. */
static int climb(const char *arg)
{
    char cwd[PATH_MAX];
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            return errno;
    if (!getcwd(cwd, sizeof cwd) || strcmp(cwd, "/") != 0)
        return ENOTDIR;
    return exists(arg);
}

const struct attempt FILES[] = {
    {"read", read_},
    {"write", write_},
    {"write_value", write_value},
    {"create", create},
    {"mkdir", mkdir_},
    {"chmod", chmod_},
    {"list", list},
    {"exists", exists},
    {"link", link_},
    {"exec", exec_},
    {"mknod_char", mknod_char},
    {"mknod_block", mknod_block},
    {"mknod_fifo", mknod_fifo},
    {"setxattr", setxattr_},
    {"fds", fds},
    {"proc_holds", proc_holds},
    {"climb", climb},
    {NULL, NULL},
};
