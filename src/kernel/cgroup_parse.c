/*
 * cgroup_parse.c - where a process is in the cgroup tree, from /proc/PID/cgroup and
 * /proc/self/mountinfo. The parsers are pure; cgroup_locate() reads the files.
 */
#include "kernel/cgroup_internal.h"

#include "base/buf.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PROC_TEXT_MAX = 16 * 1024 * 1024 };

static unsigned controller_bit(const char *name, size_t len)
{
    if (len == 6 && memcmp(name, "memory", len) == 0)
        return CGROUP_MEMORY;
    if (len == 4 && memcmp(name, "pids", len) == 0)
        return CGROUP_PIDS;
    if (len == 3 && memcmp(name, "cpu", len) == 0)
        return CGROUP_CPU;
    return 0;
}

static unsigned controller_list(const char *list, size_t len)
{
    unsigned bits = 0;
    for (size_t start = 0, i = 0; i <= len; i++) {
        if (i < len && list[i] != ',')
            continue;
        bits |= controller_bit(list + start, i - start);
        start = i + 1;
    }
    return bits;
}

static int copy_text(char to[static CGROUP_PATH_TEXT], const char *text, size_t len)
{
    if (len >= CGROUP_PATH_TEXT)
        return -ENAMETOOLONG;
    memcpy(to, text, len);
    to[len] = '\0';
    return 0;
}

int cgroup_parse_self(const char *text, struct cgroup_self *ret_self)
{
    struct cgroup_self self = {0};
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *path = list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;
        if (path && path == list + 1 && list == line + 1 && *line == '0') {
            self.has_v2 = true;
            int r = copy_text(self.path, path + 1, len - (size_t)(path + 1 - line));
            if (r < 0)
                return r;
        } else if (path) {
            self.v1_controllers |= controller_list(list + 1, (size_t)(path - list - 1));
        }
        line += len + (line[len] == '\n');
    }
    *ret_self = self;
    return 0;
}

/* mountinfo writes blanks and backslashes as \ooo. */
static int unescape(char to[static CGROUP_PATH_TEXT], const char *text, size_t len)
{
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\\' && i + 3 < len) {
            c = (char)((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        }
        if (out + 1 >= CGROUP_PATH_TEXT)
            return -ENAMETOOLONG;
        to[out++] = c;
    }
    to[out] = '\0';
    return 0;
}

/* The path's rest below `root` (empty or starting with a slash), NULL if it isn't below. */
static const char *path_below(const char *path, const char *root)
{
    if (strcmp(root, "/") == 0)
        return strcmp(path, "/") == 0 ? path + 1 : path;
    size_t len = strlen(root);
    if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return NULL;
    return path + len;
}

static bool has_option(const char *options, size_t len, const char *option)
{
    size_t option_len = strlen(option);
    for (size_t start = 0, i = 0; i <= len; i++) {
        if (i < len && options[i] != ',')
            continue;
        if (i - start == option_len && memcmp(options + start, option, option_len) == 0)
            return true;
        start = i + 1;
    }
    return false;
}

struct field {
    const char *text;
    size_t len;
};

/* Splits one line at single blanks; returns how many fields there were room for. */
static size_t split_fields(const char *line, size_t len, struct field *fields, size_t max)
{
    size_t count = 0;
    for (size_t start = 0, i = 0; i <= len && count < max; i++) {
        if (i < len && line[i] != ' ')
            continue;
        fields[count++] = (struct field){line + start, i - start};
        start = i + 1;
    }
    return count;
}

/* id parent dev root point options [optional...] - type source super-options */
static int parse_mount(const char *line, size_t len, struct cgroup_mount *ret_mount)
{
    struct field field[32];
    size_t count = split_fields(line, len, field, ARRAY_LEN(field)), dash = 6;
    while (dash < count && !(field[dash].len == 1 && field[dash].text[0] == '-'))
        dash++;
    if (dash + 3 >= count || field[dash + 1].len != 7 ||
        memcmp(field[dash + 1].text, "cgroup2", 7) != 0)
        return -ENOENT;
    struct cgroup_mount mount = {
        .writable = has_option(field[5].text, field[5].len, "rw") &&
                    has_option(field[dash + 3].text, field[dash + 3].len, "rw"),
    };
    int r = unescape(mount.root, field[3].text, field[3].len);
    if (r == 0)
        r = unescape(mount.point, field[4].text, field[4].len);
    if (r == 0)
        *ret_mount = mount;
    return r;
}

static bool better_mount(const struct cgroup_mount *a, const struct cgroup_mount *b)
{
    if (a->writable != b->writable)
        return a->writable;
    return strlen(a->root) < strlen(b->root);
}

int cgroup_parse_mounts(const char *text, const char *self_path, struct cgroup_mount *ret_mount)
{
    int found = -ENOENT;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        struct cgroup_mount mount;
        if (parse_mount(line, len, &mount) == 0 && path_below(self_path, mount.root) &&
            (found < 0 || better_mount(&mount, ret_mount))) {
            *ret_mount = mount;
            found = 0;
        }
        line += len + (line[len] == '\n');
    }
    return found;
}

int cgroup_mount_path(const struct cgroup_mount *mount, const char *path,
                      char ret_path[static CGROUP_PATH_TEXT])
{
    const char *below = path_below(path, mount->root);
    /* "/../x": outside of our cgroup namespace, so not to be reached through this mount. */
    if (!below || strncmp(below, "/..", 3) == 0)
        return -ENOENT;
    int len = snprintf(ret_path, CGROUP_PATH_TEXT, "%s%s", mount->point, below);
    return len < CGROUP_PATH_TEXT ? 0 : -ENAMETOOLONG;
}

static int read_proc(const char *path, struct buf *buf)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = buf_read_fd(buf, fd, PROC_TEXT_MAX);
    if (r < 0)
        return r;
    buf_put(buf, "", 1);
    return buf->failed;
}

int cgroup_locate(pid_t pid, struct cgroup_self *ret_self, struct cgroup_mount *ret_mount)
{
    char path[48] = "/proc/self/cgroup";
    if (pid > 0)
        (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
    _cleanup_buf_ struct buf cgroups = BUF(PROC_TEXT_MAX), mounts = BUF(PROC_TEXT_MAX);
    int r = read_proc(path, &cgroups);
    if (r == 0)
        r = cgroup_parse_self(cgroups.data, ret_self);
    if (r < 0 || !ret_self->has_v2)
        return r < 0 ? r : -ENOENT;
    r = read_proc("/proc/self/mountinfo", &mounts);
    return r < 0 ? r : cgroup_parse_mounts(mounts.data, ret_self->path, ret_mount);
}
