/*
 * collect.c - the files that a box left in /work.
 *
 * The supervisor calls it when everything in the box is dead, so that names no longer move and
 * a mode that is changed here can't be changed back. What is there is still hostile: links and
 * FIFOs in place of files, directories of mode 000, a chain of directories without end, sparse
 * files of a terabyte, any byte in a name. Hence a walk by fds and single names, never by paths;
 * a stack with a bound in place of recursion; and the type taken from an O_PATH fd before
 * anything is opened for reading (to open a FIFO or a device is already an act).
 */
#include "box/collect.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/error.h"

const struct collect_bounds COLLECT_BOUNDS = {
    .files_max = 1000,
    .depth_max = 32,
    .bytes_max = 64ULL << 20,
    .entries_max = 100000,
};

enum { READ_CHUNK = 64 * 1024 };

struct level {
    DIR *dir;
    size_t path_len; /* of the directory's own name with its '/', in walk.path */
};

struct walk {
    const struct collect_bounds *bounds;
    const char *code_file; /* "" if there is none */
    struct collected *out;
    struct level *levels; /* depth_max + 1 */
    size_t levels_len;
    struct buf path;                  /* the current entry's name, relative to /work */
    const struct input_file **inputs; /* sorted by name */
    size_t inputs_len;
    uint64_t entries_left, bytes_left;
};

/* ---- the result's lists ---- */

void collected_free(struct collected *collected)
{
    for (size_t i = 0; i < collected->files_len; i++) {
        free(collected->files[i].name);
        free(collected->files[i].data);
    }
    for (size_t i = 0; i < collected->skipped_len; i++)
        free(collected->skipped[i].name);
    free(collected->files);
    free(collected->skipped);
    *collected = (struct collected){0};
}

/* Both lists have room for files_max entries from the start. */
static int reserve(struct collected *out, const struct collect_bounds *bounds)
{
    out->files = calloc(bounds->files_max + 1, sizeof(*out->files));
    out->skipped = calloc(bounds->files_max + 1, sizeof(*out->skipped));
    return out->files && out->skipped ? 0 : -ENOMEM;
}

static char *copy_path(const struct walk *walk)
{
    char *name = malloc(walk->path.len + 1);
    if (!name)
        return NULL;
    memcpy(name, walk->path.data, walk->path.len);
    name[walk->path.len] = '\0';
    return name;
}

