/*
 * host.h - what a test needs of the machine: directories that vanish, lists of what is there
 * (to be compared later), listeners that a box must not reach.
 */
#ifndef HUTCH_TESTS_HOST_H
#define HUTCH_TESTS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TEMP_PREFIX "hutch-test-"

/* A fresh directory, mode 0755, removed with everything in it (whatever its modes). */
struct tempdir {
    char path[256];
};
struct tempdir tempdir_new(void);
/* The same in the home directory, where a box has no directory of its own. */
struct tempdir tempdir_home(void);
void tempdir_free(struct tempdir *dir);
#define _cleanup_tempdir_ __attribute__((cleanup(tempdir_free)))

/* "dir/name"; never freed. */
const char *path_in(const char *dir, const char *name);
/* A file with that text and mode; returns its path (never freed). */
const char *file_new(const char *dir, const char *name, const char *text, mode_t mode);
const char *file_new_bytes(const char *dir, const char *name, const void *data, size_t len,
                           mode_t mode);
/* A file's whole text, NULL if it can't be read; never freed. */
char *file_text(const char *path);
bool path_exists(const char *path); /* a dangling symlink exists too */
const char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes this process the one that orphans of its children go to, so that whatever a command
 * leaves behind is found below it. Call before the command starts. */
void processes_watch(void);
/* NULL when nothing that descends from this process is alive (waits for that at most within_ms);
 * else a list of what is. Zombies are reaped and don't count. */
const char *processes_left(unsigned within_ms);
/* The number of processes below `pid`. */
size_t processes_below(pid_t pid);
#define expect_nothing_left()                                                                      \
    do {                                                                                           \
        const char *left_ = processes_left(5000);                                                  \
        cr_assert_null(left_, "still alive: %s", left_);                                           \
    } while (0)

/* Sorted lists, one entry a line, to be compared as text; never freed. */
const char *mounts_now(void);
const char *fds_now(void);
const char *names_now(const char *dir);
/* The lines of `now` that `before` doesn't have (both sorted lists as above); "" if there is none.
 * For what others on the machine may take away meanwhile, but only we could add to. */
const char *lines_new(const char *before, const char *now);
/* Every path below a directory with its type, mode and owner. */
const char *tree_now(const char *dir);

/* Listeners; the fd answers listener_reached(). An abstract name has no leading NUL here. */
int listen_tcp(int *ret_port);
int listen_abstract(const char *name);
int listen_unix(const char *path);
bool listener_reached(int listener);

bool is_root(void);

/* The root file system that tests/run has made for this user; skips the test, saying so, when
 * there is none. */
const char *rootfs_path(void);

#endif
