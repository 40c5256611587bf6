/* cgroup_internal.h - what the cgroup*.c files share; nobody else includes it. */
#ifndef HUTCH_KERNEL_CGROUP_INTERNAL_H
#define HUTCH_KERNEL_CGROUP_INTERNAL_H

#include "kernel/cgroup.h"

#include <sys/stat.h>

#include "base/error.h"

/* Where host processes wait while boxes exist beside them in a delegated subtree. */
#define HOST_LEAF "hutch-host"
#define SLICE_NAME "hutch.slice"
/* Our own xattr on a directory: its systemd was asked once, and it is delegated. */
#define DELEGATED_MARK "user.hutch.delegated"

/* The caller's text for "why not"; a later cause doesn't overwrite an earlier one. */
struct cause {
    char *text;
    size_t len;
};
void cause_set(struct cause cause, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A comma-separated list of the bits' names, in static order; "memory, pids". */
const char *controllers_text(unsigned controllers, char text[static 32]);

/* ---- cgroup_file.c: the files of one directory ---- */

/* One read into a NUL-terminated text without the last newline; negative errno. */
int file_read(int dir_fd, const char *name, char *text, size_t size);
int file_write(int dir_fd, const char *name, const char *text);
/* One number; "max" and whatever can't be read are CGROUP_UNKNOWN. */
uint64_t file_number(int dir_fd, const char *name);
/* The number after `key` at the start of a line, else CGROUP_UNKNOWN. */
uint64_t text_value(const char *text, const char *key);
/* The bits of the controllers that a file such as cgroup.controllers lists; negative errno. */
int file_controllers(int dir_fd, const char *name, unsigned *ret_controllers);
int directory_open(int dir_fd, const char *name);
/* Moves what can be moved of the processes in `from` into `to`. Who is exiting can't be: whether
 * that is still in the way only the kernel can say. */
int processes_move(int from_fd, int to_fd);

/* ---- cgroup_parse.c: the two files of /proc ---- */

struct cgroup_self {
    bool has_v2;
    unsigned v1_controllers; /* of ours, those that a v1 hierarchy holds */
    char path[CGROUP_PATH_TEXT];
};
struct cgroup_mount {
    bool writable;
    char root[CGROUP_PATH_TEXT];
    char point[CGROUP_PATH_TEXT];
};
/* /proc/PID/cgroup. -ENAMETOOLONG: our buffer is too small for its path. */
int cgroup_parse_self(const char *text, struct cgroup_self *ret_self);
/* /proc/PID/mountinfo: the cgroup2 mount that shows `self_path`, a writable one if there is one,
 * else the one that shows most. -ENOENT: none does. */
int cgroup_parse_mounts(const char *text, const char *self_path, struct cgroup_mount *ret_mount);
/* The directory of `path` as it is seen through the mount. */
int cgroup_mount_path(const struct cgroup_mount *mount, const char *path,
                      char ret_path[static CGROUP_PATH_TEXT]);
/* Reads /proc/PID/cgroup and finds its directory; pid 0 is the caller. */
int cgroup_locate(pid_t pid, struct cgroup_self *ret_self, struct cgroup_mount *ret_mount);

/* ---- cgroup_place.c: the directory above the boxes ---- */

/* Makes the place fit for boxes (controllers enabled for its children) and a leaf in it, locked.
 * *ret_place_fd is the leaf's parent. */
int place_leaf(const struct cgroup_place *place, struct cgroup *cgroup, struct cause cause);
/* Enables what it can of `wanted` for the children of a directory without processes; *ret_added
 * wasn't enabled before. */
int place_enable(int dir_fd, unsigned wanted, unsigned *ret_enabled, unsigned *ret_added);
/* After a leaf was removed: takes away what place_leaf() added, if this was the last box. */
void place_leave(enum cgroup_kind kind, int place_fd);
void leaf_name(char *name, size_t size);
bool leaf_name_is_ours(const char *name);
long long cgroup_now_ms(void);

/* ---- cgroup_sweep.c: what is in the directory ---- */

/* Kills and removes the boxes of owners that are dead. */
void place_sweep(int place_fd);
/* The lock that says that a box's owner lives; -EWOULDBLOCK: it does. */
int kill_lock(int leaf_fd, int *ret_lock_fd);
/* rmdir, nested children first. */
int directory_remove(int parent_fd, const char *name);
/* How many there are (kernfs counts them as links); -1 if unknown. */
int directory_children(int dir_fd);
/* Waits for populated 0: 0, or -EAGAIN. */
int populated_wait(int events_fd, int timeout_ms);

/* ---- cgroup_find.c ---- */

/* Nobody but root and `us` may write to it. */
bool owner_trusted(const struct stat *st, uid_t us);

/* ---- cgroup.c ---- */

/* Writes every limit into a leaf without processes; clears the bits it can't keep. */
int leaf_limit(struct cgroup *cgroup, struct cause cause);
int leaf_open_events(struct cgroup *cgroup);

/* ---- cgroup_scope.c: the caller's systemd ---- */

/* The user manager's private socket; false if there is none that we may use. */
bool scope_possible(char *ret_socket, size_t size);
/* Whether the user's systemd says Delegate=yes of one of its units; false if it can't be asked. */
bool scope_unit_delegated(const char *unit);
/* Numbers of processes mean the same to both ends of the socket. */
bool scope_peer_counts_as_we_do(int socket_fd);
/* Connects and asks what the manager was delegated; 1 with a cause if that fails. */
int scope_connect(struct cgroup *cgroup, struct cause cause);
int scope_adopt(struct cgroup *cgroup, pid_t pid, struct hutch_error *err);
void scope_close(struct cgroup *cgroup);

#endif
