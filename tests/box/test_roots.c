/* test_roots.c - root file systems, binds, writable roots, interpreters outside /usr. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(roots, .timeout = 200);

/* ---- the host's own /usr ---- */

Test(roots, host_root_shows_usr_and_nothing_private)
{
    _cleanup_answer_ struct answer a = run_sh(
        "ls /; for d in /home /root /sys /boot /var/lib /srv /mnt; do test -e $d && echo BAD $d; "
        "done; test -x /usr/bin/env && test -r /etc/passwd && wc -l </etc/passwd",
        NULL);
    expect_reason(&a, "exit");
    const char *out = answer_text(&a, "stdout");
    expect(&a, !strstr(out, "BAD") && strstr(out, "usr\n") && strstr(out, "work\n"));
    _cleanup_answer_ struct answer b = run_command(NULL, LIST("cat", "/etc/passwd", "/etc/group"));
    expect_clean(&b);
    expect(&b, !strstr(answer_text(&b, "stdout"), "hutchtest"));
}

Test(roots, system_is_read_only)
{
    _cleanup_answer_ struct answer a =
        run_sh("for f in / /usr /usr/bin /etc /dev /proc/sys/kernel /run; do\n"
               "  (echo x >$f/new) 2>/dev/null && echo WRITTEN $f\n"
               "done; (echo x >>/etc/passwd) 2>/dev/null && echo WRITTEN passwd\n"
               "(rm -f /usr/bin/env) 2>/dev/null; test -e /usr/bin/env && echo kept",
               NULL);
    expect_stdout(&a, "kept\n");
}

Test(roots, work_tmp_and_shm_are_writable)
{
    _cleanup_answer_ struct answer a =
        run_sh("for d in /work /tmp /dev/shm; do echo x >$d/f && cat $d/f; done; "
               "stat -c %a /tmp /dev/shm; rm /work/f",
               NULL);
    expect_stdout(&a, "x\nx\nx\n1777\n1777\n");
}

/* ---- directories as roots ---- */

Test(roots, directory_root_is_used_and_read_only)
{
    const char *root = rootfs_path(), *before = names_now(root);
    _cleanup_answer_ struct answer a = run_command(
        LIST("--rootfs", root), LIST("/bin/sh", "-c",
                                     "test -e /hutch-root-marker && echo marker; pwd; id -u\n"
                                     "for f in /new /usr/new /etc/new; do (echo x >$f) 2>/dev/null "
                                     "&& echo WRITTEN $f; done\n"
                                     "echo y >/work/out; echo z >/tmp/t && cat /tmp/t; test -e "
                                     "/proc/self/status && echo proc; "
                                     "echo n >/dev/null && echo null"));
    expect_stdout(&a, "marker\n/work\n1000\nz\nproc\nnull\n");
    cr_assert_str_eq(answer_file(&a, "out", NULL), "y\n");
    cr_assert_str_eq(names_now(root), before);
}

Test(roots, directory_root_runs_python_scripts_and_exec)
{
    const char *root = rootfs_path();
    _cleanup_answer_ struct answer a =
        run_py("import sys, os; print(os.path.exists('/hutch-root-marker'), sys.version_info[0])",
               LIST("--rootfs", root));
    expect_stdout(&a, "True 3\n");
    _cleanup_answer_ struct answer b = exec_request(
        "{\"code\":\"return args['x'] * 2\",\"args\":{\"x\":21}}", LIST("--rootfs", root));
    expect_clean(&b);
    expect(&b, answer_int(&b, "output") == 42);
}

Test(roots, writable_root_over_a_directory_leaves_it_alone)
{
    const char *root = rootfs_path(), *before = tree_now(root);
    _cleanup_answer_ struct answer a = run_command(
        LIST("--rootfs", root, "--writable-root"),
        LIST("/bin/sh", "-c",
             "set -e; echo 1 >/new; echo 2 >/usr/bin/new; mkdir -p /usr/share/a/b; echo 3 "
             ">/etc/new\n"
             "echo extra >>/etc/debian_version; tail -n 1 /etc/debian_version; chmod 700 "
             "/usr/bin/new\n"
             "cat /new /usr/bin/new /etc/new; mv /usr/bin/env /usr/bin/env2; rm /usr/bin/env2; "
             "test ! -e /usr/bin/env && echo gone"));
    expect_stdout(&a, "extra\n1\n2\n3\ngone\n");
    _cleanup_answer_ struct answer again =
        run_command(LIST("--rootfs", root, "--writable-root"),
                    LIST("/bin/sh", "-c", "test ! -e /new && test -e /usr/bin/env && echo fresh"));
    expect_stdout(&again, "fresh\n");
    cr_assert_str_eq(tree_now(root), before);
}

