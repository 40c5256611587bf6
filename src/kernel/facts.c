/*
 * facts.c - what the plan has to know about this host. A handful of system calls: everything here
 * is on the way of every cold run.
 */
#include "kernel/facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/idmap.h"
#include "kernel/userns.h"

void host_facts_init(struct host_facts *facts)
{
    *facts = (struct host_facts){.facts.rootfs_host_index = -1};
    for (size_t i = 0; i < PLAN_HOST_SOURCES_MAX; i++)
        facts->sources[i] = -1;
}

void host_facts_free(struct host_facts *facts)
{
    for (size_t i = 0; i < PLAN_HOST_SOURCES_MAX; i++)
        close_fd(&facts->sources[i]);
    free(facts->facts.binds);
    facts->facts.binds = NULL;
    policy_program_free(&facts->profile);
}

static bool is_host_root(const struct hutch_request *request)
{
    return strcmp(request->rootfs, "host") == 0;
}

/* ---- the host's root ------------------------------------------------------------------------- */

static void look_at_entry(struct facts_entry *entry, const char *name)
{
    char path[24];
    ssize_t len;

    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    (void)snprintf(path, sizeof(path), "/%s", name);
    len = readlink(path, entry->target, sizeof(entry->target) - 1);
    if (len >= 0)
        entry->target[len] = '\0';
    entry->is_link = len >= 0;
    entry->present = len >= 0 || errno == EINVAL; /* EINVAL: there, but no link */
}

