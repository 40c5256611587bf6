/*
 * test_probe.c - machines that we don't have, explained: each starts as one where everything works
 * and differs in what is said.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/probe.h"

#define set_text(field, text) ((void)snprintf((field), sizeof(field), "%s", (text)))

static struct probe healthy(void)
{
    struct probe p = {
        .kernel = "6.12.1",
        .major = 6,
        .minor = 12,
        .euid = 1000,
        .has_proc = true,
        .unprivileged_userns_clone = PROBE_ABSENT,
        .apparmor_restrict_userns = PROBE_ABSENT,
        .memfd_noexec = 0,
        .core_pattern = 'c',
        .open_files = 1048576,
        .processes = UINT64_MAX,
        .core = UINT64_MAX,
        .net = {.has_loopback = true, .loopback_up = true},
        .has_cgroup = true,
        .has_newuidmap = true,
    };
    for (size_t i = 0; i < PROBE_NS_COUNT; i++)
        p.ns[i].maximum = 62000;
    return p;
}

static struct findings found;

static const struct finding *explain(const struct probe *p, const char *id)
{
    found = (struct findings){0};
    probe_explain(p, &found);
    for (size_t i = 0; i < found.len; i++)
        if (strcmp(found.items[i].id, id) == 0)
            return &found.items[i];
    return NULL;
}

static void refuse_user_namespaces(struct probe *p, int error)
{
    p->ns[PROBE_NS_USER].error = error;
    for (size_t i = PROBE_NS_USER + 1; i < PROBE_NS_COUNT; i++)
        p->ns[i].error = PROBE_NOT_TRIED;
    for (size_t i = 0; i < PROBE_STEP_COUNT; i++)
        p->step_errors[i] = PROBE_NOT_TRIED;
    p->net.error = PROBE_NOT_TRIED;
}

/* The one blocker there is has this id, and its texts have these words. */
static void expect_only(const struct probe *p, const char *id, const char *cause,
                        const char *remedy)
{
    const struct finding *finding = explain(p, id);
    cr_assert_not_null(finding, "%s isn't named", id);
    cr_expect_eq(finding->severity, FINDING_BLOCKER);
    cr_expect(strstr(finding->cause, cause), "%s: %s", id, finding->cause);
    cr_expect(strstr(finding->remedy, remedy), "%s: %s", id, finding->remedy);
    cr_expect_eq(findings_count(&found, FINDING_BLOCKER), 1, "%s isn't alone", id);
}

static void expect_warning(const struct probe *p, const char *id, const char *cause,
                           const char *remedy)
{
    const struct finding *finding = explain(p, id);
    cr_assert_not_null(finding, "%s isn't named", id);
    cr_expect_eq(finding->severity, FINDING_WARNING);
    cr_expect(strstr(finding->cause, cause), "%s: %s", id, finding->cause);
    cr_expect(strstr(finding->remedy, remedy), "%s: %s", id, finding->remedy);
    cr_expect_eq(findings_count(&found, FINDING_BLOCKER), 0);
}

Test(probe, healthy_machine_has_no_findings)
{
    struct probe p = healthy();
    cr_expect_null(explain(&p, "none"));
    cr_expect_eq(found.len, 0, "%s", found.items[0].cause);
}

/* ---- user namespaces ---- */

Test(probe, ubuntu_with_namespaces_that_have_no_rights)
{
    struct probe p = healthy();
    p.apparmor_restrict_userns = 1;
    set_text(p.apparmor, "unconfined");
    p.step_errors[PROBE_STEP_MAP] = EPERM;
    p.step_errors[PROBE_STEP_PRIVATE] = EACCES;
    expect_only(&p, "apparmor-userns", "kernel.apparmor_restrict_unprivileged_userns=1",
                "AppArmor profile");
}

Test(probe, ubuntu_where_they_are_refused)
{
    struct probe p = healthy();
    p.apparmor_restrict_userns = 1;
    refuse_user_namespaces(&p, EACCES);
    expect_only(&p, "apparmor-userns", "AppArmor", "apparmor_restrict_unprivileged_userns=0");
}

Test(probe, ubuntus_rule_is_no_finding_where_a_profile_lets_hutch_through)
{
    struct probe p = healthy();
    p.apparmor_restrict_userns = 1;
    cr_expect_null(explain(&p, "apparmor-userns"));
    cr_expect_eq(found.len, 0);
}

Test(probe, profile_of_a_container_is_not_ubuntus_rule)
{
    struct probe p = healthy();
    p.apparmor_restrict_userns = 1;
    set_text(p.apparmor, "docker-default");
    p.step_errors[PROBE_STEP_PRIVATE] = EACCES;
    expect_only(&p, "apparmor-profile", "docker-default", "apparmor=unconfined");
}

