/*
 * probe_explain.c - from what was observed to what is in the way: pure, and every cause at once.
 *
 * A cause that hides others (without user namespaces nothing else can be tried) must not keep them
 * from being named: settings that would stop the next step are findings of their own.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe.h"

/* ---- the list -------------------------------------------------------------------------------- */

struct finding *findings_add(struct findings *findings, const char *id, const char *layer,
                             enum finding_severity severity)
{
    struct finding *finding = &findings->items[findings->len];

    for (size_t i = 0; i < findings->len; i++)
        if (strcmp(findings->items[i].id, id) == 0 && strcmp(findings->items[i].layer, layer) == 0)
            return NULL;
    if (findings->len == FINDINGS_MAX)
        return NULL;
    findings->len++;
    *finding = (struct finding){.id = id, .layer = layer, .severity = severity};
    return finding;
}

bool findings_have_layer(const struct findings *findings, const char *layer)
{
    for (size_t i = 0; i < findings->len; i++)
        if (strcmp(findings->items[i].layer, layer) == 0)
            return true;
    return false;
}

size_t findings_count(const struct findings *findings, enum finding_severity severity)
{
    size_t count = 0;

    for (size_t i = 0; i < findings->len; i++)
        count += findings->items[i].severity == severity;
    return count;
}

/* What every finding of a cause has in common. */
struct kind {
    const char *id, *layer;
    enum finding_severity severity;
    const char *remedy;
};

