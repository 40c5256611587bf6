/*
 * test_doctor.c - hutch doctor on this machine, and on this machine made worse: it says whether
 * boxes can run, and names what is in the way by cause, all at once.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/command.h"
#include "support/deny.h"
#include "support/host.h"

TestSuite(doctor, .timeout = 200);

static struct answer doctor_with(const struct spawn *base)
{
    struct answer a = hutch_with(base, LIST("doctor", "--json"));
    expect(&a, a.json && a.o.err_total == 0);
    expect(&a, a.o.exit_code == (answer_bool(&a, "can_run") ? 0 : 1));
    return a;
}

static struct answer doctor_denied(struct deny *deny)
{
    struct spawn base = {.child = child_deny, .arg = deny};
    return doctor_with(&base);
}

/* What root would be let through without. */
static const char *const *as_nobody(const char *const *argv)
{
    return is_root()
               ? join(LIST("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"), argv)
               : argv;
}

/* In a user namespace of somebody who isn't the machine's root, after a script. */
static struct answer doctor_after(const char *script)
{
    const char *const *shell = LIST("unshare", "-Urm", "--propagation", "private", "sh", "-ec",
                                    text_format("%s\nexec %s doctor --json", script, hutch_path()));
    struct spawn spec = {.argv = as_nobody(shell)};
    struct answer a = {.o = spawn_run(&spec)};
    a.json = yajl_tree_parse(a.o.out, NULL, 0);
    expect(&a, a.json && a.o.exit_code == (answer_bool(&a, "can_run") ? 0 : 1));
    return a;
}

/* The index of the finding with this id in "blockers" or "warnings", -1. */
static int find_id(const struct answer *a, const char *list, const char *id)
{
    for (size_t i = 0; i < answer_len(a, list); i++)
        if (answer_is(a, text_format("%s.%zu.id", list, i), id))
            return (int)i;
    return -1;
}

static void expect_finding(const struct answer *a, const char *list, const char *id,
                           const char *cause, const char *remedy)
{
    int i = find_id(a, list, id);
    cr_assert_geq(i, 0, "no %s in %s\n%s", id, list, answer_show(a));
    expect(a, strstr(answer_text(a, text_format("%s.%d.cause", list, i)), cause));
    expect(a, strstr(answer_text(a, text_format("%s.%d.remedy", list, i)), remedy));
    expect(a, *answer_text(a, text_format("%s.%d.layer", list, i)));
    expect(a, answer_is(a, text_format("%s.%d.severity", list, i),
                        strcmp(list, "blockers") == 0 ? "blocker" : "warning"));
}

#define expect_blocker(a, id, cause, remedy) expect_finding(a, "blockers", id, cause, remedy)
#define expect_warning(a, id, cause, remedy) expect_finding(a, "warnings", id, cause, remedy)

/* ---- here ---- */

