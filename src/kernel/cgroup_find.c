/*
 * cgroup_find.c - where a box's cgroup could be, without changing anything. Tried in this order:
 *
 *   1. a subtree that was delegated to us and that we sit in: also for root, because an
 *      administrator's limits on a service must hold for what the service runs;
 *   2. root: our own slice below the root of the mount;
 *   3. a plain user: a scope from the user's own systemd.
 *
 * "Delegated" is what systemd says in the xattr user.delegate (trusted.delegate before 251). A
 * directory above us that a systemd of its own runs (its init.scope is there) isn't ours to use,
 * even where the kernel would let us: systemd takes controllers away from what it thinks is its
 * own, and a box would lose its limits without a word. Without any xattr, a directory that we
 * may write is delegated if nothing but a delegation can have made it so. Below a user manager
 * everything is writable and (systemd 252) nothing is marked: there systemd is asked over D-Bus,
 * once; cgroup_create() then leaves a mark of our own for the runs to come.
 *
 * Whoever may write in a directory above a box can take its limits away, and may set marks too. So
 * a place is ours, and it and all above it can be written by nobody but us and root: root isn't
 * led into the subtree of the user whose terminal it was started in.
 */
#include "kernel/cgroup_internal.h"

#include "kernel/userns.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

struct search {
    struct cgroup_self self;
    struct cgroup_mount mount;
    char path[CGROUP_PATH_TEXT]; /* our own directory; host leaves already stripped */
    unsigned wanted;
    bool root;
    bool distrusted; /* a place was passed over because of others who may write there */
    struct cause cause;
};

void cgroup_place_close(struct cgroup_place *place)
{
    close_fd(&place->fd);
}

static int no_tree(const struct search *search)
{
    if (search->self.v1_controllers)
        cause_set(search->cause, "this system keeps its limits in cgroup v1: boot it with "
                                 "systemd.unified_cgroup_hierarchy=1 (or cgroup_no_v1=all)");
    else if (search->self.has_v2)
        cause_set(search->cause,
                  "no cgroup v2 mount shows this process's cgroup: a container needs a cgroup "
                  "namespace of its own and a writable /sys/fs/cgroup");
    else
        cause_set(search->cause, "this system has no cgroup v2 tree: mount -t cgroup2 none "
                                 "/sys/fs/cgroup");
    return 1;
}

static bool is_writable(int dir_fd, const char *file)
{
    return faccessat(dir_fd, file, W_OK, AT_EACCESS) == 0;
}

static bool exists(int dir_fd, const char *file)
{
    return faccessat(dir_fd, file, F_OK, 0) == 0;
}

static bool has_delegate_mark(int dir_fd, bool root)
{
    char value = 0;
    if (!root && fgetxattr(dir_fd, DELEGATED_MARK, &value, 1) == 1)
        return value == '1';
    if (fgetxattr(dir_fd, "user.delegate", &value, 1) == 1)
        return value == '1';
    return root && fgetxattr(dir_fd, "trusted.delegate", &value, 1) == 1 && value == '1';
}

bool owner_trusted(const struct stat *st, uid_t us)
{
    enum { UNMAPPED = 65534 };
    if ((st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != 0))
        return false;
    /* In a user namespace of a single user the real root is shown as nobody. */
    return st->st_uid == 0 || st->st_uid == us ||
           (st->st_uid == UNMAPPED && !userns_has_uid(UNMAPPED));
}

/* The directory and what moves processes in it and gives its children controllers. */
static bool is_trusted(const char *path)
{
    static const char *const FILES[] = {"", "/cgroup.procs", "/cgroup.subtree_control"};
    char file[CGROUP_PATH_TEXT + 32];
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        struct stat st;
        (void)snprintf(file, sizeof(file), "%s%s", path, FILES[i]);
        if (lstat(file, &st) < 0 || !owner_trusted(&st, geteuid()))
            return false;
    }
    return true;
}

static bool is_ours(int dir_fd)
{
    struct stat st;
    return fstat(dir_fd, &st) == 0 && st.st_uid == geteuid();
}

/* Below a user manager the user may write everywhere, delegated or not. */
static bool below_user_manager(const char *path)
{
    const char *at = strstr(path, "/user@");
    return at && strstr(at, ".service/");
}

/* Without a mark: what else could have made our own directory writable? One without controllers
 * is a subgroup of what was delegated (DelegateSubgroup=). */