/* The host's /usr stays read-only: in self-map mode its owner isn't in the box, so that nothing
 * below its top could be written in any case. */
Test(roots, writable_root_over_the_host_leaves_it_alone)
{
    const char *before = names_now("/"), *etc = names_now("/etc");
    _cleanup_answer_ struct answer a =
        run_command(LIST("--writable-root"),
                    LIST("/bin/sh", "-c",
                         "set -e; echo 1 >/new; mkdir -p /opt/a/b; echo 3 >/etc/new\n"
                         "echo extra >>/etc/hosts; tail -n 1 /etc/hosts; cat /new /etc/new\n"
                         "(echo x >/usr/new) 2>/dev/null || echo kept"));
    expect_stdout(&a, "extra\n1\n3\nkept\n");
    _cleanup_answer_ struct answer again =
        run_command(LIST("--writable-root"), LIST("/bin/sh", "-c", "test ! -e /new && echo fresh"));
    expect_stdout(&again, "fresh\n");
    cr_assert_str_eq(names_now("/"), before);
    cr_assert_str_eq(names_now("/etc"), etc);
}

Test(roots, writable_root_is_bounded_by_disk)
{
    _cleanup_answer_ struct answer a =
        run_command(LIST("--writable-root", "--disk", "4M"),
                    LIST("/bin/sh", "-c",
                         "head -c 100000000 /dev/zero >/big; echo $?; "
                         "test $(stat -c %s /big) -le 4194304 && echo bounded"));
    expect_reason(&a, "exit");
    expect(&a, strstr(answer_text(&a, "stdout"), "bounded") &&
                   strstr(answer_text(&a, "stderr"), "No space left"));
}

/* A root that holds only the probe, with whatever else the test puts there. */
static const char *probe_root(struct tempdir *dir)
{
    char *root = strdup(path_in(dir->path, "root"));
    cr_assert_eq(mkdir(root, 0755), 0);
    _cleanup_output_ struct output o =
        spawn_run(&(struct spawn){.argv = LIST("cp", probe_path(), path_in(root, "probe"))});
    cr_assert_eq(o.exit_code, 0);
    return root;
}

Test(roots, a_static_program_is_root_enough)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *root = probe_root(&dir);
    static const char *const dirs[] = {"proc", "dev", "tmp", "work", "etc"};
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(mkdir(path_in(root, dirs[i]), 0755), 0);
    _cleanup_answer_ struct answer a = run_command(
        LIST("--rootfs", root), LIST("/probe", "exists:/probe", "create:/work/x", "create:/probe2",
                                     "read:/dev/null", "exists:/usr"));
    expect_clean(&a);
    cr_assert_str_eq(answer_text(&a, "stdout"),
                     "exists:/probe OK\ncreate:/work/x OK\ncreate:/probe2 EROFS\n"
                     "read:/dev/null ENODATA\nexists:/usr ENOENT\n");
}

Test(roots, hostile_links_in_a_root_touch_nothing_of_the_host)
{
    static const char *const places[] = {"proc",    "dev",         "tmp",
                                         "work",    "etc",         "dev/null",
                                         "dev/shm", "etc/passwd",  "etc/resolv.conf",
                                         "run",     "run/hutch",   "dev/pts",
                                         "dev/fd",  "work/main.py"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *victim = path_in(dir.path, "victim");
    cr_assert_eq(mkdir(victim, 0777) | chmod(victim, 0777), 0);
    const char *file = file_new(victim, "file", "untouched", 0666);
    const char *root = probe_root(&dir);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (int to_file = 0; to_file < 2; to_file++) {
            const char *place = path_in(root, places[i]), *slash = strrchr(places[i], '/');
            const char *parent =
                slash ? path_in(root, text_format("%.*s", (int)(slash - places[i]), places[i]))
                      : NULL;
            if (parent)
                cr_assert_eq(mkdir(parent, 0755), 0);
            cr_assert_eq(symlink(to_file ? file : victim, place), 0);
            const char *before = tree_now(victim);
            _cleanup_answer_ struct answer a =
                run_command(LIST("--rootfs", root),
                            LIST("/probe", text_format("exists:%s", victim), "create:/work/made",
                                 "create:/tmp/made", text_format("write:%s", file)));
            cr_assert_str_eq(tree_now(victim), before, "%s", places[i]);
            cr_assert_str_eq(file_text(file), "untouched");
            if (answer_is(&a, "reason", "exit"))
                expect(&a, !strstr(answer_text(&a, "stdout"), text_format("exists:%s OK", victim)));
            else
                expect(&a, a.o.exit_code == 125 || a.o.exit_code == 2);
            cr_assert_eq(unlink(place), 0);
            if (parent)
                cr_assert_eq(rmdir(parent), 0);
        }
    }
}