Test(doctor, boxes_can_run_here_and_deny_what_they_must)
{
    _cleanup_answer_ struct answer a = doctor_with(NULL);
    expect(&a, answer_bool(&a, "can_run") && answer_is_null(&a, "error"));
    expect(&a, answer_len(&a, "blockers") == 0 && answer_len(&a, "denials") >= 3);
    for (size_t i = 0; i < answer_len(&a, "denials"); i++)
        expect(&a, answer_bool(&a, text_format("denials.%zu.held", i)));
    static const char *const NAMES[] = {"network", "host_file", "environment", "usr_write",
                                        "mount",   "user_ns",   "root_id"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        expect(&a, answer_find(&a, "denials", NAMES[i]) >= 0);
    expect(&a, answer_is(&a, "mode", is_root() ? "root" : "self-map"));
    expect(&a, is_root() ? strstr(answer_text(&a, "capabilities"), "setuid") != NULL ||
                               answer_is(&a, "capabilities", "full")
                         : answer_is(&a, "capabilities", "none"));
    expect(&a, *answer_text(&a, "version") && *answer_text(&a, "kernel"));
    /* tools/deps installs what it looks at networks with, and so it did. */
    expect(&a, find_id(&a, "warnings", "libnl") < 0 && find_id(&a, "warnings", "loopback") < 0);
}

Test(doctor, layers_are_those_of_a_run)
{
    static const char *const LAYERS[] = {"user_ns", "pid_ns",       "mount_ns", "net_ns", "ipc_ns",
                                         "uts_ns",  "cgroup_ns",    "time_ns",  "root",   "caps",
                                         "seccomp", "no_new_privs", "landlock", "cgroup", "memory",
                                         "pids",    "cpu"};
    _cleanup_answer_ struct answer run = run_command(NULL, LIST("true"));
    _cleanup_answer_ struct answer a = doctor_with(NULL);
    for (size_t i = 0; i < sizeof LAYERS / sizeof LAYERS[0]; i++)
        expect(&a, answer_is(&a, text_format("layers.%s", LAYERS[i]),
                             answer_text(&run, text_format("receipt.layers.%s", LAYERS[i]))));
    bool has_cgroup = answer_is(&run, "receipt.layers.memory", "cgroup");
    expect(&a, has_cgroup || find_id(&a, "warnings", "cgroup") >= 0);
}

Test(doctor, people_get_one_line_a_finding_and_no_colours_in_a_pipe)
{
    struct deny deny = {.numbers = {SYS_landlock_create_ruleset}, .error = ENOSYS};
    struct spawn base = {.child = child_deny, .arg = &deny};
    _cleanup_answer_ struct answer a = hutch_with(&base, LIST("doctor"));
    expect(&a, a.o.exit_code == 0 && a.o.err_total == 0);
    expect(&a, !strchr(a.o.out, '\033') && strstr(a.o.out, "boxes can run here: 0 blockers, "));
    const char *line = strstr(a.o.out, "warning landlock");
    expect(&a, line && strstr(line, "; remedy: ") < strchr(line, '\n'));
}

Test(doctor, leaves_nothing_behind)
{
    processes_watch();
    const char *mounts = mounts_now();
    _cleanup_answer_ struct answer a = doctor_with(NULL);
    expect_nothing_left();
    cr_assert_str_eq(mounts_now(), mounts);
    static const char *const PLACES[] = {"/tmp", "/var/tmp", "/dev/shm", "/usr"};
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++)
        cr_expect_null(strstr(names_now(PLACES[i]), "hutch-doctor"), "in %s", PLACES[i]);
}

Test(doctor, wrong_words_are_2)
{
    _cleanup_answer_ struct answer a = hutch(LIST("doctor", "--nonsense"));
    expect_refused(&a, 2, "--nonsense");
    _cleanup_answer_ struct answer b = hutch(LIST("doctor", "word"));
    expect_refused(&b, 2, "word");
}

/* Outside a box the same attempts get through: the answer "held" comes from the walls. */
Test(doctor, attempts_get_through_where_there_is_no_box)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    int port;
    int listener = listen_tcp(&port);
    struct spawn spec = {.argv = LIST("unshare", "-Urm", hutch_path(), "doctor", "--inside",
                                      text_format("%d", port),
                                      file_new(dir.path, "bait", "x", 0644), "PATH")};
    _cleanup_answer_ struct answer a = {.o = spawn_run(&spec)};
    expect(&a, a.o.exit_code == 0 && listener_reached(listener));
    static const char *const LINES[] = {"network open\n", "host_file open\n", "environment open\n",
                                        "mount open\n", "user_ns open\n"};
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++)
        expect(&a, strstr(a.o.out, LINES[i]));
    close(listener);
}

Test(doctor, a_wall_that_is_missing_is_a_blocker)
{
    struct spawn spec = {.argv = LIST("env", "HUTCH_TEST_SKIP=no_user_namespaces,seccomp",
                                      hutch_testing_path(), "doctor", "--json")};
    _cleanup_answer_ struct answer a = {.o = spawn_run(&spec)};
    a.json = yajl_tree_parse(a.o.out, NULL, 0);
    expect(&a, a.json && a.o.exit_code == 1 && !answer_bool(&a, "can_run"));
    int user_ns = answer_find(&a, "denials", "user_ns");
    expect(&a, user_ns >= 0 && !answer_bool(&a, text_format("denials.%d.held", user_ns)));
    expect_blocker(&a, "denial", "user namespace", "don't run untrusted code");
}

/* ---- containers ---- */

Test(doctor, clone3_that_is_missing_is_no_matter)
{
    struct deny deny = {.numbers = {SYS_clone3}, .error = ENOSYS};
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect(&a, answer_bool(&a, "can_run") && answer_len(&a, "blockers") == 0);
    expect(&a, !strstr(a.o.out, "clone3"));
}

Test(doctor, filter_of_a_container_is_named)
{
    struct deny deny = {.numbers = {SYS_clone3, SYS_unshare},
                        .error = EPERM,
                        .clone_flags = CLONE_NEWUSER | CLONE_NEWNET,
                        .clone_error = EPERM};
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect(&a, !answer_bool(&a, "can_run") && strstr(answer_text(&a, "error"), "namespaces"));
    expect_blocker(&a, "container-seccomp", "user, net", "seccomp=unconfined");
    expect_blocker(&a, "clone3-seccomp", "clone3", "ENOSYS");
    expect(&a, answer_len(&a, "blockers") == 2 && answer_is(&a, "layers.root", "off"));
    expect(&a, answer_len(&a, "denials") == 0);
}