static int skip(struct walk *walk, const char *why)
{
    struct collected *out = walk->out;
    if (out->skipped_len >= walk->bounds->files_max) {
        out->cut = true;
        return 0;
    }
    char *name = copy_path(walk);
    if (!name)
        return -ENOMEM;
    out->skipped[out->skipped_len++] =
        (struct skipped_file){.name = name, .name_len = walk->path.len, .why = why};
    return 0;
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_files(const void *a, const void *b)
{
    const struct collected_file *x = a, *y = b;
    return compare_bytes(x->name, x->name_len, y->name, y->name_len);
}

static int compare_skipped(const void *a, const void *b)
{
    const struct skipped_file *x = a, *y = b;
    return compare_bytes(x->name, x->name_len, y->name, y->name_len);
}

/* ---- opening ---- */

/* One name below a directory. A mount on it (there is none in /work's own tmpfs) is not entered,
 * so that a mode is never changed outside of the box. */
static int open_beneath(int dir_fd, const char *name, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    long fd;
    do {
        fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return fd < 0 ? -errno : (int)fd;
}

static const char *why_not_regular(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return "symlink";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

/* fchmod() refuses O_PATH fds, so it goes by name. Not being allowed to (the owner isn't the
 * caller) shows in the open that follows, if it matters. */
static void make_readable(int dir_fd, const char *name, mode_t mode, mode_t need)
{
    if ((mode & need) == need)
        return;
    if (fchmodat(dir_fd, name, (mode & 07777) | need, 0) < 0)
        return;
}

/* Opens a file or directory that `stat` describes, made readable first: a plain user owns what
 * his boxes leave, but isn't let past mode 000. */
static int open_readable(int dir_fd, const char *name, const struct stat *stat)
{
    bool is_dir = S_ISDIR(stat->st_mode);
    make_readable(dir_fd, name, stat->st_mode, is_dir ? S_IRUSR | S_IXUSR : S_IRUSR);
    int fd = open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | (is_dir ? O_DIRECTORY : 0));
    struct stat opened;
    if (fd >= 0 && (fstat(fd, &opened) < 0 || opened.st_ino != stat->st_ino ||
                    opened.st_dev != stat->st_dev)) {
        (void)close(fd);
        return -ESTALE;
    }
    return fd;
}

/* ---- files ---- */

static int compare_inputs(const void *a, const void *b)
{
    const struct input_file *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static const struct input_file *input_of(const struct walk *walk, const char *name)
{
    struct input_file key = {0};
    const struct input_file *key_ptr = &key;
    memcpy(&key.name, &name, sizeof(name)); /* the search only reads it */
    const struct input_file **found = walk->inputs_len == 0
                                          ? NULL
                                          : bsearch(&key_ptr, walk->inputs, walk->inputs_len,
                                                    sizeof(*walk->inputs), compare_inputs);
    return found ? *found : NULL;
}

static ssize_t read_at(int fd, void *to, size_t len, uint64_t offset)
{
    ssize_t n;
    do {
        n = pread(fd, to, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n;
}

static bool unchanged(int fd, const struct stat *stat, const struct input_file *input)
{
    if (!input || (uint64_t)stat->st_size != input->len)
        return false;
    char chunk[READ_CHUNK];
    for (size_t at = 0; at < input->len;) {
        size_t left = input->len - at;
        ssize_t n = read_at(fd, chunk, left < sizeof(chunk) ? left : sizeof(chunk), at);
        if (n <= 0 || memcmp(chunk, (const char *)input->data + at, (size_t)n) != 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* As much of the file as the budget still has; a sparse file's size costs nothing to claim. */
static int read_data(struct walk *walk, int fd, uint64_t size, struct collected_file *file)
{
    size_t want = (size_t)(size < walk->bytes_left ? size : walk->bytes_left);
    file->data = malloc(want + 1);
    if (!file->data)
        return -ENOMEM;
    while (file->data_len < want) {
        ssize_t n = read_at(fd, file->data + file->data_len, want - file->data_len, file->data_len);
        if (n <= 0)
            break; /* shorter than `size`: shown as cut */
        file->data_len += (size_t)n;
    }
    file->data[file->data_len] = '\0';
    walk->bytes_left -= file->data_len;
    return 0;
}

static int add_file(struct walk *walk, int fd, const struct stat *stat)
{
    struct collected *out = walk->out;
    if (out->files_len >= walk->bounds->files_max) {
        out->cut = true;
        return 0;
    }
    _cleanup_free_ char *name = copy_path(walk);
    if (!name)
        return -ENOMEM;
    struct collected_file file = {
        .name_len = walk->path.len,
        .size = (uint64_t)stat->st_size,
        .executable = (stat->st_mode & S_IXUSR) != 0,
    };
    int r = read_data(walk, fd, file.size, &file);
    if (r < 0)
        return r;
    file.name = take_ptr(name);
    out->files[out->files_len++] = file;
    return 0;
}

static int visit_file(struct walk *walk, int dir_fd, const char *name, const struct stat *stat)
{
    if (walk->levels_len == 1 && strcmp(name, walk->code_file) == 0)
        return 0;
    _cleanup_close_ int fd = open_readable(dir_fd, name, stat);
    if (fd < 0)
        return skip(walk, "unreadable");
    if (unchanged(fd, stat, input_of(walk, walk->path.data)))
        return 0;
    return add_file(walk, fd, stat);
}

/* ---- directories ---- */

/* Takes the fd. */
static int enter(struct walk *walk, int fd)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    walk->levels[walk->levels_len++] = (struct level){.dir = dir, .path_len = walk->path.len};
    return 0;
}

static int visit_dir(struct walk *walk, int dir_fd, const char *name, const struct stat *stat)
{
    if (walk->levels_len > walk->bounds->depth_max) {
        walk->out->cut = true;
        return skip(walk, "directory depth");
    }
    int fd = open_readable(dir_fd, name, stat);
    if (fd < 0)
        return skip(walk, "unreadable");
    buf_puts(&walk->path, "/");
    return walk->path.failed ? (close(fd), walk->path.failed) : enter(walk, fd);
}

static int visit(struct walk *walk, int dir_fd, const char *name)
{
    struct stat stat;
    _cleanup_close_ int fd = open_beneath(dir_fd, name, O_PATH);
    if (fd < 0 || fstat(fd, &stat) < 0)
        return skip(walk, "unreadable");
    if (S_ISREG(stat.st_mode))
        return visit_file(walk, dir_fd, name, &stat);
    if (S_ISDIR(stat.st_mode))
        return visit_dir(walk, dir_fd, name, &stat);
    return skip(walk, why_not_regular(stat.st_mode));
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* One entry of the innermost directory; leaves the directory at its end. */
static int step(struct walk *walk)
{
    struct level *level = &walk->levels[walk->levels_len - 1];
    errno = 0;
    const struct dirent *entry = readdir(level->dir);
    if (!entry) {
        if (errno != 0)
            walk->out->cut = true;
        (void)closedir(level->dir);
        walk->levels_len--;
        return 0;
    }
    if (is_dots(entry->d_name))
        return 0;
    if (walk->entries_left-- == 0) {
        walk->entries_left = 0;
        walk->out->cut = true;
        return 1;
    }
    walk->path.len = level->path_len;
    buf_put(&walk->path, entry->d_name, strlen(entry->d_name) + 1);
    if (walk->path.failed)
        return walk->path.failed;
    walk->path.len--; /* the NUL stays behind the name */
    return visit(walk, dirfd(level->dir), entry->d_name);
}

/* ---- the walk ---- */

static void walk_free(struct walk *walk)
{
    while (walk->levels_len > 0)
        (void)closedir(walk->levels[--walk->levels_len].dir);
    free(walk->levels);
    free(walk->inputs);
    buf_free(&walk->path);
}

static int walk_init(struct walk *walk, const struct hutch_request *request)
{
    walk->entries_left = walk->bounds->entries_max;
    walk->bytes_left = walk->bounds->bytes_max;
    walk->code_file =
        request->verb == HUTCH_VERB_RUN ? language_info(request->language)->code_file : "";
    walk->levels = calloc((size_t)walk->bounds->depth_max + 1, sizeof(*walk->levels));
    walk->inputs = calloc(request->files_len + 1, sizeof(*walk->inputs));
    if (!walk->levels || !walk->inputs)
        return -ENOMEM;
    for (size_t i = 0; i < request->files_len; i++)
        walk->inputs[walk->inputs_len++] = &request->files[i];
    qsort(walk->inputs, walk->inputs_len, sizeof(*walk->inputs), compare_inputs);
    return 0;
}

/* The program may have taken its own rights to /work away, too. The caller's fd keeps its offset:
 * the walk reads through one of its own. */
static int enter_work(struct walk *walk, int work_fd)
{
    struct stat stat;
    if (fstat(work_fd, &stat) < 0)
        return -errno;
    if ((stat.st_mode & S_IRWXU) != S_IRWXU)
        (void)fchmod(work_fd, (stat.st_mode & 07777) | S_IRWXU);
    int fd = openat(work_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : enter(walk, fd);
}

static int walk_all(struct walk *walk, int work_fd)
{
    int r = reserve(walk->out, walk->bounds);
    if (r == 0)
        r = enter_work(walk, work_fd);
    while (r == 0 && walk->levels_len > 0)
        r = step(walk);
    return r < 0 ? r : 0;
}

int collect_files(int work_fd, const struct hutch_request *request,
                  const struct collect_bounds *bounds, struct collected *ret,
                  struct hutch_error *err)
{
    _cleanup_(collected_free) struct collected out = {0};
    _cleanup_(walk_free) struct walk walk = {.bounds = bounds, .out = &out};
    int r = walk_init(&walk, request);
    if (r == 0)
        r = walk_all(&walk, work_fd);
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_COLLECT, r, "read the files left in /work");
    qsort(out.files, out.files_len, sizeof(*out.files), compare_files);
    qsort(out.skipped, out.skipped_len, sizeof(*out.skipped), compare_skipped);
    *ret = out;
    out = (struct collected){0};
    return 0;
}
