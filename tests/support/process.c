/* process.c - see host.h: what of our own descendants is alive. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/host.h"
#include "support/spawn.h"

struct process {
    pid_t pid, parent;
    char state;
    char name[64];
};

void processes_watch(void)
{
    cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

/* The name in stat may hold anything, so what follows it starts after the last ')'. */
static bool process_read(const char *pid, struct process *ret)
{
    char path[NAME_MAX + 16], line[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    char *open = got ? strchr(line, '(') : NULL, *close = got ? strrchr(line, ')') : NULL;
    if (!open || !close)
        return false;
    *ret = (struct process){.pid = (pid_t)strtol(pid, NULL, 10), .state = close[2]};
    ret->parent = (pid_t)strtol(close + 4, NULL, 10);
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static struct process *process_list(size_t *ret_len)
{
    struct process *list = NULL;
    size_t len = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    cr_assert_not_null(proc);
    while ((entry = readdir(proc))) {
        struct process one;
        if (!isdigit((unsigned char)entry->d_name[0]) || !process_read(entry->d_name, &one))
            continue;
        list = realloc(list, (len + 1) * sizeof *list);
        cr_assert_not_null(list);
        list[len++] = one;
    }
    closedir(proc);
    *ret_len = len;
    return list;
}

static bool descends(const struct process *list, size_t len, pid_t pid, pid_t from)
{
    for (unsigned depth = 0; depth < 1000 && pid > 1; depth++) {
        pid_t parent = 0;
        for (size_t i = 0; i < len; i++)
            if (list[i].pid == pid)
                parent = list[i].parent;
        if (parent == from)
            return true;
        pid = parent;
    }
    return false;
}

static const char *describe_below(pid_t from, size_t *ret_count)
{
    size_t len, count = 0;
    struct process *list = process_list(&len);
    const char *text = "";
    for (size_t i = 0; i < len; i++) {
        if (list[i].state == 'Z' || !descends(list, len, list[i].pid, from))
            continue;
        count++;
        if (count < 20)
            text = text_format("%s%d %s (%c); ", text, list[i].pid, list[i].name, list[i].state);
    }
    free(list);
    *ret_count = count;
    return text;
}

const char *processes_left(unsigned within_ms)
{
    double deadline = now_ms() + within_ms * slow();
    for (;;) {
        size_t count;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        const char *text = describe_below(getpid(), &count);
        if (count == 0)
            return NULL;
        if (now_ms() > deadline)
            return text;
        sleep_ms(20);
    }
}

size_t processes_below(pid_t pid)
{
    size_t count;
    (void)describe_below(pid, &count);
    return count;
}