Test(doctor, filtered_calls_are_named)
{
    struct deny deny = {.numbers = {SYS_fsopen, SYS_mount_setattr}, .error = EPERM};
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect_blocker(&a, "system-calls", "fsopen", "seccomp");
    expect_blocker(&a, "system-calls", "mount_setattr", "seccomp");
    expect(&a, answer_len(&a, "blockers") == 1);
}

Test(doctor, filtered_memory_files_are_named)
{
    struct deny deny = {.numbers = {SYS_memfd_create}, .error = EPERM};
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect_blocker(&a, "memfd", "Operation not permitted", "memfd_create");
}

Test(doctor, missing_landlock_is_a_warning)
{
    struct deny deny = {.numbers = {SYS_landlock_create_ruleset}, .error = EOPNOTSUPP};
    _cleanup_answer_ struct answer a = doctor_denied(&deny);
    expect(&a, answer_bool(&a, "can_run") && answer_is(&a, "layers.landlock", "off"));
    expect_warning(&a, "landlock", "not switched on", "lsm=");
}

/* ---- settings ---- */

Test(doctor, max_user_namespaces_of_0)
{
    _cleanup_answer_ struct answer a = doctor_after("echo 0 >/proc/sys/user/max_user_namespaces");
    expect(&a, !answer_bool(&a, "can_run") && answer_len(&a, "blockers") == 1);
    expect_blocker(&a, "max-user-namespaces", "user.max_user_namespaces is 0",
                   "sysctl -w user.max_user_namespaces=");
}

Test(doctor, everything_is_named_at_once)
{
    _cleanup_answer_ struct answer a =
        doctor_after("for ns in user pid mnt net ipc uts; do"
                     "  echo 0 >/proc/sys/user/max_${ns}_namespaces; done;"
                     "mount --bind /dev/null /proc/keys");
    expect(&a, !answer_bool(&a, "can_run") && answer_len(&a, "blockers") == 7);
    static const char *const NAMES[] = {"user", "pid", "mnt", "net", "ipc", "uts"};
    for (size_t i = 0; i < 6; i++)
        expect_blocker(&a, text_format("max-%s-namespaces", NAMES[i]), "is 0",
                       text_format("user.max_%s_namespaces", NAMES[i]));
    expect_blocker(&a, "proc-masked", "/proc/keys", "systempaths=unconfined");
}

Test(doctor, wanted_namespaces_are_only_warned_of)
{
    _cleanup_answer_ struct answer a = doctor_after("echo 0 >/proc/sys/user/max_time_namespaces");
    expect(&a, answer_bool(&a, "can_run") && answer_is(&a, "layers.time_ns", "off"));
    expect_warning(&a, "max-time-namespaces", "is 0", "sysctl");
}

Test(doctor, namespaces_that_are_used_up_further_out)
{
    _cleanup_answer_ struct answer a =
        doctor_after(text_format("echo 1 >/proc/sys/user/max_user_namespaces\n"
                                 "exec unshare -Ur %s doctor --json",
                                 hutch_path()));
    expect(&a, !answer_bool(&a, "can_run"));
    expect_blocker(&a, "max-user-namespaces", "around", "sysctl");
}

Test(doctor, masked_proc_with_what_masks_it)
{
    _cleanup_answer_ struct answer a =
        doctor_after("mount --bind /dev/null /proc/keys; mount -t tmpfs none /proc/tty");
    expect(&a, !answer_bool(&a, "can_run") && answer_len(&a, "blockers") == 1);
    expect_blocker(&a, "proc-masked", "/proc/keys /proc/tty", "unmask=ALL");
}

Test(doctor, missing_proc)
{
    _cleanup_answer_ struct answer a = doctor_after("mount -t tmpfs none /proc");
    expect(&a, !answer_bool(&a, "can_run") && answer_is_null(&a, "mode"));
    expect(&a, answer_len(&a, "blockers") == 1);
    expect_blocker(&a, "proc-missing", "isn't mounted", "mount -t proc");
}

