/*
 * test_binds.c - binds onto and below what a box has anyway: its own files, links, and the places
 * of its writable tmpfs.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(binds, .timeout = 200);

static const char *bind_of(const char *source, const char *target)
{
    return text_format("%s:%s", source, target);
}

Test(binds, files_that_the_box_has_anyway_can_be_replaced)
{
    static const char *const TARGETS[] = {"/etc/resolv.conf", "/etc/hosts",       "/etc/passwd",
                                          "/etc/localtime",   "/etc/ld.so.cache", "/etc/ssl/cert"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *file = file_new(dir.path, "file", "bound\n", 0644);
    for (size_t i = 0; i < sizeof TARGETS / sizeof TARGETS[0]; i++) {
        _cleanup_answer_ struct answer a =
            run_command(LIST("--ro-bind", bind_of(file, TARGETS[i])), LIST("cat", TARGETS[i]));
        expect_stdout(&a, "bound\n");
    }
}

Test(binds, var_tmp_is_tmp)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *file = file_new(dir.path, "file", "bound\n", 0644);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", bind_of(file, "/var/tmp/deep/file")),
                    LIST("sh", "-c", "cat /var/tmp/deep/file /tmp/deep/file"));
    expect_stdout(&a, "bound\nbound\n");
}

/* What the host shows of itself is read-only: a place to mount on is there, or is refused. */
Test(binds, targets_in_the_hosts_own_directories)
{
    static const char *const REFUSED[] = {"/usr/bin/there-is-none", "/bin/tac", "/bin", "/lib/x/y"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *file = file_new(dir.path, "file", "#!/bin/sh\necho bound\n", 0755);
    _cleanup_answer_ struct answer a =
        run_command(LIST("--ro-bind", bind_of(file, "/usr/bin/tac")), LIST("tac"));
    expect_stdout(&a, "bound\n");
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        _cleanup_answer_ struct answer b =
            run_command(LIST("--ro-bind", bind_of(file, REFUSED[i])), LIST("true"));
        expect_reason(&b, "request");
        expect(&b, strstr(answer_text(&b, "error"), REFUSED[i]));
    }
}

Test(binds, places_of_the_writable_tmpfs_take_binds)
{
    static const char *const PLACES[] = {"/work", "/tmp"};
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    (void)file_new(dir.path, "file", "bound\n", 0644);
    for (size_t i = 0; i < 2; i++) {
        const char *below = text_format("%s/a/b", PLACES[i]);
        _cleanup_answer_ struct answer a =
            run_command(LIST("--ro-bind", bind_of(dir.path, PLACES[i])),
                        LIST("cat", text_format("%s/file", PLACES[i])));
        expect_stdout(&a, "bound\n");
        _cleanup_answer_ struct answer b = run_command(
            LIST("--ro-bind", bind_of(dir.path, below)),
            LIST("sh", "-c", text_format("cat %s/file; echo x >%s/mine", below, PLACES[i])));
        expect_stdout(&b, "bound\n");
    }
}

/* Its prefix is mounted over the box's own /tmp, and must be seen there. */
Test(binds, an_interpreter_below_tmp_is_found)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *venv = path_in(dir.path, "venv"), *bin = path_in(venv, "bin"),
               *python = path_in(bin, "python");
    cr_assert(mkdir(venv, 0755) == 0 && mkdir(bin, 0755) == 0);
    cr_assert_eq(symlink("/usr/bin/python3", python), 0);
    (void)file_new(venv, "pyvenv.cfg", "home = /usr/bin\n", 0644);
    _cleanup_answer_ struct answer a =
        run_py("import sys, tempfile; print(sys.executable); tempfile.TemporaryFile().write(b'x')",
               LIST("--python", python));
    expect_stdout(&a, text_format("%s\n", python));
}

Test(binds, more_than_a_box_takes_are_refused_by_name)
{
    const char *const *options = NULL;
    for (int i = 0; i < 60; i++)
        options = join(options, LIST("--ro-bind", text_format("/usr:/u/%d", i)));
    _cleanup_answer_ struct answer a = run_command(options, LIST("ls", "/u/59/bin/env"));
    expect_stdout(&a, "/u/59/bin/env\n");
    for (int i = 60; i < 120; i++)
        options = join(options, LIST("--ro-bind", text_format("/usr:/u/%d", i)));
    _cleanup_answer_ struct answer b = run_command(options, LIST("true"));
    expect_reason(&b, "request");
    expect(&b, strstr(answer_text(&b, "error"), "binds are too many"));
}

Test(binds, a_script_runs_beside_a_bind_at_work_and_leaves_no_file_there)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    (void)file_new(dir.path, "helper.py", "x = 5\n", 0644);
    _cleanup_answer_ struct answer a =
        run_code("python", "import helper, os\nprint(helper.x, os.getcwd())\n",
                 LIST("--ro-bind", bind_of(dir.path, "/work")));
    expect_stdout(&a, "5 /work\n");
    cr_assert_neq(access(text_format("%s/main.py", dir.path), F_OK), 0);
}

Test(binds, a_venv_of_a_python_behind_a_linked_directory_starts)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *base = path_in(dir.path, "base"), *venv = path_in(dir.path, "venv");
    const char *bin = path_in(dir.path, "venv/bin"), *python = path_in(dir.path, "venv/bin/python");
    cr_assert_eq(mkdir(venv, 0755) | mkdir(bin, 0755) | symlink("/usr", base), 0);
    cr_assert_eq(symlink(text_format("%s/bin/python3", base), python), 0);
    (void)file_new(venv, "pyvenv.cfg", text_format("home = %s/bin\n", base), 0644);
    _cleanup_answer_ struct answer a =
        run_py("import sys, json\nprint(sys.executable)\n", LIST("--python", python));
    expect_stdout(&a, text_format("%s\n", python));
}
