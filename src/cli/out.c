/*
 * out.c - produced files into a directory of the host.
 *
 * The names come from the box, and another run may have left links in the directory. So no path
 * is ever resolved as a whole: each part is opened beneath the one before, without following,
 * and each file is written under a new name and then renamed into place. That replaces whatever
 * had the name, be it a symbolic link, a hard link or a FIFO, and writes through none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/cli.h"

static int enter(int dir, const char *name, bool make)
{
    const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_PATH;
    int fd = openat(dir, name, flags);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd < 0 ? -errno : fd;
    if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(dir, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Goes down the first `len` bytes of a path, part by part. */
static int descend(int start, const char *path, size_t len, bool make_all, bool make_last)
{
    _cleanup_close_ int dir = start;
    size_t at = 0;
    while (at < len) {
        size_t part_len = 0;
        while (at + part_len < len && path[at + part_len] != '/')
            part_len++;
        char part[NAME_MAX + 1];
        if (part_len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(part, path + at, part_len);
        part[part_len] = '\0';
        at += part_len;
        while (at < len && path[at] == '/')
            at++;
        if (part_len == 0)
            continue;
        int next = enter(dir, part, make_all || (make_last && at >= len));
        if (next < 0)
            return next;
        (void)close(dir);
        dir = next;
    }
    return take_fd(&dir);
}

/* Without following, a link to a directory is ELOOP, or ENOTDIR where O_DIRECTORY looked first. */
static const char *link_hint(int error)
{
    return error == -ELOOP || error == -ENOTDIR ? " (a link, or not a directory; links are not "
                                                  "followed here)"
                                                : "";
}

int out_open(const char *path, int *ret_dir, struct hutch_error *err)
{
    if (path[0] == '\0')
        return error_request(err, "--out: the directory's name is empty");
    int start = open(path[0] == '/' ? "/" : ".", O_DIRECTORY | O_CLOEXEC | O_PATH);
    if (start < 0)
        return error_errno(err, HUTCH_STAGE_REQUEST, errno, "--out '%.200s'", path);
    int dir = descend(start, path, strlen(path), false, true);
    if (dir < 0)
        return error_errno(err, HUTCH_STAGE_REQUEST, dir, "--out '%.200s'%s", path, link_hint(dir));
    if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        int error = errno;
        (void)close(dir);
        return error_errno(err, HUTCH_STAGE_REQUEST, error, "--out '%.200s'", path);
    }
    *ret_dir = dir;
    return 0;
}

/* ---- one file ---- */

/* The library promises such names; they come from the box, so it is checked again. */
static bool safe_name(const char *name)
{
    for (;;) {
        size_t len = strcspn(name, "/");
        bool dots = (len == 1 && name[0] == '.') || (len == 2 && memcmp(name, "..", 2) == 0);
        if (len == 0 || dots)
            return false;
        if (name[len] == '\0')
            return true;
        name += len + 1;
    }
}

static int create_new(int dir, char ret_name[32])
{
    for (int i = 0; i < 100; i++) {
        unsigned long long random;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -errno;
        (void)snprintf(ret_name, 32, ".hutch-%016llx", random);
        int fd = openat(dir, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

static int place(int dir, const char *name, const void *data, size_t len)
{
    char temporary[32];
    _cleanup_close_ int fd = create_new(dir, temporary);
    if (fd < 0)
        return fd;
    int r = cli_write(fd, data, len);
    if (r == 0 && renameat(dir, temporary, dir, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, temporary, 0);
    return r;
}

static int write_one(int out, const char *name, const void *data, size_t len)
{
    if (!safe_name(name))
        return -EINVAL;
    const char *base = strrchr(name, '/');
    base = base ? base + 1 : name;
    int start = fcntl(out, F_DUPFD_CLOEXEC, 0);
    if (start < 0)
        return -errno;
    _cleanup_close_ int dir = descend(start, name, (size_t)(base - name), true, true);
    return dir < 0 ? dir : place(dir, base, data, len);
}

int out_write(int dir, const struct hutch_result *result, struct hutch_error *err)
{
    int failed = 0;
    for (size_t i = 0; i < hutch_result_file_count(result); i++) {
        const char *name;
        const void *data;
        size_t len;
        if (hutch_result_file(result, i, &name, &data, &len) < 0)
            continue;
        int r = write_one(dir, name, data, len);
        if (r < 0 && failed == 0)
            failed = error_errno(err, HUTCH_STAGE_COLLECT, r, "write '%.200s' into --out%s", name,
                                 link_hint(r));
    }
    return failed;
}