static bool delegated_unmarked(const struct search *search, int dir_fd)
{
    bool top = strcmp(search->path, search->mount.point) == 0;
    unsigned controllers = 0;
    /* Only the true root has no cgroup.type; there, processes beside ours are the system's. */
    if (top && !exists(dir_fd, "cgroup.type"))
        return false;
    if (file_controllers(dir_fd, "cgroup.controllers", &controllers) < 0 ||
        !(controllers & search->wanted))
        return false;
    if (search->root)
        return top;
    return !below_user_manager(search->path);
}

static bool may_write(int dir_fd)
{
    return is_writable(dir_fd, "cgroup.procs") && is_writable(dir_fd, "cgroup.subtree_control");
}

static bool is_unit(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".scope") == 0 || strcmp(dot, ".service") == 0);
}

enum answer { NO, YES, ASKED };

static enum answer is_delegated(const struct search *search, int dir_fd, const char *path,
                                bool *asked)
{
    if (!is_ours(dir_fd) || !may_write(dir_fd))
        return NO;
    if (has_delegate_mark(dir_fd, search->root))
        return exists(dir_fd, "init.scope") ? NO : YES;
    const char *name = strrchr(path, '/') + 1;
    if (!search->root && below_user_manager(path) && is_unit(name) && !*asked) {
        *asked = true; /* the nearest unit decides; what is above it is systemd's */
        return scope_unit_delegated(name) ? ASKED : NO;
    }
    return strcmp(path, search->path) == 0 && delegated_unmarked(search, dir_fd) ? YES : NO;
}