Test(roots, a_root_without_mount_points_is_not_changed)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *root = probe_root(&dir), *before = tree_now(root);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--rootfs", root), LIST("/probe", "create:/work/x"));
    expect(&a, answer_is(&a, "reason", "exit") || answer_is(&a, "reason", "setup") ||
                   answer_is(&a, "reason", "request"));
    cr_assert_str_eq(tree_now(root), before);
}

Test(roots, self_map_mode_refuses_a_tree_of_somebody_else_by_name)
{
    struct spawn nobody = {.argv = LIST(hutch_path())};
    static const char *const trees[] = {"--rootfs=/usr", "--bind=/usr:/mine"};
    for (size_t i = 0; i < 2; i++) {
        const char *const *drop =
            is_root() ? LIST("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups") : NULL;
        nobody.argv = join(drop, LIST(hutch_path(), "run", trees[i], "--", "true"));
        _cleanup_answer_ struct answer a = {.o = spawn_run(&nobody)};
        expect(&a, a.o.exit_code == 125 || a.o.exit_code == 2);
        expect(&a, strstr(a.o.err, "/usr"));
    }
}

/* ---- binds ---- */

Test(roots, ro_bind_is_readable_and_not_writable)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *data = file_new(dir.path, "data", "some data\n", 0644);
    file_new(dir.path, "prog", "#!/bin/sh\necho runs\n", 0755);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", text_format("%s:/in/deep", dir.path), "--ro-bind",
                         text_format("%s:/one-file", data)),
                    LIST("sh", "-c",
                         "cat /in/deep/data /one-file; /in/deep/prog\n"
                         "(echo x >/in/deep/new) 2>/dev/null || echo refused\n"
                         "(echo x >>/one-file) 2>/dev/null || echo refused"));
    expect_stdout(&a, "some data\nsome data\nruns\nrefused\nrefused\n");
    cr_assert_str_eq(file_text(data), "some data\n");
}

Test(roots, bind_makes_the_callers_files_the_programs)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *mine = file_new(dir.path, "mine", "old\n", 0600);
    struct stat info;
    _cleanup_answer_ struct answer a =
        run_command(LIST("--bind", text_format("%s:/data", dir.path)),
                    LIST("sh", "-c",
                         "cat /data/mine; echo new >/data/mine; mkdir /data/d; "
                         "echo made >/data/d/made; stat -c %u:%g /data/mine /data/d/made"));
    expect_stdout(&a, "old\n1000:1000\n1000:1000\n");
    cr_assert_str_eq(file_text(mine), "new\n");
    cr_assert_str_eq(file_text(path_in(dir.path, "d/made")), "made\n");
    cr_assert_eq(stat(path_in(dir.path, "d/made"), &info), 0);
    cr_assert_eq(info.st_uid, geteuid());
    cr_assert_eq(info.st_gid, getegid());
}

Test(roots, bind_over_work_collects_no_ghosts_and_starts_there)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    file_new(dir.path, "input", "in\n", 0644);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--bind", text_format("%s:/work", dir.path)),
                    LIST("sh", "-c", "pwd; cat input; echo out >output"));
    expect_stdout(&a, "/work\nin\n");
    cr_assert_str_eq(names_now(dir.path), "input\noutput\n");
}

Test(roots, bind_does_not_follow_a_link_in_the_box)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    cr_assert_eq(symlink("/etc/hostname", path_in(dir.path, "link")), 0);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", text_format("%s:/in", dir.path)),
                    LIST("sh", "-c", "readlink /in/link; cat /in/link 2>/dev/null; true"));
    expect_clean(&a);
    char *name = file_text("/etc/hostname");
    expect(&a, !name || !*name || !strstr(answer_text(&a, "stdout"), name) || strlen(name) < 4);
}

