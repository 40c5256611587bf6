/*
 * test_install.c - what `make install` leaves behind is what a host needs, and no more: the
 * library with its list of calls, pkg-config, and docs/examples/host.c built on top of it.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <ftw.h>
#include <hutch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(install, .timeout = 200);

#define MAP HUTCH_SOURCE "/src/libhutch.map"
#define HEADER HUTCH_SOURCE "/src/include/hutch.h"
#define EXAMPLE HUTCH_SOURCE "/docs/examples/host.c"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZE "-fsanitize=address,undefined"
#else
#define SANITIZE "-g"
#endif

static void needs_source(void)
{
    if (access(MAP, R_OK) < 0)
        cr_skip_test("the source tree is not readable for this user");
}

/* ---- tools ---- */

static struct output tool(const struct spawn *spec)
{
    struct output o = spawn_run(spec);
    cr_assert_eq(o.exit_code, 0, "%s: %s%s", spec->argv[0], o.out, o.err);
    return o;
}

static void private_umask(void *arg)
{
    (void)arg;
    umask(077);
}

/* What is built is installed as it is (-o all); the caller's umask must not matter. */
static void make(const char *target, const char *destdir, const char *prefix)
{
    const struct spawn spec = {
        .argv = LIST("env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "-u", "MFLAGS", "make",
                     "--no-print-directory", "-C", HUTCH_SOURCE, "-o", "all",
                     text_format("B=%s", build_path("")), text_format("DESTDIR=%s", destdir),
                     text_format("PREFIX=%s", prefix), target),
        .child = private_umask,
    };
    struct output o = tool(&spec);
    output_free(&o);
}

static char found[32768];

static int note_file(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)where;
    if (type == FTW_D) {
        cr_expect_eq(info->st_mode & 0777, 0755, "%s: mode %o", path, info->st_mode);
        return 0;
    }
    if (type == FTW_F)
        cr_expect(info->st_mode & 0004 && !(info->st_mode & 0022), "%s: mode %o", path,
                  info->st_mode);
    size_t len = strlen(found);
    cr_assert_lt(snprintf(found + len, sizeof found - len, "%s\n", path),
                 (int)(sizeof found - len));
    return 0;
}

/* Every file below a directory, a line each. */
static const char *files_below(const char *dir)
{
    found[0] = 0;
    cr_assert_eq(nftw(dir, note_file, 16, FTW_PHYS), 0);
    return found;
}

/* ---- the tree ---- */

Test(install, the_tree_is_complete_and_uninstall_leaves_nothing)
{
    static const char *const FILES[] = {
        "bin/hutch",
        "include/hutch.h",
        "lib/libhutch.so",
        "lib/libhutch.so.0",
        "lib/libhutch.so." HUTCH_VERSION,
        "lib/pkgconfig/hutch.pc",
        "share/man/man1/hutch.1",
        "share/man/man3/libhutch.3",
        "share/bash-completion/completions/hutch",
    };
    needs_source();
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    make("install", dir.path, "/opt/h");
    const char *files = files_below(dir.path);
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        cr_expect(strstr(files, text_format("%s/opt/h/%s\n", dir.path, FILES[i])), "no %s in\n%s",
                  FILES[i], files);
    cr_expect_null(strstr(files, "*"), "an unmatched pattern: %s", files);
    make("uninstall", dir.path, "/opt/h");
    cr_assert_str_eq(files_below(dir.path), "");
}

Test(install, uninstall_leaves_what_others_installed)
{
    needs_source();
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    make("install", dir.path, "/usr");
    const char *other = file_new(path_in(dir.path, "usr/lib"), "libother.so.0", "x", 0644);
    make("uninstall", dir.path, "/usr");
    cr_assert_str_eq(files_below(dir.path), text_format("%s\n", other));
}

Test(install, the_installed_command_runs_without_its_library_path)
{
    needs_source();
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    make("install", "", path_in(dir.path, "p"));
    const struct spawn spec = {
        .argv = LIST(path_in(dir.path, "p/bin/hutch"), "run", "--", "echo", "ran"), .cwd = "/"};
    _cleanup_output_ struct output o = tool(&spec);
    cr_assert_str_eq(o.out, "ran\n");
}

/* ---- hosts ---- */