Test(probe, debians_switch)
{
    struct probe p = healthy();
    p.unprivileged_userns_clone = 0;
    refuse_user_namespaces(&p, EPERM);
    expect_only(&p, "unprivileged-userns-clone", "kernel.unprivileged_userns_clone is 0",
                "kernel.unprivileged_userns_clone=1");
}

Test(probe, debians_switch_is_no_matter_for_root)
{
    struct probe p = healthy();
    p.unprivileged_userns_clone = 0;
    p.privileged = true;
    p.euid = 0;
    cr_expect_null(explain(&p, "unprivileged-userns-clone"));
    cr_expect_eq(found.len, 0);
}

Test(probe, filter_of_a_container)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, EPERM);
    p.ns[PROBE_NS_USER].filtered = p.ns[PROBE_NS_NET].filtered = true;
    expect_only(&p, "container-seccomp", "user, net", "seccomp=unconfined");
    cr_expect_str_eq(found.items[0].layer, "user_ns");
}

Test(probe, clone3_may_be_missing_but_not_refused)
{
    struct probe p = healthy();
    p.clone3_error = ENOSYS;
    cr_expect_null(explain(&p, "clone3-seccomp"));
    cr_expect_eq(found.len, 0);
    p.clone3_error = EPERM;
    expect_only(&p, "clone3-seccomp", "clone3", "ENOSYS");
}

Test(probe, chroot_and_unmapped_ids_and_other_rules)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, EPERM);
    expect_only(&p, "user-namespaces", "Operation not permitted", "SELinux");
    p.id_unmapped = true;
    expect_only(&p, "unmapped-id", "1000", "maps");
    p.chrooted = true;
    expect_only(&p, "chroot", "chroot", "pivot_root");
}

Test(probe, user_namespaces_that_are_used_up)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, ENOSPC);
    expect_only(&p, "max-user-namespaces", "used up", "sysctl -w user.max_user_namespaces=");
}

Test(probe, kernel_without_user_namespaces)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, EINVAL);
    expect_only(&p, "user-namespaces", "CONFIG_USER_NS", "kernel");
}

Test(probe, no_process_left)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, EAGAIN);
    expect_only(&p, "process-limit", "limit of processes", "ulimit -u");
}

Test(probe, every_kind_of_namespace_is_named_by_its_own_sysctl)
{
    static const char *const names[] = {"user", "pid", "mnt", "net", "ipc", "uts"};
    static const char *const layers[] = {"user_ns", "pid_ns", "mount_ns",
                                         "net_ns",  "ipc_ns", "uts_ns"};
    struct probe p = healthy();
    refuse_user_namespaces(&p, ENOSPC);
    for (size_t i = 0; i < PROBE_NS_COUNT; i++)
        p.ns[i].maximum = 0;
    for (size_t i = 0; i < 6; i++) {
        char id[64];
        (void)snprintf(id, sizeof id, "max-%s-namespaces", names[i]);
        const struct finding *finding = explain(&p, id);
        cr_assert_not_null(finding, "%s", id);
        cr_expect_str_eq(finding->layer, layers[i]);
        cr_expect_eq(finding->severity, FINDING_BLOCKER);
    }
    cr_expect_eq(findings_count(&found, FINDING_BLOCKER), 6);
    cr_expect_eq(findings_count(&found, FINDING_WARNING), 2);
}

Test(probe, namespaces_that_are_only_wanted_are_warnings)
{
    struct probe p = healthy();
    p.ns[PROBE_NS_TIME].error = EINVAL;
    expect_warning(&p, "time-namespaces", "CONFIG_TIME_NS", "kernel");
    p = healthy();
    p.ns[PROBE_NS_CGROUP].maximum = 0;
    p.ns[PROBE_NS_CGROUP].error = ENOSPC;
    expect_warning(&p, "max-cgroup-namespaces", "is 0", "sysctl");
}

/* ---- /proc ---- */

Test(probe, masked_proc)
{
    struct probe p = healthy();
    p.step_errors[PROBE_STEP_PROC] = EPERM;
    set_text(p.proc_covers, "/proc/acpi /proc/keys");
    expect_only(&p, "proc-masked", "/proc/acpi /proc/keys", "systempaths=unconfined");
}

Test(probe, masked_proc_is_named_beside_what_hides_it)
{
    struct probe p = healthy();
    refuse_user_namespaces(&p, EPERM);
    p.ns[PROBE_NS_USER].filtered = true;
    set_text(p.proc_covers, "/proc/keys");
    cr_expect_not_null(explain(&p, "proc-masked"));
    cr_expect_not_null(explain(&p, "container-seccomp"));
    cr_expect_eq(findings_count(&found, FINDING_BLOCKER), 2);
}