/* A self-map onto the machine's root is refused; any other user's namespace is good enough. */
Test(doctor, root_without_ids_of_its_own)
{
    struct spawn spec = {.argv = LIST("unshare", "-Ur", hutch_path(), "doctor", "--json")};
    _cleanup_answer_ struct answer a = {.o = spawn_run(&spec)};
    a.json = yajl_tree_parse(a.o.out, NULL, 0);
    expect(&a, a.json && answer_bool(&a, "can_run") == !is_root());
    expect(&a, a.o.exit_code == (is_root() ? 1 : 0));
    if (is_root())
        expect_blocker(&a, "host-root", "the host's root", "plain user");
}

/* ---- limits ---- */

struct limit {
    int resource;
    rlim_t value;
};

static void set_limit(void *arg)
{
    const struct limit *limit = arg;
    const struct rlimit both = {limit->value, limit->value};
    if (setrlimit((__rlimit_resource_t)limit->resource, &both) < 0)
        _exit(124);
}

static struct answer doctor_limited(int resource, rlim_t value)
{
    struct limit limit = {resource, value};
    struct spawn base = {.child = set_limit, .arg = &limit};
    return doctor_with(&base);
}

Test(doctor, open_files_that_are_too_few_for_exec)
{
    _cleanup_answer_ struct answer a = doctor_limited(RLIMIT_NOFILE, 512);
    expect(&a, answer_bool(&a, "can_run"));
    expect_warning(&a, "open-files", "512", "1024");
    _cleanup_answer_ struct answer b = doctor_limited(RLIMIT_NOFILE, 1024);
    expect(&b, answer_bool(&b, "can_run") && find_id(&b, "warnings", "open-files") < 0);
    expect(&b, find_id(&b, "warnings", "exec") < 0);
}

Test(doctor, open_files_that_are_too_few_for_anything)
{
    _cleanup_answer_ struct answer a = doctor_limited(RLIMIT_NOFILE, 12);
    expect(&a, !answer_bool(&a, "can_run"));
    expect_blocker(&a, "open-files", "12", "ulimit -n");
}

Test(doctor, no_process_left_for_a_plain_user)
{
    const char *const *limited = LIST("prlimit", "--nproc=1:1", hutch_path(), "doctor", "--json");
    struct spawn spec = {.argv = as_nobody(limited)};
    _cleanup_answer_ struct answer a = {.o = spawn_run(&spec)};
    a.json = yajl_tree_parse(a.o.out, NULL, 0);
    expect(&a, a.json && a.o.exit_code == 1 && !answer_bool(&a, "can_run"));
    expect_blocker(&a, "process-limit", "limit of processes", "ulimit -u");
}

/* ---- what else runs need ---- */

Test(doctor, missing_interpreters_are_warned_of)
{
    _cleanup_answer_ struct answer a =
        doctor_after("for f in /bin/bash /usr/bin/bash /usr/local/bin/bash /usr/bin/python3"
                     " /usr/local/bin/python3 /usr/bin/node /usr/local/bin/node /usr/bin/nodejs; do"
                     "  [ ! -e $f ] || mount --bind /dev/null $f; done");
    expect(&a, answer_bool(&a, "can_run"));
    expect_warning(&a, "python", "no interpreter for python", "install python3");
    expect_warning(&a, "exec", "no interpreter for python", "install python3");
    expect_warning(&a, "javascript", "no interpreter for javascript", "install nodejs");
    expect_warning(&a, "bash", "no interpreter for bash", "install bash");
}

Test(doctor, an_interpreter_that_does_not_work_is_warned_of)
{
    _cleanup_answer_ struct answer a = doctor_after("mount --bind /bin/true /usr/bin/python3");
    expect(&a, answer_bool(&a, "can_run"));
    expect_warning(&a, "python", "didn't answer 42", "hutch run -v");
    expect_warning(&a, "exec", "didn't answer 42", "hutch run -v");
}

Test(doctor, missing_libraries_are_warned_of_by_package)
{
    _cleanup_answer_ struct answer a =
        doctor_after("for f in /usr/lib/*/libnl-route-3.so.200 /usr/lib/*/libseccomp.so.2; do"
                     "  [ ! -e $f ] || mount --bind /dev/null $f; done");
    expect(&a, answer_bool(&a, "can_run"));
    expect_warning(&a, "libnl", "libnl-route-3.so.200", "libnl-route-3-200");
    expect_warning(&a, "libseccomp", "libseccomp.so.2", "libseccomp2");
}

Test(doctor, works_without_an_environment_and_with_closed_streams)
{
    struct spawn base = {.env = (const char *const[]){NULL}};
    _cleanup_answer_ struct answer a = doctor_with(&base);
    expect(&a, answer_bool(&a, "can_run"));
}