/* pkg-config's words for a tree that is installed below destdir. */
static const char *flags_of(const char *destdir, const char *prefix)
{
    const char *libs = text_format("PKG_CONFIG_LIBDIR=%s%s/lib/pkgconfig", destdir, prefix);
    const char *root = text_format("PKG_CONFIG_SYSROOT_DIR=%s", destdir);
    const struct spawn spec = {.argv = LIST("env", "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1",
                                            "PKG_CONFIG_ALLOW_SYSTEM_LIBS=1", libs, root,
                                            "pkg-config", "--cflags", "--libs", "hutch")};
    const struct spawn version = {.argv = LIST("env", libs, "pkg-config", "--modversion", "hutch")};
    _cleanup_output_ struct output v = tool(&version);
    cr_assert_str_eq(v.out, HUTCH_VERSION "\n");
    _cleanup_output_ struct output o = tool(&spec);
    cr_assert(strstr(o.out, "-lhutch") &&
                  strstr(o.out, text_format("-I%s%s/include", destdir, prefix)) &&
                  strstr(o.out, text_format("-L%s%s/lib", destdir, prefix)),
              "%s", o.out);
    return text_format("%.*s", (int)strcspn(o.out, "\n"), o.out);
}

static void build_and_run(const char *compiler, const char *flags, const char *dir,
                          const char *library_path)
{
    const char *program = path_in(dir, "host");
    const struct spawn compile = {
        .argv = LIST("sh", "-c",
                     text_format("%s -Wall -Wextra -Werror -O2 " SANITIZE " -o %s %s %s", compiler,
                                 program, EXAMPLE, flags))};
    const struct spawn run = {
        .argv = LIST("env", text_format("LD_LIBRARY_PATH=%s", library_path), program)};
    struct output built = tool(&compile);
    output_free(&built);
    _cleanup_output_ struct output o = tool(&run);
    cr_assert_str_eq(o.err, "", "%s: %s", compiler, o.err);
    cr_assert(strstr(o.out, "libhutch " HUTCH_VERSION "\nscript: says added up\n"
                            "script: wrote total.txt: 7\n"),
              "%s: %s", compiler, o.out);
    const char *function = strstr(o.out, "\nfunction: "), *command = strstr(o.out, "\ncommand: ");
    cr_assert(function && command &&
                  strstr(function, "\"output\":291733167875766667063796853374976"),
              "%s: %s", compiler, o.out);
    cr_assert(strstr(command, "\"reason\":\"timeout\"") && strstr(command, "\"started\\n\""),
              "%s: %s", compiler, o.out);
}

static void example_in(const char *compiler, const char *prefix)
{
    needs_source();
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    bool staged = prefix != NULL;
    const char *destdir = staged ? path_in(dir.path, "stage") : "";
    if (!staged)
        prefix = path_in(dir.path, "own");
    make("install", destdir, prefix);
    build_and_run(compiler, flags_of(destdir, prefix), dir.path,
                  text_format("%s%s/lib", destdir, prefix));
}

Test(install, the_example_is_c)
{
    example_in("gcc -std=c11", "/usr/local");
}

Test(install, the_example_is_cxx)
{
    example_in("g++ -x c++", "/usr/local");
}

Test(install, the_example_is_built_against_a_staged_usr)
{
    example_in("gcc -std=c11", "/usr");
}

Test(install, the_example_is_built_against_a_prefix_of_its_own)
{
    example_in("g++ -x c++ -std=c++11", NULL);
}

/* A header that needs another one first, or that a strict compiler doesn't like, is found here. */
Test(install, the_header_stands_alone)
{
    static const char *const COMPILERS[] = {"gcc -std=c99 -x c", "gcc -std=c11 -x c",
                                            "g++ -std=c++11 -x c++", "g++ -std=c++20 -x c++"};
    needs_source();
    for (size_t i = 0; i < sizeof COMPILERS / sizeof COMPILERS[0]; i++) {
        const struct spawn spec = {
            .argv = LIST("sh", "-c",
                         text_format("%s -Wall -Wextra -Wpedantic -Werror -Wno-long-long "
                                     "-fsyntax-only -I%s -",
                                     COMPILERS[i], HUTCH_SOURCE "/src/include")),
            .input = "#include <hutch.h>\n#include <hutch.h>\n",
            .input_len = 38,
        };
        struct output o = tool(&spec);
        output_free(&o);
    }
}

/* ---- the library ---- */

