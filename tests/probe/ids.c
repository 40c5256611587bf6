/* ids.c - who we are, what we may do, and whom we may signal. */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define NUMBER(arg) ((unsigned)strtoul((arg), NULL, 10))

static int setuid_(const char *arg)
{
    return RESULT(setuid(NUMBER(arg)));
}
static int setgid_(const char *arg)
{
    return RESULT(setgid(NUMBER(arg)));
}
static int setgroups_(const char *arg)
{
    return (void)arg, RESULT(setgroups(0, NULL));
}

static int capset_(const char *arg)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    memset(data, 0xff, sizeof data);
    (void)arg;
    data[1].effective = data[1].permitted = 0x1ff;
    data[0].inheritable = data[1].inheritable = 0;
    return RESULT(syscall(SYS_capset, &header, data));
}

static int kill_(const char *arg)
{
    return RESULT(kill((pid_t)strtol(arg, NULL, 10), 0));
}

/* The interesting lines of our own status. */
static int status(const char *arg)
{
    static const char *const LINES[] = {
        "Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp:"};
    char line[512];
    FILE *file = fopen("/proc/self/status", "re");
    (void)arg;
    if (!file)
        return errno;
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++)
            if (strncmp(line, LINES[i], strlen(LINES[i])) == 0)
                fputs(line, stdout);
    int bits = prctl(PR_GET_SECUREBITS);
    if (bits >= 0) /* a box's filter may refuse the question */
        printf("Securebits: %#x\n", (unsigned)bits);
    printf("Dumpable: %d\n", prctl(PR_GET_DUMPABLE));
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_READ, cap) == 1)
            printf("Bounding: %d\n", cap);
    fclose(file);
    return 0;
}

static int limits(const char *arg)
{
    struct rlimit limit;
    (void)arg;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return errno;
    printf("core %lu %lu\n", limit.rlim_cur, limit.rlim_max);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return errno;
    printf("nofile %lu %lu\n", limit.rlim_cur, limit.rlim_max);
    return 0;
}

const struct attempt IDS[] = {
    {"setuid", setuid_}, {"setgid", setgid_}, {"setgroups", setgroups_}, {"capset", capset_},
    {"kill", kill_},     {"status", status},  {"limits", limits},        {NULL, NULL},
};