static void __attribute__((format(printf, 3, 4)))
found(struct findings *findings, const struct kind *kind, const char *format, ...)
{
    struct finding *finding = findings_add(findings, kind->id, kind->layer, kind->severity);
    va_list args;

    if (finding == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(finding->cause, sizeof(finding->cause), format, args);
    va_end(args);
    (void)snprintf(finding->remedy, sizeof(finding->remedy), "%s", kind->remedy);
}

/* For texts that hold cause and remedy already, in this order. */
static void found_text(struct findings *findings, const struct kind *kind, const char *text,
                       const char *separator)
{
    const char *at = strstr(text, separator);
    const struct kind own = {kind->id, kind->layer, kind->severity,
                             at != NULL ? at + strlen(separator) : kind->remedy};

    found(findings, &own, "%.*s", at != NULL ? (int)(at - text) : FINDING_TEXT - 1, text);
}

/* ---- kernel and /proc ------------------------------------------------------------------------ */

static void explain_kernel(const struct probe *p, struct findings *f)
{
    static const struct kind OLD = {"kernel-old", "kernel", FINDING_BLOCKER,
                                    "run on Linux 5.15 or newer"};
    static const struct kind FILTERLESS = {"seccomp-missing", "seccomp", FINDING_BLOCKER,
                                           "run a kernel built with CONFIG_SECCOMP_FILTER"};
    static const struct kind LANDLOCK = {
        "landlock", "landlock", FINDING_WARNING,
        "boot with landlock in lsm= (CONFIG_SECURITY_LANDLOCK), and allow landlock_* in the "
        "container's seccomp profile"};

    if (p->major < 5 || (p->major == 5 && p->minor < 15))
        found(f, &OLD, "the kernel is %s, older than 5.15", p->kernel);
    if (p->seccomp_error != 0)
        found(f, &FILTERLESS, "this kernel has no system call filters (%s)",
              error_text(p->seccomp_error));
    if (p->landlock_error == EOPNOTSUPP)
        found(f, &LANDLOCK, "Landlock is in this kernel but not switched on");
    else if (p->landlock_error != 0)
        found(f, &LANDLOCK, "there is no Landlock here (%s)", error_text(p->landlock_error));
}

static void explain_proc(const struct probe *p, struct findings *f)
{
    static const struct kind MISSING = {"proc-missing", "root", FINDING_BLOCKER,
                                        "mount -t proc proc /proc"};
    static const struct kind MASKED = {
        "proc-masked", "root", FINDING_BLOCKER,
        "uncover /proc: docker run --security-opt systempaths=unconfined, podman run "
        "--security-opt unmask=ALL, Kubernetes securityContext.procMount: Unmasked; elsewhere "
        "unmount what lies over it"};
    static const struct kind READONLY = {"proc-readonly", "root", FINDING_BLOCKER,
                                         "mount /proc writable"};
    int error = p->step_errors[PROBE_STEP_PROC];

    if (!p->has_proc)
        found(f, &MISSING, "/proc isn't mounted");
    else if (error == 0)
        return;
    else if (p->proc_covers[0] != '\0')
        found(f, &MASKED,
              "/proc is masked (%.200s), and a kernel that hides parts of /proc lets nobody "
              "mount a whole one: mount proc: EPERM",
              p->proc_covers);
    else if (p->proc_readonly)
        found(f, &READONLY, "/proc is read-only here, so that a new one can't be mounted: EPERM");
}

/* ---- namespaces ------------------------------------------------------------------------------ */

/* In enum probe_ns order; the layers of the receipt. */
static const struct {
    const char *layer, *maximum_id, *id;
    const char *option; /* of the kernel's configuration */
    enum finding_severity severity;
} NS[PROBE_NS_COUNT] = {
    {"user_ns", "max-user-namespaces", "user-namespaces", "CONFIG_USER_NS", FINDING_BLOCKER},
    {"pid_ns", "max-pid-namespaces", "pid-namespaces", "CONFIG_PID_NS", FINDING_BLOCKER},
    {"mount_ns", "max-mnt-namespaces", "mnt-namespaces", "CONFIG_NAMESPACES", FINDING_BLOCKER},
    {"net_ns", "max-net-namespaces", "net-namespaces", "CONFIG_NET_NS", FINDING_BLOCKER},
    {"ipc_ns", "max-ipc-namespaces", "ipc-namespaces", "CONFIG_IPC_NS", FINDING_BLOCKER},
    {"uts_ns", "max-uts-namespaces", "uts-namespaces", "CONFIG_UTS_NS", FINDING_BLOCKER},
    {"cgroup_ns", "max-cgroup-namespaces", "cgroup-namespaces", "CONFIG_CGROUPS", FINDING_WARNING},
    {"time_ns", "max-time-namespaces", "time-namespaces", "CONFIG_TIME_NS", FINDING_WARNING},
};

static void explain_maximum(const struct probe *p, enum probe_ns ns, struct findings *f)
{
    const struct probe_ns_state *state = &p->ns[ns];
    char remedy[128];
    const struct kind kind = {NS[ns].maximum_id, NS[ns].layer, NS[ns].severity, remedy};

    (void)snprintf(remedy, sizeof(remedy), "sysctl -w user.max_%s_namespaces=10000%s",
                   probe_ns_name(ns), state->maximum == 0 ? "" : ", there or in what is around it");
    if (state->maximum == 0)
        found(f, &kind, "user.max_%s_namespaces is 0", probe_ns_name(ns));
    else if (state->error == ENOSPC || state->error == EUSERS)
        found(f, &kind,
              "user.max_%s_namespaces (%lld here) is used up, or 0 in a user namespace around "
              "this one",
              probe_ns_name(ns), (long long)state->maximum);
}

static void explain_namespace(const struct probe *p, enum probe_ns ns, struct findings *f)
{
    const struct probe_ns_state *state = &p->ns[ns];
    const struct kind lacking = {NS[ns].id, NS[ns].layer, NS[ns].severity,
                                 "run a kernel that has them"};
    const struct kind busy = {"process-limit", NS[ns].layer, FINDING_BLOCKER,
                              "raise ulimit -u, or pids.max of the cgroup around this process"};
    const struct kind other = {NS[ns].id, NS[ns].layer, NS[ns].severity,
                               "see the kernel's log (dmesg) and the audit log for what refuses "
                               "them"};

    explain_maximum(p, ns, f);
    if (state->error == 0 || state->error == PROBE_NOT_TRIED || state->filtered ||
        state->error == ENOSPC || state->error == EUSERS)
        return;
    if (state->error == EINVAL)
        found(f, &lacking, "this kernel has no %s namespaces (%s)", probe_ns_name(ns),
              NS[ns].option);
    else if (state->error == EAGAIN)
        found(f, &busy, "no process can be made: the limit of processes is reached");
    else if (ns != PROBE_NS_USER)
        found(f, &other, "%s namespaces are refused: %s", probe_ns_name(ns),
              error_text(state->error));
}

/* A filter answers for the kernel: one finding, whatever it refuses. */
static void explain_filter(const struct probe *p, struct findings *f)
{
    char names[64] = "";
    size_t len = 0;
    struct kind kind = {"container-seccomp", NULL, FINDING_BLOCKER,
                        "start the container with a seccomp profile that allows clone, unshare and "
                        "mount with namespaces (docker/podman run --security-opt "
                        "seccomp=unconfined, Kubernetes seccompProfile: Unconfined); in a systemd "
                        "unit RestrictNamespaces=no"};

    for (enum probe_ns ns = 0; ns < PROBE_NS_COUNT; ns++) {
        if (!p->ns[ns].filtered || len >= sizeof(names))
            continue;
        if (kind.layer == NULL)
            kind.layer = NS[ns].layer;
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                                probe_ns_name(ns));
    }
    if (kind.layer != NULL)
        found(f, &kind,
              "a seccomp filter on this process (a container's profile, or a unit's "
              "RestrictNamespaces=) refuses new namespaces: %s",
              names);
}

