/* host.c - see host.h. */
#include "support/host.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/spawn.h"

bool is_root(void)
{
    return geteuid() == 0;
}

/* Not vasprintf(): a leak checker must see whose memory it is. */
const char *text_format(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    cr_assert_geq(len, 0);
    char *text = malloc((size_t)len + 1);
    cr_assert_not_null(text);
    (void)vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}

static struct tempdir tempdir_in(const char *base)
{
    struct tempdir dir;
    snprintf(dir.path, sizeof dir.path, "%s/" TEMP_PREFIX "XXXXXX", base);
    cr_assert_not_null(mkdtemp(dir.path), "mkdtemp: %s", strerror(errno));
    cr_assert_eq(chmod(dir.path, 0755), 0);
    return dir;
}

struct tempdir tempdir_new(void)
{
    const char *base = getenv("TMPDIR");
    return tempdir_in(base && *base ? base : "/tmp");
}

struct tempdir tempdir_home(void)
{
    const char *home = getenv("HOME");
    return tempdir_in(home && *home ? home : is_root() ? "/root" : "/tmp");
}

static int open_up(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)where;
    if (type == FTW_D || type == FTW_DNR)
        (void)chmod(path, info->st_mode | 0700);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    (void)remove(path);
    return 0;
}

void tempdir_free(struct tempdir *dir)
{
    if (strncmp(strrchr(dir->path, '/') + 1, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0)
        return;
    (void)nftw(dir->path, open_up, 32, FTW_PHYS | FTW_MOUNT);
    (void)nftw(dir->path, remove_one, 32, FTW_PHYS | FTW_DEPTH | FTW_MOUNT);
}

const char *path_in(const char *dir, const char *name)
{
    return text_format("%s/%s", dir, name);
}

const char *file_new_bytes(const char *dir, const char *name, const void *data, size_t len,
                           mode_t mode)
{
    const char *path = path_in(dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
    for (size_t done = 0; done < len;) {
        ssize_t put = write(fd, (const char *)data + done, len - done);
        cr_assert_gt(put, 0, "%s: %s", path, strerror(errno));
        done += (size_t)put;
    }
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

const char *file_new(const char *dir, const char *name, const char *text, mode_t mode)
{
    return file_new_bytes(dir, name, text, strlen(text), mode);
}

char *file_text(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = calloc(1, 1), chunk[8192];
    size_t len = 0;
    ssize_t got;
    if (fd < 0)
        return NULL;
    while ((got = read(fd, chunk, sizeof chunk)) > 0) {
        text = realloc(text, len + (size_t)got + 1);
        memcpy(text + len, chunk, (size_t)got);
        len += (size_t)got;
        text[len] = 0;
    }
    close(fd);
    return text;
}

bool path_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* A sorted list of lines, grown one by one. */
struct lines {
    char **items;
    size_t len;
};

static void lines_add(struct lines *lines, const char *text)
{
    lines->items = realloc(lines->items, (lines->len + 1) * sizeof *lines->items);
    cr_assert_not_null(lines->items);
    lines->items[lines->len++] = strdup(text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *lines_text(struct lines *lines)
{
    size_t size = 1;
    if (lines->len)
        qsort(lines->items, lines->len, sizeof *lines->items, by_text);
    for (size_t i = 0; i < lines->len; i++)
        size += strlen(lines->items[i]) + 1;
    char *text = calloc(size, 1), *at = text;
    for (size_t i = 0; i < lines->len; i++) {
        at = mempcpy(at, lines->items[i], strlen(lines->items[i]));
        *at++ = '\n';
    }
    return text;
}

const char *mounts_now(void)
{
    struct lines lines = {0};
    char *text = file_text("/proc/self/mountinfo"), *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        lines_add(&lines, line);
    free(text);
    return lines_text(&lines);
}

const char *names_now(const char *dir)
{
    struct lines lines = {0};
    DIR *d = opendir(dir);
    struct dirent *entry;
    cr_assert_not_null(d, "%s: %s", dir, strerror(errno));
    while ((entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            lines_add(&lines, entry->d_name);
    closedir(d);
    return lines_text(&lines);
}

const char *fds_now(void)
{
    struct lines lines = {0};
    DIR *d = opendir("/proc/self/fd");
    struct dirent *entry;
    cr_assert_not_null(d);
    while ((entry = readdir(d))) {
        char target[256] = "";
        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == dirfd(d))
            continue;
        if (readlinkat(dirfd(d), entry->d_name, target, sizeof target - 1) < 0)
            continue;
        lines_add(&lines, text_format("%s %s", entry->d_name, target));
    }
    closedir(d);
    return lines_text(&lines);
}

const char *lines_new(const char *before, const char *now)
{
    const char *added = "";
    for (const char *line = now; *line; line = strchr(line, '\n') + 1) {
        const char *one = text_format("%.*s", (int)(strchr(line, '\n') - line + 1), line);
        const char *at = strstr(before, one);
        if (!at || (at != before && at[-1] != '\n'))
            added = text_format("%s%s", added, one);
    }
    return added;
}

static struct lines tree;

static int tree_add(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)type;
    (void)where;
    lines_add(&tree, text_format("%s %o %u:%u", path, info->st_mode, info->st_uid, info->st_gid));
    return 0;
}

const char *tree_now(const char *dir)
{
    tree = (struct lines){0};
    cr_assert_eq(nftw(dir, tree_add, 32, FTW_PHYS | FTW_MOUNT), 0);
    return lines_text(&tree);
}

const char *rootfs_path(void)
{
    const char *path = getenv("HUTCH_TEST_ROOTFS");
    if (!path || !path_exists(path))
        cr_skip_test("no root file system here: tests/run makes one and sets HUTCH_TEST_ROOTFS");
    return path;
}