/* Shortens the path by one name; false at the mount's point. */
static bool go_up(const struct search *search, char *path)
{
    if (strlen(path) <= strlen(search->mount.point))
        return false;
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* The whole way from the place to the mount's point. */
static bool is_trusted_way(const struct search *search, const char *place)
{
    char path[CGROUP_PATH_TEXT];
    (void)snprintf(path, sizeof(path), "%s", place);
    do {
        if (!is_trusted(path))
            return false;
    } while (go_up(search, path));
    return true;
}

static bool find_delegated(struct search *search, struct cgroup_place *place)
{
    char path[CGROUP_PATH_TEXT];
    memcpy(path, search->path, sizeof(path));
    bool asked = false;
    do {
        _cleanup_close_ int fd = directory_open(AT_FDCWD, path);
        enum answer answer = fd < 0 ? NO : is_delegated(search, fd, path, &asked);
        if (answer == NO)
            continue;
        if (!is_trusted_way(search, path)) {
            search->distrusted = true;
            continue;
        }
        place->kind = CGROUP_DELEGATED;
        place->asked = answer == ASKED;
        place->fd = take_fd(&fd);
        memcpy(place->path, path, sizeof(path));
        return true;
    } while (go_up(search, path));
    return false;
}

static void explain_distrust(const struct search *search)
{
    if (search->distrusted)
        cause_set(search->cause,
                  "another user may write in the delegated cgroup %.160s or above it, and so "
                  "take limits away: only its user and root must be able to",
                  search->path);
}

static bool find_slice(const struct search *search, struct cgroup_place *place)
{
    const char *path = search->mount.point;
    _cleanup_close_ int fd = directory_open(AT_FDCWD, path);
    if (fd < 0 || !is_writable(fd, "cgroup.subtree_control")) {
        int error = fd < 0 ? -fd : errno;
        explain_distrust(search);
        cause_set(
            search->cause,
            "the cgroup tree at %.160s can't be written (%s): mount it writable (a container has "
            "to be started with a writable one, as docker run --privileged does)",
            path, error_text(error));
        return false;
    }
    if (!is_trusted(path)) {
        cause_set(search->cause, "another user may write in the cgroup tree at %.160s", path);
        return false;
    }
    place->kind = CGROUP_SLICE;
    place->fd = take_fd(&fd);
    memcpy(place->path, path, sizeof(place->path));
    return true;
}

/* The user manager's own directory only tells what it was delegated; where it is isn't known
 * until it is asked, so a guess that misses counts as "everything". */
static unsigned manager_controllers(const struct search *search)
{
    char path[CGROUP_PATH_TEXT];
    unsigned uid = geteuid(), controllers = search->wanted;
    int len = snprintf(path, sizeof(path), "%s/user.slice/user-%u.slice/user@%u.service",
                       search->mount.point, uid, uid);
    if (len < (int)sizeof(path)) {
        _cleanup_close_ int fd = directory_open(AT_FDCWD, path);
        if (fd >= 0)
            (void)file_controllers(fd, "cgroup.controllers", &controllers);
    }
    return controllers;
}

static bool find_scope(const struct search *search, struct cgroup_place *place)
{
    char socket[PATH_MAX];
    if (!scope_possible(socket, sizeof(socket))) {
        explain_distrust(search);
        cause_set(search->cause,
                  "no cgroup was delegated to this user and no systemd user manager answers at "
                  "%.96s: loginctl enable-linger, or start it in systemd-run --user --scope "
                  "-p Delegate=yes or in a service with Delegate=yes",
                  socket);
        return false;
    }
    place->kind = CGROUP_SCOPE;
    place->controllers = manager_controllers(search);
    (void)snprintf(place->path, sizeof(place->path), "%s", socket);
    return true;
}

/* Why the place has less than was wanted. */
static void explain_missing(const struct search *search, const struct cgroup_place *place,
                            unsigned missing)
{
    char names[32];
    if (search->self.v1_controllers & missing)
        cause_set(search->cause,
                  "cgroup v1 holds the controllers %s (hybrid set-up, the v2 tree at %.120s has "
                  "none of them): boot with systemd.unified_cgroup_hierarchy=1 (or "
                  "cgroup_no_v1=all)",
                  controllers_text(search->self.v1_controllers & missing, names),
                  search->mount.point);
    else if (place->kind == CGROUP_SLICE)
        cause_set(search->cause, "the kernel offers no controller %s in %.160s (cgroup_disable=?)",
                  controllers_text(missing, names), place->path);
    else
        cause_set(search->cause,
                  "the controllers %s are not delegated to %.160s: name them in Delegate= "
                  "(for user managers in a drop-in of user@.service)",
                  controllers_text(missing, names), place->path);
}

static bool find_any(struct search *search, struct cgroup_place *place)
{
    if (find_delegated(search, place))
        return true;
    return search->root ? find_slice(search, place) : find_scope(search, place);
}

/* A host leaf of ours: the place is above it. */
static void strip_host_leaf(struct search *search)
{
    size_t len = strlen(search->path), leaf = strlen("/" HOST_LEAF);
    if (len > leaf && strcmp(search->path + len - leaf, "/" HOST_LEAF) == 0)
        search->path[len - leaf] = '\0';
}

static int search_start(struct search *search, struct hutch_error *err)
{
    int r = cgroup_locate(0, &search->self, &search->mount);
    if (r == 0)
        r = cgroup_mount_path(&search->mount, search->self.path, search->path);
    if (r == -ENOENT || r == -EACCES)
        return no_tree(search);
    if (r == -ENAMETOOLONG) {
        cause_set(search->cause, "the path of this process's cgroup is too long to be used: start "
                                 "it nearer to the top of the tree");
        return 1;
    }
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_CGROUP, r, "find this process's cgroup");
    strip_host_leaf(search);
    return 0;
}

int cgroup_find(unsigned wanted, struct cgroup_place *ret_place, char *cause, size_t cause_len,
                struct hutch_error *err)
{
    if (cause_len)
        cause[0] = '\0';
    struct search search = {
        .wanted = wanted,
        .root = geteuid() == 0,
        .cause = {cause, cause_len},
    };
    int r = search_start(&search, err);
    if (r != 0)
        return r;
    _cleanup_cgroup_place_ struct cgroup_place place = CGROUP_PLACE;
    /* A controller is in one hierarchy at a time: then no place in the v2 tree has any of them. */
    if (wanted && (search.self.v1_controllers & wanted) == wanted) {
        explain_missing(&search, &place, wanted);
        return 1;
    }
    if (!find_any(&search, &place))
        return 1;
    if (place.kind != CGROUP_SCOPE)
        (void)file_controllers(place.fd, "cgroup.controllers", &place.controllers);
    place.controllers &= wanted;
    unsigned missing = wanted & ~place.controllers;
    if (missing)
        explain_missing(&search, &place, missing);
    if (wanted && !place.controllers)
        return 1;
    *ret_place = place;
    place.fd = -1;
    return 0;
}