Test(probe, covered_proc_that_can_be_mounted_all_the_same_is_fine)
{
    struct probe p = healthy();
    set_text(p.proc_covers, "/proc/something");
    cr_expect_null(explain(&p, "proc-masked"));
    cr_expect_eq(found.len, 0);
}

Test(probe, readonly_missing_and_otherwise_refused_proc)
{
    struct probe p = healthy();
    p.step_errors[PROBE_STEP_PROC] = EPERM;
    expect_only(&p, "set-up", "mount proc: Operation not permitted", "audit");
    p.proc_readonly = true;
    expect_only(&p, "proc-readonly", "read-only", "writable");
    p.has_proc = false;
    p.step_errors[PROBE_STEP_MAP] = ENOENT;
    expect_only(&p, "proc-missing", "isn't mounted", "mount -t proc");
}

#define MOUNT(point, options, type) "22 27 0:21 / " point " " options " - " type " x rw\n"

static void expect_covers(const char *mountinfo, const char *covers, bool readonly)
{
    char text[64];
    bool is_readonly = !readonly;
    probe_proc_covers(mountinfo, text, sizeof text, &is_readonly);
    cr_expect_str_eq(text, covers);
    cr_expect_eq(is_readonly, readonly);
}

Test(probe, mounts_over_proc_are_found_in_mountinfo)
{
    expect_covers("", "", false);
    expect_covers(MOUNT("/", "rw", "ext4") MOUNT("/proc", "rw,relatime", "proc"), "", false);
    expect_covers(MOUNT("/proc", "rw", "proc") MOUNT("/proc/acpi", "ro shared:1", "tmpfs")
                      MOUNT("/proc/sys/fs/binfmt_misc", "rw", "binfmt_misc")
                          MOUNT("/proc/keys", "rw", "tmpfs"),
                  "/proc/acpi /proc/keys", false);
    expect_covers(MOUNT("/proc", "ro", "proc"), "", true);
    expect_covers(MOUNT("/proc", "ro,nosuid", "proc"), "", true);
    expect_covers(MOUNT("/proc", "ro", "proc") MOUNT("/proc", "rw", "proc"), "", false);
    expect_covers(MOUNT("/procession/a", "ro", "tmpfs") "nonsense\n\n- - -\n", "", false);
}

Test(probe, more_mounts_over_proc_than_fit_are_cut)
{
    char text[24];
    bool readonly;
    probe_proc_covers(MOUNT("/proc/aaaaaaaa", "rw", "tmpfs") MOUNT("/proc/bbbbbbbb", "rw", "tmpfs")
                          MOUNT("/proc/cccccccc", "rw", "tmpfs"),
                      text, sizeof text, &readonly);
    cr_expect_str_eq(text, "/proc/aaaaaaaa /proc/bb");
}

/* ---- set-up, limits, libraries ---- */

Test(probe, refused_calls_are_named_together_and_explain_the_steps)
{
    struct probe p = healthy();
    p.calls[0] = (struct probe_call){"fsopen", EPERM};
    p.calls[1] = (struct probe_call){"mount", 0};
    p.calls[2] = (struct probe_call){"openat2", ENOSYS};
    p.calls_len = 3;
    p.step_errors[PROBE_STEP_TMPFS] = p.step_errors[PROBE_STEP_PROC] = EPERM;
    expect_only(&p, "system-calls", "fsopen (Operation not permitted), openat2", "seccomp");
    cr_expect_null(strstr(found.items[0].cause, "mount ("));
}

Test(probe, steps_that_fail_for_no_known_cause)
{
    struct probe p = healthy();
    p.step_errors[PROBE_STEP_DEVPTS] = ENODEV;
    expect_only(&p, "set-up", "mount a devpts: No such device", "audit");
}

Test(probe, overlay_is_only_a_warning)
{
    struct probe p = healthy();
    p.step_errors[PROBE_STEP_OVERLAY] = ENODEV;
    expect_warning(&p, "overlay", "No such device", "--rootfs");
}

Test(probe, memory_files_that_cannot_be_executed)
{
    struct probe p = healthy();
    p.memfd_noexec = 2;
    p.memfd_error = EACCES;
    expect_only(&p, "memfd-noexec", "vm.memfd_noexec is 2", "vm.memfd_noexec=1");
    p.memfd_noexec = PROBE_ABSENT;
    p.memfd_error = EPERM;
    expect_only(&p, "memfd", "Operation not permitted", "memfd_create");
    p = healthy();
    p.memfd_noexec = 1;
    cr_expect_null(explain(&p, "memfd-noexec"));
}