static void explain_clone3(const struct probe *p, struct findings *f)
{
    static const struct kind KIND = {
        "clone3-seccomp", "user_ns", FINDING_BLOCKER,
        "let the profile answer ENOSYS for clone3 (Docker 20.10.10 and "
        "newer do), or allow it"};

    if (p->clone3_error != 0 && p->clone3_error != ENOSYS)
        found(f, &KIND, "a seccomp filter on this process refuses clone3 (%s)",
              error_text(p->clone3_error));
}

static bool is_confined(const struct probe *p)
{
    return p->apparmor[0] != '\0' && strcmp(p->apparmor, "unconfined") != 0;
}

/* The rules of distributions against unprivileged user namespaces, which only show in a setting
 * and in a refusal. */
static bool explain_rules(const struct probe *p, struct findings *f)
{
    static const struct kind DEBIAN = {"unprivileged-userns-clone", "user_ns", FINDING_BLOCKER,
                                       "sysctl -w kernel.unprivileged_userns_clone=1"};
    static const struct kind UBUNTU = {
        "apparmor-userns", "user_ns", FINDING_BLOCKER,
        "give hutch an AppArmor profile that says `userns,`, or sysctl -w "
        "kernel.apparmor_restrict_unprivileged_userns=0"};
    bool debian = p->unprivileged_userns_clone == 0 && !p->privileged;
    bool ubuntu = p->apparmor_restrict_userns == 1 && !p->privileged && !is_confined(p);

    if (debian)
        found(f, &DEBIAN,
              "kernel.unprivileged_userns_clone is 0: only root may make user "
              "namespaces");
    if (ubuntu)
        found(f, &UBUNTU,
              "AppArmor takes every right from unconfined programs that make user namespaces "
              "(kernel.apparmor_restrict_unprivileged_userns=1, Ubuntu 23.10 and newer)");
    return debian || ubuntu;
}

static void explain_refused_userns(const struct probe *p, struct findings *f)
{
    static const struct kind CHROOT = {"chroot", "user_ns", FINDING_BLOCKER,
                                       "enter that root with pivot_root (unshare -m, bwrap, "
                                       "systemd-nspawn), or run outside the chroot"};
    static const struct kind UNMAPPED = {"unmapped-id", "user_ns", FINDING_BLOCKER,
                                         "run as a user that this user namespace maps"};
    static const struct kind OTHER = {"user-namespaces", "user_ns", FINDING_BLOCKER,
                                      "look for a security module's rule (SELinux, Tomoyo, BPF) in "
                                      "the audit log, and let hutch make user namespaces"};

    if (p->chrooted)
        found(f, &CHROOT, "this process is in a chroot, where no user namespace can be made");
    else if (p->id_unmapped)
        found(f, &UNMAPPED, "user %u isn't mapped in this user namespace", p->euid);
    else
        found(f, &OTHER, "user namespaces are refused: %s", error_text(p->ns[PROBE_NS_USER].error));
}

