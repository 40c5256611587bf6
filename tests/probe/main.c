/* main.c - see probe.h: the command line, the children, the answers. */
#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct attempt *const TABLES[] = {PRIVILEGED, NAMESPACES, SOCKETS, FILES,
                                               ABI,        IDS,        LIMITS};

static const struct attempt *find(const char *token, size_t len)
{
    for (size_t t = 0; t < sizeof TABLES / sizeof TABLES[0]; t++)
        for (const struct attempt *a = TABLES[t]; a->name; a++)
            if (strlen(a->name) == len && memcmp(a->name, token, len) == 0)
                return a;
    return NULL;
}

static void print_result(const char *token, int result)
{
    const char *name = strerrorname_np(result);
    if (result == 0)
        printf("%s OK\n", token);
    else if (name)
        printf("%s %s\n", token, name);
    else
        printf("%s errno=%d\n", token, result);
    fflush(stdout);
}

static void attempt(const char *token, int direct)
{
    size_t len = strcspn(token, ":");
    const struct attempt *a = find(token, len);
    const char *arg = token[len] ? token + len + 1 : NULL;
    int status;

    if (!a) {
        fprintf(stderr, "probe: no attempt is called %s\n", token);
        exit(2);
    }
    fflush(stdout);
    pid_t pid = direct ? -1 : fork();
    if (direct) {
        print_result(token, a->run(arg));
        return;
    }
    if (pid < 0) {
        fprintf(stderr, "probe: fork: %s\n", strerror(errno));
        exit(2);
    }
    if (pid == 0) {
        int result = a->run(arg);
        fflush(stdout);
        _exit(result);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("%s SIG%d\n", token, WTERMSIG(status));
    else
        print_result(token, WEXITSTATUS(status));
}

static void write_map(const char *path, const char *format, unsigned id)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || dprintf(fd, format, id) < 0) {
        fprintf(stderr, "probe: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    close(fd);
}

static void enter_namespaces(void)
{
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0) {
        fprintf(stderr, "probe: unshare: %s\n", strerror(errno));
        exit(2);
    }
    write_map("/proc/self/setgroups", "deny", 0);
    write_map("/proc/self/uid_map", "0 %u 1", uid);
    write_map("/proc/self/gid_map", "0 %u 1", gid);
    (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

int main(int argc, char **argv)
{
    int at = 1, direct = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-u") == 0)
            enter_namespaces();
        else if (strcmp(argv[at], "-d") == 0)
            direct = 1;
    }
    for (; at < argc; at++)
        attempt(argv[at], direct);
    return 0;
}