Test(probe, old_kernels)
{
    struct probe p = healthy();
    p.major = 5, p.minor = 15;
    cr_expect_null(explain(&p, "kernel-old"));
    p.minor = 14;
    expect_only(&p, "kernel-old", "6.12.1", "5.15");
    p.major = 4, p.minor = 19;
    cr_expect_not_null(explain(&p, "kernel-old"));
}

Test(probe, kernel_without_filters_or_landlock)
{
    struct probe p = healthy();
    p.seccomp_error = ENOSYS;
    expect_only(&p, "seccomp-missing", "filters", "CONFIG_SECCOMP_FILTER");
    p = healthy();
    p.landlock_error = EOPNOTSUPP;
    expect_warning(&p, "landlock", "not switched on", "lsm=");
    p.landlock_error = ENOSYS;
    expect_warning(&p, "landlock", "no Landlock", "CONFIG_SECURITY_LANDLOCK");
}

Test(probe, limits_of_the_caller)
{
    struct probe p = healthy();
    p.open_files = 1024;
    cr_expect_null(explain(&p, "open-files"));
    p.open_files = 1023;
    expect_warning(&p, "open-files", "1023", "1024");
    p.open_files = 32;
    expect_only(&p, "open-files", "32", "ulimit -n");
    p = healthy();
    p.processes = 20;
    expect_warning(&p, "process-limit", "20", "ulimit -u");
    p.privileged = true;
    cr_expect_null(explain(&p, "process-limit"));
}

Test(probe, core_files_matter_only_with_a_pipe)
{
    struct probe p = healthy();
    p.core = 0;
    cr_expect_null(explain(&p, "core-pattern"));
    p.core_pattern = '|';
    expect_only(&p, "core-pattern", "core_pattern", "ulimit -H -c 1");
    p.core = 1;
    cr_expect_null(explain(&p, "core-pattern"));
}

Test(probe, cgroups_cause_and_remedy_are_told_apart)
{
    struct probe p = healthy();
    p.has_cgroup = false;
    set_text(p.cgroup_cause, "cgroup v1 holds the controllers memory: boot with "
                             "systemd.unified_cgroup_hierarchy=1");
    expect_warning(&p, "cgroup", "v1 holds", "boot with");
    cr_expect_null(strstr(found.items[0].cause, "boot"));
    set_text(p.cgroup_cause, "something else");
    expect_warning(&p, "cgroup", "something else", "Delegate=yes");
    p.cgroup_cause[0] = '\0';
    expect_warning(&p, "cgroup", "no cgroup", "Delegate=yes");
}

Test(probe, loopback_that_is_missing_or_stays_down)
{
    struct probe p = healthy();
    p.net.has_loopback = false;
    expect_only(&p, "loopback", "no loopback", "loopback");
    p = healthy();
    p.net = (struct probe_net){.error = EPERM, .doing = "bring lo up", .has_loopback = true};
    expect_only(&p, "loopback", "bring lo up: Operation not permitted", "hutch");
    p = healthy();
    set_text(p.net.others, "eth7");
    expect_warning(&p, "interfaces", "eth7", "network namespaces");
}

Test(probe, libraries_and_tools)
{
    struct probe p = healthy();
    p.has_newuidmap = false;
    expect_warning(&p, "newuidmap", "isn't installed", "uidmap");
    p.euid = 0;
    cr_expect_null(explain(&p, "newuidmap"));
    p = healthy();
    p.net = (struct probe_net){.error = PROBE_NOT_TRIED,
                               .library = "load libnl: no; install the package libnl-route-3-200"};
    expect_warning(&p, "libnl", "load libnl", "install the package libnl-route-3-200");
    p = healthy();
    set_text(p.libseccomp, "load x: no; install the package libseccomp2");
    expect_warning(&p, "libseccomp", "load x", "install the package libseccomp2");
}

/* ---- the list ---- */

Test(findings, one_of_a_kind_and_no_more_than_fit)
{
    static char ids[FINDINGS_MAX + 8][16];
    struct findings f = {0};
    cr_expect_not_null(findings_add(&f, "a", "x", FINDING_WARNING));
    cr_expect_null(findings_add(&f, "a", "x", FINDING_BLOCKER));
    cr_expect_not_null(findings_add(&f, "a", "y", FINDING_BLOCKER));
    cr_expect_eq(findings_count(&f, FINDING_WARNING), 1);
    cr_expect_eq(findings_count(&f, FINDING_BLOCKER), 1);
    cr_expect(findings_have_layer(&f, "y") && !findings_have_layer(&f, "z"));
    for (size_t i = 0; i < FINDINGS_MAX + 8; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id%zu", i);
        (void)findings_add(&f, ids[i], "z", FINDING_WARNING);
    }
    cr_expect_eq(f.len, FINDINGS_MAX);
}