/* Every word of `text` that starts with hutch_ and has `after` behind it, once each. */
static const char *names_in(const char *text, const char *after)
{
    const char *names = "\n";
    for (const char *at = text; (at = strstr(at, "hutch_"));) {
        size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        const char *line = text_format("%.*s\n", (int)len, at);
        bool whole = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        if (whole && strncmp(at + len, after, strlen(after)) == 0 &&
            !strstr(names, text_format("\n%s", line)))
            names = text_format("%s%s", names, line);
        at += len;
    }
    return names;
}

static void same_names(const char *a, const char *a_text, const char *b, const char *b_text)
{
    size_t len = 0;
    for (const char *line = a_text + 1; *line; line += len + 1) {
        len = strcspn(line, "\n");
        cr_expect(strstr(b_text, text_format("\n%.*s\n", (int)len, line)),
                  "%.*s is in %s, not in %s", (int)len, line, a, b);
    }
    cr_assert_gt(len, 0, "%s names nothing", a);
}

Test(install, exported_symbols_are_the_list_and_the_header)
{
    needs_source();
    const struct spawn spec = {
        .argv = LIST("nm", "-D", "--defined-only", "--format=posix", build_path("libhutch.so"))};
    _cleanup_output_ struct output o = tool(&spec);
    const char *list = names_in(file_text(MAP), ";"), *header = names_in(file_text(HEADER), "("),
               *symbols = "\n";
    for (char *line = o.out; *line; line += strcspn(line, "\n") + 1) {
        const char *name = text_format("%.*s", (int)strcspn(line, "@ "), line);
        cr_expect(strcmp(name, "HUTCH_0") == 0 || strstr(line, "@@HUTCH_0 T "), "%.40s", line);
        if (strcmp(name, "HUTCH_0") != 0)
            symbols = text_format("%s%s\n", symbols, name);
    }
    same_names("the library", symbols, "its list", list);
    same_names("the list", list, "the library", symbols);
    same_names("the header", header, "the list", list);
    same_names("the list", list, "the header", header);
}

static const char *dynamic_of(const char *file)
{
    const struct spawn spec = {.argv = LIST("readelf", "-dlW", file)};
    return tool(&spec).out;
}

static void is_hardened(const char *file)
{
    const char *dynamic = dynamic_of(file);
    cr_expect_null(strstr(dynamic, "TEXTREL"), "%s has text relocations", file);
    cr_expect(strstr(dynamic, "BIND_NOW") || strstr(dynamic, " NOW"), "%s: %s", file, dynamic);
    cr_expect_not_null(strstr(dynamic, "GNU_RELRO"), "%s", file);
    cr_expect_null(strstr(dynamic, "RPATH"), "%s", file);
    cr_expect_null(strstr(dynamic, "RUNPATH"), "%s", file);
    const char *stack = strstr(dynamic, "GNU_STACK");
    cr_assert_not_null(stack, "%s", file);
    cr_expect_null(strstr(text_format("%.*s", (int)strcspn(stack, "\n"), stack), "RWE"),
                   "%s has an executable stack", file);
}

Test(install, library_and_command_are_hardened)
{
    const char *library = dynamic_of(build_path("libhutch.so"));
    cr_assert_not_null(strstr(library, "Library soname: [libhutch.so.0]"), "%s", library);
    is_hardened(build_path("libhutch.so"));
    is_hardened(build_path("hutch"));
    cr_assert_not_null(strstr(dynamic_of(build_path("hutch")), "Flags: NOW PIE"));
}

#ifndef __SANITIZE_ADDRESS__
/* Everything else is linked statically or loaded by the few runs that need it. */
Test(install, only_libc_is_needed)
{
    static const char *const FILES[] = {"libhutch.so", "hutch"};
    for (size_t i = 0; i < 2; i++) {
        const char *dynamic = dynamic_of(build_path(FILES[i]));
        size_t needed = 0;
        for (const char *at = dynamic; (at = strstr(at, "(NEEDED)")); at++) {
            needed++;
            const char *name = strchr(at, '[');
            cr_expect(name &&
                          (strncmp(name, "[libc.so", 8) == 0 || strncmp(name, "[ld-linux", 9) == 0),
                      "%s needs %.40s", FILES[i], name ? name : at);
        }
        cr_expect_gt(needed, 0);
    }
}
#endif
