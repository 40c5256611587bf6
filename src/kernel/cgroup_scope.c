/*
 * cgroup_scope.c - a plain user's box in a transient scope of the user's own systemd.
 *
 * Over the manager's private socket, so that no message bus has to be installed. libsystemd is
 * loaded here and only here: no other run pays for it. Order of events: cgroup_create() connects
 * and asks what the manager was delegated; the box's first process is made and waits; then
 * cgroup_adopt() has systemd move it into a new scope, and from there it goes on into the leaf
 * that gets the limits. The scope ends by itself with its last process, the keeper.
 */
#include "kernel/cgroup_internal.h"

#include "base/dl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <time.h>

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"

enum { BUS_TIMEOUT_USEC = 5000000 };

/* What we call of libsystemd, by the names and types of its header. */
#define FUNCTIONS(f)                                                                               \
    f(sd_bus_new) f(sd_bus_set_address) f(sd_bus_start) f(sd_bus_get_fd)                           \
        f(sd_bus_set_method_call_timeout) f(sd_bus_get_property_string)                            \
            f(sd_bus_get_property_trivial) f(sd_bus_call_method) f(sd_bus_message_new_method_call) \
                f(sd_bus_message_append) f(sd_bus_message_read) f(sd_bus_message_is_signal)        \
                    f(sd_bus_message_unref) f(sd_bus_call) f(sd_bus_process) f(sd_bus_wait)        \
                        f(sd_bus_flush_close_unref) f(sd_bus_error_free)

#define MEMBER(name) __typeof__(name) *name;
struct scope {
    void *library;
    sd_bus *bus;
    FUNCTIONS(MEMBER)
};

/* What an address of D-Bus may hold without escapes. */
static bool plain_path(const char *path)
{
    return path[0] == '/' &&
           path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "-_/.")] == '\0';
}