Test(roots, places_that_cannot_be_bound_are_refused_by_name)
{
    static const char *const targets[] = {"/proc", "/", "/dev", "/usr/bin/new-name"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        _cleanup_answer_ struct answer a = hutch(
            LIST("run", "--ro-bind", text_format("%s:%s", dir.path, targets[i]), "--", "true"));
        expect(&a, a.o.exit_code == 2 || a.o.exit_code == 125);
        expect(&a, strstr(a.o.err, targets[i]));
    }
}

Test(roots, private_parents_of_a_bind_are_no_obstacle)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *closed = path_in(dir.path, "closed"), *shared = path_in(dir.path, "closed/shared");
    cr_assert_eq(mkdir(closed, 0700) | mkdir(shared, 0755), 0);
    file_new(shared, "data", "seen\n", 0644);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", text_format("%s:/in", shared)), LIST("cat", "/in/data"));
    expect_stdout(&a, "seen\n");
}

/* ---- interpreters outside /usr ---- */

static const char *venv_new(const char *dir)
{
    const char *venv = path_in(dir, "venv");
    _cleanup_output_ struct output o =
        spawn_run(&(struct spawn){.argv = LIST("sh", "-c",
                                               "/usr/bin/python3 -m venv --without-pip $0 && "
                                               "ls -d $0/lib/python3*/site-packages",
                                               venv)});
    cr_assert_eq(o.exit_code, 0, "%s%s", o.out, o.err);
    const char *found = strndup(o.out, strcspn(o.out, "\n"));
    file_new(found, "only_here.py", "VALUE = 'from the venv'\n", 0644);
    return text_format("%s/bin/python3", venv);
}

Test(roots, python_of_a_venv_brings_its_packages)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_home();
    const char *private = path_in(dir.path, "home");
    cr_assert_eq(mkdir(private, 0700), 0);
    const char *python = venv_new(private);
    _cleanup_answer_ struct answer a =
        run_py("import sys, only_here\nprint(only_here.VALUE, sys.prefix, sys.executable)",
               LIST("--python", python));
    expect_stdout(&a, text_format("from the venv %s/venv %s\n", private, python));
    _cleanup_answer_ struct answer b =
        exec_request(text_format("{\"code\":\"return only_here.VALUE\",\"python\":\"%s\","
                                 "\"allowed_imports\":[\"only_here\"]}",
                                 python),
                     NULL);
    expect_clean(&b);
    expect(&b, answer_is(&b, "output", "from the venv"));
    _cleanup_answer_ struct answer c = run_py(
        "import subprocess, sys\n"
        "print(subprocess.check_output([sys.executable, '-c', 'import only_here; print(1)']))",
        LIST("--python", python));
    expect_stdout(&c, "b'1\\n'\n");
    _cleanup_answer_ struct answer d =
        run_py(text_format("open('%s/venv/new', 'w')", private), LIST("--python", python));
    expect(&d, answer_int(&d, "exit_code") == 1 && !path_exists(path_in(private, "venv/new")));
}

Test(roots, relative_python_is_taken_from_the_current_directory)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    (void)venv_new(dir.path);
    struct spawn base = {.cwd = dir.path, .input = "import only_here\nprint(only_here.VALUE)"};
    base.input_len = strlen(base.input);
    _cleanup_answer_ struct answer a = hutch_with(
        &base, LIST("run", "--json", "--language", "python", "--python", "venv/bin/python3", "-"));
    expect_stdout(&a, "from the venv\n");
}

Test(roots, python_of_a_venv_below_tmp_works_too)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *python = venv_new(dir.path);
    _cleanup_answer_ struct answer a =
        run_py("import only_here\nopen('/tmp/mine', 'w').write('x')\nprint(only_here.VALUE)",
               LIST("--python", python));
    expect_stdout(&a, "from the venv\n");
}

Test(roots, binds_below_the_writable_places_are_on_top_of_them)
{
    static const char *const targets[] = {"/tmp/in", "/work/in", "/work/deep/er/in"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    file_new(dir.path, "data", "seen\n", 0644);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        _cleanup_answer_ struct answer a = run_command(
            LIST("--ro-bind", text_format("%s:%s", dir.path, targets[i])),
            LIST("sh", "-c", text_format("cat %s/data; echo x >/work/made", targets[i])));
        expect_stdout(&a, "seen\n");
        expect(&a, answer_len(&a, "files") == 1);
    }
}
