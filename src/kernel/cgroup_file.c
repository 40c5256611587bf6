/* cgroup_file.c - reading and writing the files of one cgroup directory. */
#include "kernel/cgroup_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOVE_ROUNDS = 64, PROCS_TEXT = 16 * 1024 };

static const struct {
    unsigned bit;
    const char *name;
} controller_names[] = {
    {CGROUP_MEMORY, "memory"},
    {CGROUP_PIDS, "pids"},
    {CGROUP_CPU, "cpu"},
};

void cause_set(struct cause cause, const char *format, ...)
{
    if (cause.len == 0 || cause.text[0])
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(cause.text, cause.len, format, args);
    va_end(args);
}

const char *controllers_text(unsigned controllers, char text[static 32])
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(controller_names); i++)
        if (controllers & controller_names[i].bit)
            len += (size_t)snprintf(text + len, 32 - len, "%s%s", len ? ", " : "",
                                    controller_names[i].name);
    return text;
}

int directory_open(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int file_read(int dir_fd, const char *name, char *text, size_t size)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, text, size - 1);
    if (len < 0)
        return -errno;
    if (len > 0 && text[len - 1] == '\n')
        len--;
    text[len] = '\0';
    return 0;
}

int file_write(int dir_fd, const char *name, const char *text)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t len = strlen(text);
    ssize_t written = write(fd, text, len);
    if (written < 0)
        return -errno;
    return (size_t)written == len ? 0 : -EIO;
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;
    if (*text < '0' || *text > '9')
        return CGROUP_UNKNOWN;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

uint64_t file_number(int dir_fd, const char *name)
{
    char text[32];
    return file_read(dir_fd, name, text, sizeof(text)) < 0 ? CGROUP_UNKNOWN : number(text);
}

uint64_t text_value(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return number(line + len + 1);
    }
    return CGROUP_UNKNOWN;
}

int file_controllers(int dir_fd, const char *name, unsigned *ret_controllers)
{
    char text[512];
    int r = file_read(dir_fd, name, text, sizeof(text));
    if (r < 0)
        return r;
    unsigned found = 0;
    char *rest = text;
    for (char *word; (word = strsep(&rest, " "));)
        for (size_t i = 0; i < ARRAY_LEN(controller_names); i++)
            if (strcmp(word, controller_names[i].name) == 0)
                found |= controller_names[i].bit;
    *ret_controllers = found;
    return 0;
}

/* One buffer's worth; the caller comes again until the directory is empty. A line that the
 * buffer's end cuts would be another process's number: only whole lines count. *ret_first is 0
 * if there is none. */
static int move_some(int from_fd, int to_procs_fd, uint64_t *ret_first)
{
    char text[PROCS_TEXT];
    _cleanup_close_ int fd = openat(from_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (len < 0)
        return -errno;
    *ret_first = 0;
    for (char *line = text, *end; (end = memchr(line, '\n', (size_t)(text + len - line)));
         line = end + 1) {
        *end = '\0';
        uint64_t pid = number(line);
        /* 0 is a process of a pid namespace that we don't see: writing it would move us. */
        if (pid == 0)
            return -EPERM;
        if (*ret_first == 0)
            *ret_first = pid;
        if (write(to_procs_fd, line, (size_t)(end - line)) < 0 && errno != ESRCH)
            return -errno;
    }
    return 0;
}

int processes_move(int from_fd, int to_fd)
{
    _cleanup_close_ int procs_fd = openat(to_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs_fd < 0)
        return -errno;
    /* A process that forks while we read leaves a child behind: again, until none is left. One
     * that exits stays listed, and isn't moved, though the write says it was. */
    uint64_t first = 0, before;
    for (int round = 0; round < MOVE_ROUNDS; round++) {
        before = first;
        int r = move_some(from_fd, procs_fd, &first);
        if (r < 0 || first == 0 || first == before)
            return r;
    }
    return 0;
}