static void look_at_root(struct facts *facts)
{
    ssize_t len;

    for (size_t i = 0; i < PLAN_HOST_ENTRIES_LEN; i++)
        look_at_entry(&facts->entries[i], PLAN_HOST_ENTRIES[i]);
    facts->entries_len = PLAN_HOST_ENTRIES_LEN;
    for (size_t i = 0; i < PLAN_HOST_ETC_LEN; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/etc/%s", PLAN_HOST_ETC[i]);
        if (access(path, R_OK) == 0)
            facts->etc_present |= 1U << i;
    }
    len = readlink("/etc/localtime", facts->localtime, sizeof(facts->localtime) - 1);
    facts->localtime[len > 0 ? len : 0] = '\0';
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* Where each language's interpreter is looked for, on the host or in a root file system. */
static const struct {
    const char *candidates[3];
    const char *remedy;
} INTERPRETERS[LANGUAGE_COUNT] = {
    [LANGUAGE_PYTHON] = {{"/usr/bin/python3", "/usr/local/bin/python3"},
                         "install python3, or name one with --python PATH"},
    [LANGUAGE_JAVASCRIPT] = {{"/usr/bin/node", "/usr/local/bin/node", "/usr/bin/nodejs"},
                             "install nodejs"},
    [LANGUAGE_BASH] = {{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"}, "install bash"},
};

/* Only says where it is; a symlink inside a root file system may be absolute, so nothing is
 * followed here: the box itself will. */
static bool there_is(const struct hutch_request *request, const char *path)
{
    char full[FACTS_PATH_MAX];
    struct stat st;

    if (is_host_root(request))
        return access(path, X_OK) == 0;
    (void)snprintf(full, sizeof(full), "%s%s", request->rootfs, path);
    return lstat(full, &st) == 0;
}

const char *facts_interpreter(enum language language, const char **ret_remedy)
{
    *ret_remedy = INTERPRETERS[language].remedy;
    for (size_t i = 0; i < ARRAY_LEN(INTERPRETERS[language].candidates); i++) {
        const char *path = INTERPRETERS[language].candidates[i];
        if (path != NULL && access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

static void copy_path(char *to, const char *from)
{
    (void)snprintf(to, FACTS_PATH_MAX, "%s", from);
}

/* PREFIX/bin/NAME: the length of PREFIX; -1 for any other path. */
static ssize_t prefix_len(const char *path)
{
    static const char BIN[] = "/bin";
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash != NULL ? (size_t)(slash - path) : 0, bin_len = strlen(BIN);

    if (dir_len < bin_len || memcmp(slash - bin_len, BIN, bin_len) != 0)
        return -1;
    return (ssize_t)(dir_len - bin_len);
}

static bool has_library(const char *prefix)
{
    char path[FACTS_PATH_MAX + 8];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "%s/lib", prefix);
    dir = opendir(path);
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
        found = strncmp(entry->d_name, "python3", strlen("python3")) == 0;
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

/* All of a prefix is shown to the box. So it must be python's own: ~/bin/python3 must not bring
 * the home directory along, nor /tmp/bin/python3 everybody's /tmp. */
static bool is_pythons_own(const char *prefix)
{
    static const char *const SHARED[] = {"/home", "/root", "/tmp",  "/var", "/var/tmp", "/run",
                                         "/etc",  "/dev",  "/proc", "/sys", "/work"};
    char path[FACTS_PATH_MAX + 16];
    const char *home = getenv("HOME");
    size_t len = strlen(prefix);

    for (size_t i = 0; i < ARRAY_LEN(SHARED); i++)
        if (strcmp(prefix, SHARED[i]) == 0)
            return false;
    if (home != NULL && strncmp(home, prefix, len) == 0 && (home[len] == '/' || home[len] == '\0'))
        return false;
    (void)snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix);
    return access(path, F_OK) == 0 || has_library(prefix);
}

/* What of the host `path` needs: nothing where it is below /usr, which is there anyway. */
static int find_prefix(const char *path, char *ret_prefix, struct hutch_error *err)
{
    ssize_t len = prefix_len(path);

    if (len < 0 || strstr(path, "/../") != NULL)
        return error_request(err, "--python: %s is not PREFIX/bin/NAME", path);
    (void)snprintf(ret_prefix, FACTS_PATH_MAX, "%.*s", (int)len, path);
    if (strcmp(ret_prefix, "/usr") == 0 || strncmp(ret_prefix, "/usr/", 5) == 0)
        ret_prefix[0] = '\0';
    if (ret_prefix[0] != '\0' && !is_pythons_own(ret_prefix))
        return error_request(err,
                             "--python: %s holds more than python, and the box would see all of "
                             "it: make a venv (python3 -m venv DIR) and name its bin/python3",
                             ret_prefix);
    return 0;
}

static int add_prefix(struct facts *facts, const char *path, struct hutch_error *err)
{
    char prefix[FACTS_PATH_MAX];
    size_t i = 0;
    int r = find_prefix(path, prefix, err);

    if (r < 0 || prefix[0] == '\0')
        return r;
    while (i < FACTS_PREFIXES && facts->prefixes[i][0] != '\0') {
        if (strcmp(facts->prefixes[i], prefix) == 0)
            return 0;
        i++;
    }
    if (i == FACTS_PREFIXES)
        return error_request(err, "--python: %s: more than %d links lead to it; name the last",
                             path, FACTS_PREFIXES);
    copy_path(facts->prefixes[i], prefix);
    return 0;
}

/* The text of the link at `path`, as a path of its own; false if it is no link. */
static bool follow_once(char *path)
{
    char target[FACTS_PATH_MAX];
    char *slash = strrchr(path, '/');
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    size_t dir_len;

    if (len <= 0 || slash == NULL)
        return false;
    target[len] = '\0';
    dir_len = target[0] == '/' ? 0 : (size_t)(slash + 1 - path);
    if (dir_len + (size_t)len >= FACTS_PATH_MAX)
        return false;
    memcpy(path + dir_len, target, (size_t)len + 1);
    return true;
}

/* --python: a venv's python is a link to the one that it was made from, perhaps through a
 * directory that is a link itself, and finds its library by the names on the way: so the prefix of
 * every name is needed, each at its own place. It must be started by its own name to find the
 * venv; a link that is in no bin directory has nothing of its own to find. */
static int named_python(const struct hutch_request *request, struct facts *facts,
                        struct hutch_error *err)
{
    _cleanup_free_ char *real = NULL;
    char path[FACTS_PATH_MAX];
    int r;

    copy_path(facts->interpreter, request->python);
    if (!is_host_root(request))
        return 0; /* a path in the root file system */
    real = realpath(request->python, NULL);
    if (real == NULL || access(request->python, X_OK) < 0)
        return error_request(err, "--python: %s: %s", request->python, error_text(errno));
    if (prefix_len(request->python) < 0)
        copy_path(facts->interpreter, real);
    copy_path(path, facts->interpreter);
    do
        r = add_prefix(facts, path, err);
    while (r == 0 && follow_once(path));
    return r == 0 ? add_prefix(facts, real, err) : r;
}

static int find_interpreter(const struct hutch_request *request, enum plan_purpose purpose,
                            struct facts *facts, struct hutch_error *err)
{
    enum language language = purpose == PLAN_RUN ? request->language : LANGUAGE_PYTHON;

    if (language == LANGUAGE_NONE)
        return 0;
    if (language == LANGUAGE_PYTHON && request->python != NULL)
        return named_python(request, facts, err);
    for (size_t i = 0; i < 3; i++) {
        const char *path = INTERPRETERS[language].candidates[i];
        if (path != NULL && there_is(request, path)) {
            copy_path(facts->interpreter, path);
            return 0;
        }
    }
    return error_set(err, HUTCH_STAGE_HOST, ENOENT, "no interpreter for %s in %s: %s",
                     language_info(language)->name,
                     is_host_root(request) ? "/usr" : request->rootfs,
                     INTERPRETERS[language].remedy);
}

/* ---- directories of the caller's ------------------------------------------------------------- */

static int add_idmapped(struct host_facts *host, int source_fd, const struct stat *st,
                        const char *path, int *ret_index, struct hutch_error *err)
{
    uint32_t index = host->facts.host_sources;
    int r;

    if (index >= PLAN_HOST_SOURCES_MAX)
        return error_request(err, "--bind: more than %u directories", PLAN_HOST_SOURCES_MAX);
    r = idmap_mount(source_fd, st, path, host->facts.host_id, &host->sources[index], err);
    if (r < 0)
        return r;
    host->facts.host_sources++;
    *ret_index = (int)index;
    return 0;
}

/* Writable for the box means: its own user owns it there. Root mode maps the owner; a plain
 * caller can only hand on what is the caller's own. The fd that is looked at is the one that is
 * mounted. */
static int make_own(struct host_facts *host, const char *option, const char *path,
                    struct stat *ret_st, int *ret_index, struct hutch_error *err)
{
    _cleanup_close_ int fd = -1;
    int r = idmap_open(option, path, &fd, ret_st, err);

    if (r < 0)
        return r;
    if (!S_ISDIR(ret_st->st_mode) && !S_ISREG(ret_st->st_mode))
        return error_request(err, "%s: %s is neither a file nor a directory", option, path);
    if (host->facts.mode == PLAN_MODE_ROOT)
        return add_idmapped(host, fd, ret_st, path, ret_index, err);
    if (ret_st->st_uid != host->facts.euid)
        return error_request(err,
                             "%s: %s belongs to user %u, and without root only your own "
                             "directories can be the box's: copy it, or use --ro-bind",
                             option, path, ret_st->st_uid);
    return 0;
}

/* What the host's root file system shows is read-only: a place to mount on can't be made there,
 * so it must exist, and must be named by its own path. */
static int check_target(const struct facts *facts, const struct bind *bind, struct hutch_error *err)
{
    const char *option = bind->writable ? "--bind" : "--ro-bind";
    const size_t first = strcspn(bind->target + 1, "/");

    for (size_t i = 0; i < facts->entries_len; i++) {
        const struct facts_entry *entry = &facts->entries[i];
        if (!entry->present || strlen(entry->name) != first ||
            memcmp(entry->name, bind->target + 1, first) != 0)
            continue;
        if (entry->is_link)
            return error_request(err, "%s: %s lies behind the link /%s: name the place itself",
                                 option, bind->target, entry->name);
        if (access(bind->target, F_OK) < 0)
            return error_request(err,
                                 "%s: there is no %s to mount on, and /%s is the host's: use a "
                                 "place of the box's own, such as /data",
                                 option, bind->target, entry->name);
    }
    return 0;
}

static int look_at_bind(const struct hutch_request *request, size_t i, struct host_facts *host,
                        struct hutch_error *err)
{
    const struct bind *bind = &request->binds[i];
    struct facts_bind *fact = &host->facts.binds[i];
    struct stat st;
    int r;

    fact->host_index = -1;
    r = check_target(&host->facts, bind, err);
    if (r == 0 && bind->writable)
        r = make_own(host, "--bind", bind->source, &st, &fact->host_index, err);
    else if (r == 0 && stat(bind->source, &st) < 0)
        r = error_request(err, "--ro-bind: %s: %s", bind->source, error_text(errno));
    else if (r == 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        r = error_request(err, "--ro-bind: %s is neither a file nor a directory", bind->source);
    fact->is_dir = r == 0 && S_ISDIR(st.st_mode);
    return r;
}

static int look_at_binds(const struct hutch_request *request, struct host_facts *host,
                         struct hutch_error *err)
{
    if (request->binds_len == 0)
        return 0;
    host->facts.binds = calloc(request->binds_len, sizeof(*host->facts.binds));
    if (host->facts.binds == NULL)
        return error_oom(err, HUTCH_STAGE_HOST);
    for (size_t i = 0; i < request->binds_len; i++) {
        int r = look_at_bind(request, i, host, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int look_at_rootfs(const struct hutch_request *request, struct host_facts *host,
                          struct hutch_error *err)
{
    struct stat st;
    int r;

    if (is_host_root(request)) {
        look_at_root(&host->facts);
        return 0;
    }
    r = make_own(host, "--rootfs", request->rootfs, &st, &host->facts.rootfs_host_index, err);
    if (r == 0 && !S_ISDIR(st.st_mode))
        r = error_request(err, "--rootfs: %s is not a directory", request->rootfs);
    return r;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void look_at_cpus(struct facts *facts)
{
    if (sched_getaffinity(0, sizeof(facts->cpu_mask), (cpu_set_t *)(void *)facts->cpu_mask) < 0)
        facts->cpu_mask[0] = 1; /* more CPUs than the mask has bits: one of them is always there */
    for (size_t i = 0; i < FACTS_CPU_WORDS; i++)
        facts->cpus += (unsigned)__builtin_popcountll(facts->cpu_mask[i]);
}

/* How the kernel hands crashes on: '|' to a program, '@' to a socket, else to a file. */
static char core_handler(void)
{
    _cleanup_close_ int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    char first = '\0';

    return fd >= 0 && read(fd, &first, 1) == 1 ? first : '\0';
}

/* A hard limit of 0 can't be set to the 1 that keeps a piped core handler from running as the
 * host's root (core(5)): then there must be no such handler. */
static int look_at_core(struct facts *facts, struct hutch_error *err)
{
    const char handler = core_handler();
    struct rlimit limit;

    facts->core_socket = handler == '@';
    if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_max != 0)
        return 0;
    facts->core_fixed_at_zero = true;
    if (handler == '|')
        return error_set(err, HUTCH_STAGE_HOST, EPERM,
                         "the hard limit of core files is 0 here and kernel.core_pattern is a "
                         "pipe: a crash in a box would start that handler as root; raise the hard "
                         "limit to 1 or more (ulimit -H -c 1) or unset the pipe");
    return 0;
}

/* True if the filter has an answer that ends or signals the caller. */
static bool filter_kills(const struct policy_program *profile)
{
    for (unsigned i = 0; i < profile->len; i++) {
        const struct sock_filter *insn = &profile->insns[i];
        const uint32_t action = insn->k & SECCOMP_RET_ACTION_FULL;
        if (insn->code == (BPF_RET | BPF_K) &&
            (action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
             action == SECCOMP_RET_TRAP))
            return true;
    }
    return false;
}

int facts_load_profile(const struct hutch_request *request, struct host_facts *host,
                       struct hutch_error *err)
{
    struct policy_program init = policy_init_program();
    const char *name = request->policy != NULL ? request->policy : request_default_policy(request);
    int r = policy_load(name, !host->facts.cgroup_memory, &host->profile, err);

    if (r < 0)
        return r;
    host->facts.seccomp = host->profile.insns;
    host->facts.seccomp_len = host->profile.len;
    host->facts.init_seccomp = init.insns;
    host->facts.init_seccomp_len = init.len;
    host->facts.exec_by_fd = policy_exec_by_fd(name);
    host->facts.seccomp_kills = filter_kills(&host->profile);
    return 0;
}

int facts_gather(const struct hutch_request *request, enum plan_purpose purpose,
                 struct host_facts *host, struct hutch_error *err)
{
    int r = userns_choose(request->host_ids, &host->facts, err);

    if (r == 0)
        r = look_at_core(&host->facts, err);
    if (r == 0)
        r = look_at_rootfs(request, host, err);
    if (r == 0)
        r = find_interpreter(request, purpose, &host->facts, err);
    if (r == 0)
        r = look_at_binds(request, host, err);
    if (r < 0)
        return r;
    look_at_cpus(&host->facts);
    host->facts.layers = LAYER_ALL & ~(LAYER_BIT(LAYER_CGROUP) | LAYER_BIT(LAYER_MEMORY) |
                                       LAYER_BIT(LAYER_PIDS) | LAYER_BIT(LAYER_CPU));
    return 0;
}