static void explain_userns(const struct probe *p, struct findings *f)
{
    const struct probe_ns_state *user = &p->ns[PROBE_NS_USER];
    bool powerless = (p->has_proc && p->step_errors[PROBE_STEP_MAP] > 0) ||
                     p->step_errors[PROBE_STEP_PRIVATE] > 0;
    bool refused = user->error == EPERM || user->error == EACCES;

    if ((user->error != 0 || powerless) && !explain_rules(p, f) && refused && !user->filtered)
        explain_refused_userns(p, f);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const char *const STEPS[PROBE_STEP_COUNT] = {
    [PROBE_STEP_MAP] = "write the id maps",
    [PROBE_STEP_PRIVATE] = "make mounts private",
    [PROBE_STEP_TMPFS] = "mount a tmpfs",
    [PROBE_STEP_CLONE] = "clone the mount of /usr",
    [PROBE_STEP_PROC] = "mount proc",
    [PROBE_STEP_DEVPTS] = "mount a devpts",
    [PROBE_STEP_ATTACH] = "mount over the root",
    [PROBE_STEP_OVERLAY] = "mount an overlay",
};

static bool explain_calls(const struct probe *p, struct findings *f)
{
    static const struct kind KIND = {"system-calls", "root", FINDING_BLOCKER,
                                     "allow them in the seccomp profile of the container or unit; "
                                     "a kernel before 5.15 lacks some"};
    char names[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < p->calls_len && len < sizeof(names); i++)
        if (p->calls[i].error != 0)
            len +=
                (size_t)snprintf(names + len, sizeof(names) - len, "%s%s (%s)", len > 0 ? ", " : "",
                                 p->calls[i].name, error_text(p->calls[i].error));
    if (len > 0)
        found(f, &KIND, "system calls that build a box are refused: %.250s", names);
    return len > 0;
}

/* explain_proc() has named the cause; the id maps are files of /proc. */
static bool told_by_proc(const struct probe *p, enum probe_step step)
{
    if (step == PROBE_STEP_PROC)
        return !p->has_proc || p->proc_covers[0] != '\0' || p->proc_readonly;
    return step == PROBE_STEP_MAP && !p->has_proc;
}

static void explain_steps(const struct probe *p, struct findings *f)
{
    static const struct kind KIND = {"set-up", "root", FINDING_BLOCKER,
                                     "look for a security module's rule (AppArmor, SELinux) in the "
                                     "audit log"};
    static const struct kind OVERLAY = {"overlay", "rootfs", FINDING_WARNING,
                                        "load the overlay module, on Linux 5.11 or newer; only "
                                        "--rootfs DIR and --writable-root need it"};
    static const struct kind PROFILE = {"apparmor-profile", "root", FINDING_BLOCKER,
                                        "docker run --security-opt apparmor=unconfined, or a "
                                        "profile that allows userns, mount and pivot_root"};
    bool explained = explain_calls(p, f) || findings_have_layer(f, "user_ns");

    for (enum probe_step step = 0; step < PROBE_STEP_OVERLAY && !explained; step++) {
        if (p->step_errors[step] <= 0 || told_by_proc(p, step))
            continue;
        if (is_confined(p))
            found(f, &PROFILE, "the AppArmor profile %s is on this process, and hutch can't %s: %s",
                  p->apparmor, STEPS[step], error_text(p->step_errors[step]));
        else
            found(f, &KIND, "in namespaces of its own, hutch can't %s: %s", STEPS[step],
                  error_text(p->step_errors[step]));
    }
    if (p->step_errors[PROBE_STEP_OVERLAY] > 0)
        found(f, &OVERLAY, "an overlay can't be mounted in a user namespace: %s",
              error_text(p->step_errors[PROBE_STEP_OVERLAY]));
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void explain_memfd(const struct probe *p, struct findings *f)
{
    static const struct kind KIND = {"memfd-noexec", "launch", FINDING_BLOCKER,
                                     "sysctl -w vm.memfd_noexec=1"};
    static const struct kind OTHER = {"memfd", "launch", FINDING_BLOCKER,
                                      "allow memfd_create in the seccomp profile of the container "
                                      "or unit"};

    if (p->memfd_noexec == 2)
        found(f, &KIND, "vm.memfd_noexec is 2: no memory file can be executed, and init is one");
    else if (p->memfd_error != 0)
        found(f, &OTHER, "no memory file can be made for init: %s", error_text(p->memfd_error));
}

#define OPEN_FILES_RUN 64
#define OPEN_FILES_EXEC 1024
#define PROCESSES_RUN 66 /* the default of --pids, init and ourselves */

static void explain_limits(const struct probe *p, struct findings *f)
{
    static const struct kind RUN = {"open-files", "launch", FINDING_BLOCKER, "ulimit -n 1024"};
    static const struct kind EXEC = {"open-files", "exec", FINDING_WARNING,
                                     "raise the hard limit (ulimit -H -n 1024, LimitNOFILE=)"};
    static const struct kind PROCESSES = {"process-limit", "pids", FINDING_WARNING,
                                          "raise ulimit -u"};
    static const struct kind CORE = {
        "core-pattern", "launch", FINDING_BLOCKER,
        "raise the hard limit to 1 or more (ulimit -H -c 1, LimitCORE=), or unset the pipe"};

    if (p->open_files < OPEN_FILES_RUN)
        found(f, &RUN, "the hard limit of open files is %llu", (unsigned long long)p->open_files);
    else if (p->open_files < OPEN_FILES_EXEC)
        found(f, &EXEC, "the hard limit of open files is %llu, and exec needs 1024",
              (unsigned long long)p->open_files);
    if (p->processes < PROCESSES_RUN && !p->privileged)
        found(f, &PROCESSES, "the limit of processes is %llu for all that this user runs",
              (unsigned long long)p->processes);
    if (p->core == 0 && p->core_pattern == '|')
        found(f, &CORE,
              "the hard limit of core files is 0 and kernel.core_pattern is a pipe: a crash in a "
              "box would start that handler as root");
}

static void explain_network(const struct probe_net *net, struct findings *f)
{
    static const struct kind LOOPBACK = {"loopback", "net_ns", FINDING_BLOCKER,
                                         "run a kernel whose network namespaces have a loopback "
                                         "interface, and let hutch bring it up"};
    static const struct kind OTHERS = {"interfaces", "net_ns", FINDING_WARNING,
                                       "find out what puts them into new network namespaces"};
    static const struct kind LIBRARY = {"libnl", "doctor", FINDING_WARNING, ""};

    if (net->library[0] != '\0')
        found_text(f, &LIBRARY, net->library, "; ");
    if (net->error == PROBE_NOT_TRIED)
        return;
    if (net->error != 0)
        found(f, &LOOPBACK, "in a new network namespace, hutch can't %s: %s", net->doing,
              error_text(net->error));
    else if (!net->has_loopback)
        found(f, &LOOPBACK, "a new network namespace has no loopback interface");
    if (net->others[0] != '\0')
        found(f, &OTHERS, "a new network namespace has interfaces that are up: %s", net->others);
}

static void explain_cgroup(const struct probe *p, struct findings *f)
{
    static const struct kind KIND = {
        "cgroup", "cgroup", FINDING_WARNING,
        "hand hutch a cgroup: systemd-run --user --scope -p Delegate=yes, or a service with "
        "Delegate=yes; until then limits are kept by watching"};

    if (p->cgroup_cause[0] != '\0')
        found_text(f, &KIND, p->cgroup_cause, ": ");
    else if (!p->has_cgroup)
        found(f, &KIND, "no cgroup can be had here");
}

static void explain_tools(const struct probe *p, struct findings *f)
{
    static const struct kind SECCOMP = {"libseccomp", "policy", FINDING_WARNING, ""};
    static const struct kind NEWUIDMAP = {"newuidmap", "ids", FINDING_WARNING,
                                          "nothing has to be done; the package uidmap has it"};

    if (p->libseccomp[0] != '\0')
        found_text(f, &SECCOMP, p->libseccomp, "; ");
    if (p->euid != 0 && !p->has_newuidmap)
        found(f, &NEWUIDMAP, "newuidmap isn't installed; boxes use the caller's own id alone");
}

void probe_explain(const struct probe *p, struct findings *f)
{
    explain_kernel(p, f);
    explain_filter(p, f);
    explain_clone3(p, f);
    for (enum probe_ns ns = 0; ns < PROBE_NS_COUNT; ns++)
        explain_namespace(p, ns, f);
    explain_userns(p, f);
    explain_proc(p, f);
    explain_steps(p, f);
    explain_memfd(p, f);
    explain_limits(p, f);
    explain_network(&p->net, f);
    explain_cgroup(p, f);
    explain_tools(p, f);
}
