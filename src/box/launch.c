/*
 * launch.c - from a checked request to a box that has its go-ahead.
 *
 * The host's part, in order: facts; the cgroup with its limits; the profile; the plan, sealed in
 * a memfd; the program's pipes; one clone; the id maps; the go-ahead. Every fd is close-on-exec
 * from birth, and the child gets the few it needs at fixed numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "box/run.h"
#include "kernel/spawn.h"
#include "kernel/userns.h"
#include "plan/steps.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

extern const char init_blob_start[], init_blob_end[];

/* ---- sealed memory files --------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Sealed: what the box executes or reads can never be changed, through /proc/1/exe or otherwise
 * (CVE-2019-5736). MFD_EXEC is refused by kernels before 6.3, which don't need it. */
static int sealed_memfd(const char *name, unsigned flags, const void *data, size_t len, int *ret_fd,
                        struct hutch_error *err)
{
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    int r;

    if (fd < 0 && errno == EINVAL && flags != 0)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make a memory file for %s", name);
    r = write_all(fd, data, len);
    if (r == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    if (r < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, r, "fill the memory file for %s", name);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- what the child gets --------------------------------------------------------------------- */

/* The child's ends; closed on the host once the child has them. */
struct child_fds {
    int fds[SPAWN_FDS_MAX];
    unsigned len;
    int exe;
};

static void child_fds_close(struct child_fds *c)
{
    for (unsigned i = 0; i < PLAN_FD_SOURCES; i++)
        close_fd(&c->fds[i]);
    close_fd(&c->exe);
}

/* A pipe whose one end is ours and non-blocking. */
static int make_pipe(int *ret_ours, int *ret_child, bool ours_reads, struct hutch_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make a pipe for the program");
    *ret_ours = ends[ours_reads ? 0 : 1];
    *ret_child = ends[ours_reads ? 1 : 0];
    if (fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make a pipe non-blocking");
    return 0;
}

static int make_channels(struct hutch_run *run, struct child_fds *c, struct hutch_error *err)
{
    int pair[2];
    int r = make_pipe(&run->stdin_fd, &c->fds[PLAN_FD_STDIN], false, err);

    if (r == 0)
        r = make_pipe(&run->outputs[0].fd, &c->fds[PLAN_FD_STDOUT], true, err);
    if (r == 0)
        r = make_pipe(&run->outputs[1].fd, &c->fds[PLAN_FD_STDERR], true, err);
    if (r == 0 && run->purpose != PLAN_RUN)
        r = make_pipe(&run->result_fd, &c->fds[PLAN_FD_RESULT], true, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make the control socket");
    run->control_fd = pair[0];
    c->fds[PLAN_FD_CONTROL] = pair[1];
    if (fcntl(run->control_fd, F_SETFL, O_NONBLOCK) < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make the control socket non-blocking");
    c->fds[PLAN_FD_HOST] = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (c->fds[PLAN_FD_HOST] < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "open a pidfd of this process");
    return 0;
}

static int make_plan_fds(struct hutch_run *run, struct child_fds *c, struct hutch_error *err)
{
    _cleanup_buf_ struct buf block = BUF(0);
    int r = plan_build(run->request, run->purpose, &run->host.facts, &block, err);

    if (r == 0)
        r = sealed_memfd("hutch-plan", 0, block.data, block.len, &c->fds[PLAN_FD_PLAN], err);
    if (r == 0)
        r = sealed_memfd("hutch-init", MFD_EXEC, init_blob_start,
                         (size_t)(init_blob_end - init_blob_start), &c->exe, err);
    for (uint32_t i = 0; i < run->host.facts.host_sources; i++)
        c->fds[PLAN_FD_SOURCES + i] = run->host.sources[i];
    c->len = PLAN_FD_SOURCES + run->host.facts.host_sources;
    return r;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The layers that only a cgroup gives. A wall that was asked for and can't be had refuses. */
static int check_required(const struct hutch_request *request, const struct facts *f,
                          const char *cause, struct hutch_error *err)
{
    layer_mask required = request->require & ~request->allow_missing;
    const struct {
        enum layer layer;
        bool there;
    } layers[] = {{LAYER_CGROUP, f->cgroup_memory || f->cgroup_pids || f->cgroup_cpu},
                  {LAYER_MEMORY, f->cgroup_memory},
                  {LAYER_PIDS, f->cgroup_pids},
                  {LAYER_CPU, f->cgroup_cpu}};

    for (size_t i = 0; i < ARRAY_LEN(layers); i++)
        if ((required & LAYER_BIT(layers[i].layer)) != 0 && !layers[i].there)
            return error_set(err, HUTCH_STAGE_CGROUP, EOPNOTSUPP,
                             "--require %s: no cgroup keeps it here: %s",
                             layer_name(layers[i].layer), cause);
    return 0;
}

static void note_controllers(struct facts *f, unsigned controllers)
{
    f->cgroup_memory = (controllers & CGROUP_MEMORY) != 0;
    f->cgroup_pids = (controllers & CGROUP_PIDS) != 0;
    f->cgroup_cpu = (controllers & CGROUP_CPU) != 0;
}

static int make_cgroup(struct hutch_run *run, struct hutch_error *err)
{
    const struct limits *l = &run->request->limits;
    const struct cgroup_limits limits = {
        .memory_bytes = l->memory_bytes,
        .pids = l->pids + 1, /* init */
        .cpus_milli = l->cpus_milli,
    };
    int r = cgroup_create(NULL, &limits, CGROUP_ALL, &run->cgroup, run->cgroup_cause,
                          sizeof(run->cgroup_cause), err);

    if (r < 0)
        return r;
    note_controllers(&run->host.facts, r == 0 ? run->cgroup.controllers : 0);
    return check_required(run->request, &run->host.facts, run->cgroup_cause, err);
}

/* ---- the box --------------------------------------------------------------------------------- */

static const struct {
    enum layer layer;
    uint64_t flag;
} NAMESPACES[] = {
    {LAYER_USER_NS, CLONE_NEWUSER}, {LAYER_PID_NS, CLONE_NEWPID}, {LAYER_MOUNT_NS, CLONE_NEWNS},
    {LAYER_NET_NS, CLONE_NEWNET},   {LAYER_IPC_NS, CLONE_NEWIPC}, {LAYER_UTS_NS, CLONE_NEWUTS},
};

static uint64_t namespace_flags(layer_mask layers)
{
    uint64_t flags = 0;

    for (size_t i = 0; i < ARRAY_LEN(NAMESPACES); i++)
        if (layers & LAYER_BIT(NAMESPACES[i].layer))
            flags |= NAMESPACES[i].flag;
    return flags;
}

static int move_into_cgroup(const struct hutch_run *run, struct hutch_error *err)
{
    _cleanup_close_ int fd = openat(run->cgroup.dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", (int)run->pid);

    if (fd < 0 || write(fd, text, (size_t)len) != len)
        return error_errno(err, HUTCH_STAGE_CGROUP, errno ? errno : EIO,
                           "move the box into its cgroup %s", run->cgroup.path);
    return 0;
}

/* The keeper is a second init that never gets its go-ahead: it leaves at the end of file on its
 * control socket, or with the host. The user namespace is there for the sake of what it must not
 * be able to do. */
static int spawn_keeper(const struct spawn *like, struct cgroup_keeper *ret_keeper,
                        struct hutch_error *err)
{
    struct spawn spawn = {
        .namespaces = CLONE_NEWUSER,
        .cgroup_fd = -1,
        .exe_fd = like->exe_fd,
        .fds_len = PLAN_FD_HOST + 1,
    };
    int in_cgroup, pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "make a socket pair");
    for (unsigned i = 0; i < spawn.fds_len; i++)
        spawn.fds[i] = -1;
    spawn.fds[PLAN_FD_PLAN] = like->fds[PLAN_FD_PLAN];
    spawn.fds[PLAN_FD_CONTROL] = pair[1];
    spawn.fds[PLAN_FD_HOST] = like->fds[PLAN_FD_HOST];
    int r = spawn_init(&spawn, &ret_keeper->pid, &ret_keeper->pidfd, &in_cgroup, err);

    (void)close(pair[1]);
    if (r < 0)
        (void)close(pair[0]);
    else
        ret_keeper->hold_fd = pair[0];
    return r;
}

/* A user's systemd takes in only what already runs. */
static int enter_scope(struct hutch_run *run, const struct spawn *spawn, struct hutch_error *err)
{
    struct cgroup_keeper keeper = {.pidfd = -1, .hold_fd = -1};
    int r = spawn_keeper(spawn, &keeper, err);

    return r < 0 ? r : cgroup_adopt(&run->cgroup, run->pid, &keeper, err);
}

static int spawn(struct hutch_run *run, const struct child_fds *c, struct hutch_error *err)
{
    struct spawn spawn = {
        .namespaces = namespace_flags(run->host.facts.layers),
        .cgroup_fd = run->cgroup.deferred ? -1 : run->cgroup.dir_fd,
        .exe_fd = c->exe,
        .fds_len = c->len,
    };
    int in_cgroup = 0;
    int r;

    memcpy(spawn.fds, c->fds, sizeof(spawn.fds));
    r = spawn_init(&spawn, &run->pid, &run->pidfd, &in_cgroup, err);
    if (r < 0)
        return r;
    if (run->cgroup.deferred)
        return enter_scope(run, &spawn, err);
    return run->cgroup.dir_fd >= 0 && !in_cgroup ? move_into_cgroup(run, err) : 0;
}

static int build_and_spawn(struct hutch_run *run, struct child_fds *c, struct hutch_error *err)
{
    int r = make_plan_fds(run, c, err);

    return r == 0 ? spawn(run, c, err) : r;
}

/* What the kernel answers where it has, or gives, no such namespace. Every other error is about
 * something else, and no reason to run with less. */
static bool is_refused(int error)
{
    return error == -EPERM || error == -EINVAL || error == -ENOSPC;
}

static int try_without(struct hutch_run *run, struct child_fds *c, layer_mask without,
                       struct hutch_error *err)
{
    const layer_mask before = run->host.facts.layers;
    int r;

    if ((before & without) != without)
        return -EPERM;
    close_fd(&c->fds[PLAN_FD_PLAN]);
    close_fd(&c->exe);
    run->host.facts.layers = before & ~without;
    r = build_and_spawn(run, c, err);
    if (r < 0)
        run->host.facts.layers = before;
    return r;
}

/* A namespace that --allow-missing lets go is tried first, and left out if the kernel refuses: one
 * at a time before all of them, the network last. The plan is another one then. */
static int spawn_or_without(struct hutch_run *run, struct child_fds *c, struct hutch_error *err)
{
    static const layer_mask UTS = LAYER_BIT(LAYER_UTS_NS), IPC = LAYER_BIT(LAYER_IPC_NS),
                            NET = LAYER_BIT(LAYER_NET_NS);
    const layer_mask choices[] = {UTS, IPC, UTS | IPC, NET, NET | UTS, NET | IPC, NET | UTS | IPC};
    struct hutch_error first = {0}, other;
    int r = build_and_spawn(run, c, &first);

    for (size_t i = 0; i < ARRAY_LEN(choices) && is_refused(r) && run->pid == 0; i++)
        if ((choices[i] & ~run->request->allow_missing) == 0)
            r = try_without(run, c, choices[i], &other);
    if (r == 0)
        (void)snprintf(run->namespace_cause, sizeof(run->namespace_cause), "%s", first.message);
    else if (err != NULL)
        *err = first;
    return r < 0 ? first.code : 0;
}

/* Pipes belong to whoever made them; in root mode that is not the box's user, who must be able to
 * open /dev/stdout and /dev/stderr again. */
static int give_pipes(const struct hutch_run *run, const struct child_fds *c,
                      struct hutch_error *err)
{
    const uid_t id = run->host.facts.host_id;

    if (run->host.facts.mode != PLAN_MODE_ROOT)
        return 0;
    for (int fd = PLAN_FD_STDIN; fd <= PLAN_FD_RESULT; fd++)
        if (c->fds[fd] >= 0 && fchown(c->fds[fd], id, id) < 0)
            return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "give the program its pipes");
    return 0;
}

/* Written from here, with the host's rights, the value is one that the box can't lower again. */
static int fix_oom_score(const struct hutch_run *run, struct hutch_error *err)
{
    _cleanup_close_ int fd = -1;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)run->pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1000", 4) != 4)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "write %s", path);
    return 0;
}

static int give_go(struct hutch_run *run, struct hutch_error *err)
{
    int r = 0;

    if (run->host.facts.mode == PLAN_MODE_ROOT) {
        r = userns_write_maps(run->pid, 1000, run->host.facts.host_id, err);
        if (r == 0)
            r = fix_oom_score(run, err);
    }
    if (r < 0)
        return r;
    if (send(run->control_fd, "", 1, MSG_NOSIGNAL) != 1)
        return error_errno(err, HUTCH_STAGE_LAUNCH, errno, "give init its go-ahead");
    return 0;
}

#ifdef HUTCH_TESTING
static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; *at != '\0'; at += *at == ',') {
        size_t word = strcspn(at, ",");
        if (word == len && memcmp(at, name, len) == 0)
            return true;
        at += word;
    }
    return false;
}
#endif

/* The test build's switches (tests/escape): steps to leave out, the set-up call to fail. */
static void read_test_switches(struct facts *facts)
{
#ifdef HUTCH_TESTING
    const char *skip = getenv("HUTCH_TEST_SKIP"), *fault = getenv("HUTCH_TEST_FAULT");

    for (unsigned i = 0; skip != NULL && i < PLAN_STEP_read_plan; i++)
        if (listed(skip, plan_step_name(i)))
            facts->skip_steps |= 1ULL << i;
    if (fault != NULL)
        facts->fault_call = (uint32_t)strtoul(fault, NULL, 10);
#else
    (void)facts;
#endif
}

static int launch(struct hutch_run *run, struct child_fds *c, struct hutch_error *err)
{
    int r = facts_gather(run->request, run->purpose, &run->host, err);

    read_test_switches(&run->host.facts);
    if (r == 0)
        r = make_cgroup(run, err);
    if (r == 0)
        r = facts_load_profile(run->request, &run->host, err);
    if (r == 0)
        r = make_channels(run, c, err);
    if (r == 0)
        r = give_pipes(run, c, err);
    if (r == 0)
        r = spawn_or_without(run, c, err);
    return r == 0 ? give_go(run, err) : r;
}

int run_launch(struct hutch_run *run, struct hutch_error *err)
{
    struct child_fds c = {.exe = -1};
    int r;

    for (unsigned i = 0; i < SPAWN_FDS_MAX; i++)
        c.fds[i] = -1;
    r = launch(run, &c, err);
    child_fds_close(&c);
    for (size_t i = 0; i < PLAN_HOST_SOURCES_MAX; i++)
        close_fd(&run->host.sources[i]);
    return r;
}

int run_prepare_plan(const struct hutch_request *request, enum plan_purpose purpose,
                     struct host_facts *host, struct buf *ret_block, struct hutch_error *err)
{
    _cleanup_cgroup_place_ struct cgroup_place place = CGROUP_PLACE;
    char cause[CGROUP_CAUSE_TEXT];
    int r = facts_gather(request, purpose, host, err);

    if (r == 0)
        r = cgroup_find(CGROUP_ALL, &place, cause, sizeof(cause), err);
    if (r < 0)
        return r;
    note_controllers(&host->facts, place.controllers);
    r = check_required(request, &host->facts, cause, err);
    if (r < 0)
        return r;
    r = facts_load_profile(request, host, err);
    return r < 0 ? r : plan_build(request, purpose, &host->facts, ret_block, err);
}