bool scope_possible(char *ret_socket, size_t size)
{
    /* cron and su don't set it; systemd has no other place for it than this one. */
    char standard[48];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (!runtime || !plain_path(runtime)) {
        (void)snprintf(standard, sizeof(standard), "/run/user/%u", geteuid());
        runtime = standard;
    }
    if (snprintf(ret_socket, size, "%s/systemd/private", runtime) >= (int)size)
        return false;
    struct stat st;
    return stat(ret_socket, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

static void scope_free(struct scope *scope)
{
    if (!scope)
        return;
    if (scope->bus)
        (void)scope->sd_bus_flush_close_unref(scope->bus);
    dl_close(scope->library);
    free(scope);
}

static inline void cleanup_scope(struct scope **scope)
{
    scope_free(*scope);
}

void scope_close(struct cgroup *cgroup)
{
    scope_free(take_ptr(cgroup->bus));
}

static int load(struct scope *scope, struct cause cause)
{
#define ROW(name) {#name, &scope->name},
    const struct dl_symbol symbols[] = {FUNCTIONS(ROW)};
    struct hutch_error err = {0};
    int r = dl_open("libsystemd.so.0", "libsystemd0", symbols, ARRAY_LEN(symbols),
                    HUTCH_STAGE_CGROUP, &scope->library, &err);
    if (r < 0)
        cause_set(cause, "%s", err.message);
    return r;
}

/* How deep in pid namespaces a process is: the numbers that it has. */
static int pid_depth(const char *status_path)
{
    char text[4096];
    int r = file_read(AT_FDCWD, status_path, text, sizeof(text)), depth = 0;
    const char *line = r < 0 ? NULL : strstr(text, "\nNSpid:");
    for (const char *c = line ? line + 1 : ""; *c && *c != '\n'; c++)
        depth += *c == '\t';
    return r < 0 ? r : depth;
}

bool scope_peer_counts_as_we_do(int socket_fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    /* 0: it is in no pid namespace that can be seen from ours. Else it is in ours or in one below,
     * which is deeper. (/proc/PID/ns may not be looked at: a manager may have capabilities.) */
    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return false;
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", peer.pid);
    int its = pid_depth(path);
    return its >= 0 && its == pid_depth("/proc/self/status");
}

static int connect_manager(struct scope *scope)
{
    char socket[200], address[240];
    if (!scope_possible(socket, sizeof(socket)))
        return -ENOENT;
    (void)snprintf(address, sizeof(address), "unix:path=%s", socket);
    int r = scope->sd_bus_new(&scope->bus);
    if (r >= 0)
        r = scope->sd_bus_set_address(scope->bus, address);
    if (r >= 0)
        r = scope->sd_bus_set_method_call_timeout(scope->bus, BUS_TIMEOUT_USEC);
    return r >= 0 ? scope->sd_bus_start(scope->bus) : r;
}

static int scope_open(struct scope **ret_scope, struct cause cause)
{
    _cleanup_(cleanup_scope) struct scope *scope = calloc(1, sizeof(*scope));
    if (!scope)
        return -ENOMEM;
    int r = load(scope, cause);
    if (r >= 0)
        r = connect_manager(scope);
    if (r < 0) {
        cause_set(cause, "the user's systemd doesn't answer (%s): systemctl --user status",
                  error_text(-r));
        return r;
    }
    *ret_scope = take_ptr(scope);
    return 0;
}

static int unit_delegated(const struct scope *scope, const char *unit, sd_bus_message **reply)
{
    const char *path, *interface = MANAGER ".Service";
    int delegated = 0;
    size_t len = strlen(unit);
    if (len > 6 && strcmp(unit + len - 6, ".scope") == 0)
        interface = MANAGER ".Scope";
    int r = scope->sd_bus_call_method(scope->bus, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
                                      "GetUnit", NULL, reply, "s", unit);
    if (r >= 0)
        r = scope->sd_bus_message_read(*reply, "o", &path);
    if (r >= 0)
        r = scope->sd_bus_get_property_trivial(scope->bus, MANAGER, path, interface, "Delegate",
                                               NULL, 'b', &delegated);
    return r < 0 ? r : delegated;
}

bool scope_unit_delegated(const char *unit)
{
    _cleanup_(cleanup_scope) struct scope *scope = NULL;
    if (scope_open(&scope, (struct cause){NULL, 0}) < 0)
        return false;
    sd_bus_message *reply = NULL;
    int r = unit_delegated(scope, unit, &reply);
    (void)scope->sd_bus_message_unref(reply);
    return r > 0 && scope_peer_counts_as_we_do(scope->sd_bus_get_fd(scope->bus));
}

/* Asks for the manager's own directory and reads what it was given. */
static int manager_controllers(struct scope *scope, unsigned *ret_controllers)
{
    _cleanup_free_ char *path = NULL;
    int r = scope->sd_bus_get_property_string(scope->bus, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
                                              "ControlGroup", NULL, &path);
    struct cgroup_self self;
    struct cgroup_mount mount;
    char seen[CGROUP_PATH_TEXT];
    if (r >= 0)
        r = cgroup_locate(0, &self, &mount);
    if (r >= 0)
        r = cgroup_mount_path(&mount, path, seen);
    _cleanup_close_ int fd = r >= 0 ? directory_open(AT_FDCWD, seen) : r;
    return fd < 0 ? fd : file_controllers(fd, "cgroup.controllers", ret_controllers);
}

int scope_connect(struct cgroup *cgroup, struct cause cause)
{
    struct scope *scope = NULL;
    if (scope_open(&scope, cause) < 0)
        return 1;
    cgroup->bus = scope;
    unsigned given = 0;
    int r = manager_controllers(scope, &given);
    if (r < 0) {
        cause_set(cause, "the cgroup of the user's systemd can't be seen from here: %s",
                  error_text(-r));
        return 1;
    }
    /* Only now, when it has answered, is the peer known for certain. */
    if (!scope_peer_counts_as_we_do(scope->sd_bus_get_fd(scope->bus))) {
        cause_set(cause, "the user's systemd is in another pid namespace, where the box's process "
                         "has another number: start hutch outside of this one");
        return 1;
    }
    cgroup->controllers = cgroup->wanted & given;
    char names[32];
    if (cgroup->wanted & ~given)
        cause_set(cause,
                  "the controllers %s are not delegated to the user's systemd: name them in "
                  "Delegate= in a drop-in of user@.service",
                  controllers_text(cgroup->wanted & ~given, names));
    return cgroup->wanted && !cgroup->controllers ? 1 : 0;
}

static long long now_usec(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* 1: our job has ended well; negative: it failed. 0: the message is about something else. */
static int job_result(const struct scope *scope, sd_bus_message *message, const char *job)
{
    const char *path, *unit, *result;
    unsigned id;
    if (scope->sd_bus_message_is_signal(message, MANAGER_INTERFACE, "JobRemoved") <= 0)
        return 0;
    int r = scope->sd_bus_message_read(message, "uoss", &id, &path, &unit, &result);
    if (r < 0 || strcmp(path, job) != 0)
        return r < 0 ? r : 0;
    return strcmp(result, "done") == 0 ? 1 : -ECANCELED;
}

static int wait_job(const struct scope *scope, const char *job)
{
    long long deadline = now_usec() + BUS_TIMEOUT_USEC;
    for (;;) {
        sd_bus_message *message = NULL;
        int r = scope->sd_bus_process(scope->bus, &message);
        int result = r > 0 && message ? job_result(scope, message, job) : 0;
        (void)scope->sd_bus_message_unref(message);
        if (r < 0 || result != 0)
            return r < 0 ? r : result < 0 ? result : 0;
        long long left = deadline - now_usec();
        if (left <= 0)
            return -ETIMEDOUT;
        if (r == 0)
            r = scope->sd_bus_wait(scope->bus, (uint64_t)left);
        if (r < 0 && r != -EINTR)
            return r;
    }
}

static int call_start(const struct scope *scope, const char *unit, pid_t pid, pid_t keeper,
                      sd_bus_message **ret_reply, sd_bus_error *error)
{
    sd_bus_message *message = NULL;
    int r = scope->sd_bus_message_new_method_call(scope->bus, &message, MANAGER, MANAGER_PATH,
                                                  MANAGER_INTERFACE, "StartTransientUnit");
    if (r >= 0)
        r = scope->sd_bus_message_append(message, "ssa(sv)a(sa(sv))", unit, "fail", 4,
                                         "Description", "s", "A box of hutch", "Delegate", "b", 1,
                                         "CollectMode", "s", "inactive-or-failed", "PIDs", "au", 2,
                                         (uint32_t)pid, (uint32_t)keeper, 0);
    if (r >= 0)
        r = scope->sd_bus_call(scope->bus, message, 0, error, ret_reply);
    (void)scope->sd_bus_message_unref(message);
    return r;
}

static int start_scope(const struct scope *scope, const char *unit, pid_t pid, pid_t keeper,
                       struct hutch_error *err)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *job = NULL;
    int r = call_start(scope, unit, pid, keeper, &reply, &error);
    if (r >= 0)
        r = scope->sd_bus_message_read(reply, "o", &job);
    if (r >= 0)
        r = wait_job(scope, job);
    if (r < 0)
        r = error_set(err, HUTCH_STAGE_CGROUP, r, "have the user's systemd make %s: %s", unit,
                      error.message ? error.message : error_text(-r));
    (void)scope->sd_bus_message_unref(reply);
    scope->sd_bus_error_free(&error);
    return r < 0 ? r : 0;
}

/* Opens the scope's directory, where the process is now. */
static int open_scope(struct cgroup *cgroup, const char *unit, pid_t pid)
{
    struct cgroup_self self;
    struct cgroup_mount mount;
    char path[CGROUP_PATH_TEXT];
    int r = cgroup_locate(pid, &self, &mount);
    if (r == 0)
        r = cgroup_mount_path(&mount, self.path, path);
    if (r < 0)
        return r;
    const char *name = strrchr(path, '/');
    if (!name || strcmp(name + 1, unit) != 0)
        return -ESTALE;
    (void)snprintf(cgroup->path, sizeof(cgroup->path), "%.4000s/%s", path, cgroup->name);
    cgroup->place_fd = directory_open(AT_FDCWD, path);
    return cgroup->place_fd < 0 ? cgroup->place_fd : 0;
}

static int move_one(int dir_fd, pid_t pid)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", pid);
    return file_write(dir_fd, "cgroup.procs", text);
}

static int make_child(int parent_fd, const char *name, pid_t pid, int *ret_fd)
{
    if (mkdirat(parent_fd, name, 0755) < 0)
        return -errno;
    int fd = directory_open(parent_fd, name);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return move_one(fd, pid);
}

/* From the scope into two leaves: only a scope without processes of its own can give its
 * children controllers. */
static int fill_scope(struct cgroup *cgroup, pid_t pid, struct cause cause)
{
    _cleanup_close_ int host_fd = -1;
    int r = make_child(cgroup->place_fd, HOST_LEAF, cgroup->keeper.pid, &host_fd);
    if (r == 0)
        r = make_child(cgroup->place_fd, cgroup->name, pid, &cgroup->dir_fd);
    if (r == 0)
        r = kill_lock(cgroup->dir_fd, &cgroup->kill_fd);
    unsigned enabled = 0, added, wanted = cgroup->controllers;
    if (r == 0)
        r = place_enable(cgroup->place_fd, wanted, &enabled, &added);
    cgroup->controllers = enabled;
    if (r == 0)
        r = leaf_limit(cgroup, cause);
    if (r == 0)
        r = leaf_open_events(cgroup);
    /* The plan was made for these limits: less than promised is a failure. */
    return r == 0 && cgroup->controllers != wanted ? -ENOTSUP : r;
}

int scope_adopt(struct cgroup *cgroup, pid_t pid, struct hutch_error *err)
{
    const struct scope *scope = cgroup->bus;
    if (!scope)
        return error_set(err, HUTCH_STAGE_CGROUP, EBADF, "adopt into a closed scope");
    char unit[64], cause[CGROUP_CAUSE_TEXT] = "";
    (void)snprintf(unit, sizeof(unit), "%s.scope", cgroup->name);
    int r = start_scope(scope, unit, pid, cgroup->keeper.pid, err);
    if (r < 0)
        return r;
    r = open_scope(cgroup, unit, pid);
    if (r == 0)
        r = fill_scope(cgroup, pid, (struct cause){cause, sizeof(cause)});
    if (r < 0)
        return error_set(err, HUTCH_STAGE_CGROUP, r, "set the limits in %s: %s", unit,
                         cause[0] ? cause : error_text(-r));
    return 0;
}
