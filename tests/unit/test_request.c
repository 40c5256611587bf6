#include "request/request.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static struct hutch_error err;

static void cleanup_request(struct hutch_request **request)
{
    hutch_request_free(*request);
}
#define _cleanup_request_ _cleanup_(cleanup_request)

static struct hutch_request *new_request(enum hutch_verb verb)
{
    struct hutch_request *request = NULL;
    cr_assert_eq(hutch_request_new(verb, &request, &err), 0);
    return request;
}

#define OK(call) cr_assert_eq((call), 0, "%s", err.message)
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        memset(&err, 0, sizeof(err));                                                              \
        cr_assert_eq((call), -EINVAL);                                                             \
        cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);                                              \
        cr_assert(strstr(err.message, words), "'%s' has no '%s'", err.message, words);             \
    } while (0)

static int set_code(struct hutch_request *r, const char *language, const char *code)
{
    return hutch_request_set_code(r, language, code, strlen(code), &err);
}

static int add_file(struct hutch_request *r, const char *name)
{
    return hutch_request_add_file(r, name, "x", 1, 0644, &err);
}

/* ---- languages ---- */

Test(request, languages)
{
    for (unsigned i = LANGUAGE_PYTHON; i < LANGUAGE_COUNT; i++) {
        const struct language_info *info = language_info((enum language)i);
        cr_assert_eq(language_from_name(info->name), i);
        cr_assert_eq(language_from_suffix(info->code_file), i);
    }
    cr_assert_eq(language_from_name(""), LANGUAGE_COUNT);
    cr_assert_eq(language_from_name("Python"), LANGUAGE_COUNT);
    cr_assert_eq(language_from_suffix("a.b/x.py"), LANGUAGE_PYTHON);
    cr_assert_eq(language_from_suffix(".py"), LANGUAGE_COUNT);
    cr_assert_eq(language_from_suffix("py"), LANGUAGE_COUNT);
    cr_assert_eq(language_from_suffix("x.pyc"), LANGUAGE_COUNT);
}

Test(request, default_policies)
{
    _cleanup_request_ struct hutch_request *exec = new_request(HUTCH_VERB_EXEC);
    cr_assert_str_eq(request_default_policy(exec), "tool");
    _cleanup_request_ struct hutch_request *run = new_request(HUTCH_VERB_RUN);
    cr_assert_str_eq(request_default_policy(run), "default");
    OK(set_code(run, NULL, ""));
    cr_assert_str_eq(request_default_policy(run), "python");
    OK(set_code(run, "javascript", ""));
    cr_assert_str_eq(request_default_policy(run), "node");
    OK(set_code(run, "bash", ""));
    cr_assert_str_eq(request_default_policy(run), "default");
}

/* ---- the setters ---- */

Test(request, new_and_free)
{
    struct hutch_request *r = NULL;
    hutch_request_free(NULL);
    REFUSED(hutch_request_new((enum hutch_verb)7, &r, &err), "verb");
    cr_assert_null(r);
    cr_assert_eq(hutch_request_new((enum hutch_verb)7, &r, NULL), -EINVAL);
}

Test(request, code)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(set_code(r, NULL, "print()"));
    cr_assert_eq(r->language, LANGUAGE_PYTHON);
    cr_assert_str_eq(r->code, "print()");
    OK(set_code(r, "bash", ""));
    cr_assert_eq(r->language, LANGUAGE_BASH);
    cr_assert_eq(r->code_len, 0);
    OK(request_check(r, &err));
    OK(hutch_request_set_code(r, NULL, NULL, 0, &err));
    REFUSED(hutch_request_set_code(r, NULL, NULL, 1, &err), "NULL");
    REFUSED(hutch_request_set_code(r, NULL, "a\0b", 3, &err), "code: a NUL at byte 1");
    REFUSED(set_code(r, "cobol", "x"), "cobol");
    REFUSED(set_code(NULL, NULL, "x"), "NULL");
}

Test(request, code_is_bounded)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    const size_t most = (size_t)16 << 20;
    _cleanup_free_ char *code = malloc(most + 1);
    memset(code, '#', most + 1);
    OK(hutch_request_set_code(r, NULL, code, most, &err));
    REFUSED(hutch_request_set_code(r, NULL, code, most + 1, &err), "more than");
}

Test(request, exec_is_python)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    REFUSED(request_check(r, &err), "code: exec needs it");
    REFUSED(set_code(r, "bash", "x"), "python only");
    OK(set_code(r, "python", "x"));
    OK(request_check(r, &err));
}

Test(request, command)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    REFUSED(request_check(r, &err), "nothing to run");
    static const char *const FIRST[] = {"sh", "-c", "true", NULL}, *const SECOND[] = {"id", NULL},
                             *const EMPTY[] = {"", NULL}, *const NONE[] = {NULL};
    OK(hutch_request_set_command(r, FIRST, &err));
    OK(hutch_request_set_command(r, SECOND, &err));
    cr_assert_eq(r->command.len, 1);
    cr_assert_str_eq(r->command.items[0], "id");
    OK(request_check(r, &err));
    OK(hutch_request_set_command(r, EMPTY, &err));
    REFUSED(request_check(r, &err), "name is empty");
    OK(hutch_request_set_command(r, NONE, &err));
    REFUSED(request_check(r, &err), "nothing to run");
    REFUSED(hutch_request_set_command(r, NULL, &err), "NULL");
}

Test(request, a_command_and_code_exclude_each_other)
{
    static const char *const COMMAND[] = {"id", NULL};
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set_command(r, COMMAND, &err));
    OK(hutch_request_add_arg(r, "x", &err));
    REFUSED(request_check(r, &err), "args");
    OK(set_code(r, NULL, ""));
    REFUSED(request_check(r, &err), "both code and a command");
    _cleanup_request_ struct hutch_request *language = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set_command(language, COMMAND, &err));
    OK(hutch_request_set(language, "language", "bash", &err));
    REFUSED(request_check(language, &err), "language");
}

Test(request, strings_longer_than_the_kernel_takes_are_refused)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    const size_t most = 128 << 10;
    _cleanup_free_ char *text = malloc(most + 1);
    memset(text, 'x', most);
    text[most] = '\0';
    const char *const command[] = {"echo", text, NULL};
    REFUSED(hutch_request_add_arg(r, text, &err), "args: longer");
    OK(hutch_request_set_command(r, (const char *const[]){"id", "-u", NULL}, &err));
    REFUSED(hutch_request_set_command(r, command, &err), "command: longer");
    cr_assert_eq(r->command.len, 2, "a refused command leaves the old one whole");
    cr_assert_str_eq(r->command.items[0], "id");
    text[most - 1] = '\0';
    OK(hutch_request_add_arg(r, text, &err));
}

Test(request, each_verb_has_its_own_setters)
{
    static const char *const COMMAND[] = {"id", NULL};
    _cleanup_request_ struct hutch_request *run = new_request(HUTCH_VERB_RUN);
    _cleanup_request_ struct hutch_request *exec = new_request(HUTCH_VERB_EXEC);
    REFUSED(hutch_request_set_command(exec, COMMAND, &err), "only run");
    REFUSED(hutch_request_add_arg(exec, "x", &err), "only run");
    REFUSED(add_file(exec, "x"), "only run");
    REFUSED(hutch_request_set_stdin(exec, "x", 1, &err), "only run");
    REFUSED(hutch_request_set_stdin_fd(exec, 0, &err), "only run");
    REFUSED(hutch_request_set_output_fds(exec, 1, 2, &err), "only run");
    REFUSED(hutch_request_set_args(run, "{}", 2, &err), "only exec");
    REFUSED(hutch_request_allow_import(run, "math", &err), "only exec");
}

Test(request, args_are_kept_digit_for_digit)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    const char *args = " {\"n\": 1180591620717411303424, \"f\": 1.0e+00} \n";
    OK(hutch_request_set_args(r, args, strlen(args), &err));
    cr_assert_str_eq(r->args_json, "{\"n\": 1180591620717411303424, \"f\": 1.0e+00}");
    cr_assert_eq(r->args_json_len, strlen(r->args_json));
    REFUSED(hutch_request_set_args(r, "[1]", 3, &err), "args: must be a JSON object");
    REFUSED(hutch_request_set_args(r, "{", 1, &err), "not JSON");
    REFUSED(hutch_request_set_args(r, NULL, 0, &err), "NULL");
}

Test(request, module_names)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_EXEC);
    static const char *const GOOD[] = {"math",  "os.path",           "_x1",
                                       "a.b.c", "\xc3\xa9t\xc3\xa9", "math"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++)
        OK(hutch_request_allow_import(r, GOOD[i], &err));
    cr_assert_eq(r->allowed_imports.len, ARRAY_LEN(GOOD) - 1, "the same name counts once");
    static const char *const BAD[] = {"",    ".",   "a.",  ".a",  "a..b", "1a",   "a.1",
                                      "a-b", "a b", "a/b", "a,b", "*",    "\xff", "a\n"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        REFUSED(hutch_request_allow_import(r, BAD[i], &err), "not a module's name");
    char longest[258];
    memset(longest, 'a', sizeof(longest));
    longest[256] = '\0';
    REFUSED(hutch_request_allow_import(r, longest, &err), "not a module's name");
    longest[255] = '\0';
    OK(hutch_request_allow_import(r, longest, &err));
}

Test(request, streams)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set_stdin(r, "a\0b", 3, &err));
    cr_assert_eq(r->stdin_len, 3);
    cr_assert_arr_eq((char *)r->stdin_data, "a\0b", 3);
    OK(hutch_request_set_stdin_fd(r, 5, &err));
    cr_assert_eq(r->stdin_fd, 5);
    cr_assert_null(r->stdin_data);
    OK(hutch_request_set_stdin(r, NULL, 0, &err));
    cr_assert_eq(r->stdin_fd, -1);
    REFUSED(hutch_request_set_stdin_fd(r, -1, &err), "not a file descriptor");
    OK(hutch_request_set_output_fds(r, 7, -3, &err));
    cr_assert_eq(r->stdout_fd, 7);
    cr_assert_eq(r->stderr_fd, -1);
}

/* ---- input files ---- */

Test(request, input_files)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_add_file(r, "run.sh", "a\0b", 3, 0755, &err));
    OK(hutch_request_add_file(r, "d/ -x\n", NULL, 0, 0644, &err));
    OK(add_file(r, "..."));
    OK(add_file(r, "d/..x"));
    cr_assert_eq(r->files_len, 4);
    cr_assert(r->files[0].executable);
    cr_assert_eq(r->files[0].len, 3);
    cr_assert_not(r->files[1].executable);
    cr_assert_not_null(r->files[1].data);
    OK(set_code(r, NULL, ""));
    OK(request_check(r, &err));
}

Test(request, file_names_stay_below_work)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    static const char *const BAD[] = {"",     "/",  "/etc/passwd", "..",  "../x",  "a/../b", "a/..",
                                      "a//b", "a/", ".",           "./a", "a/./b", "//a"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        REFUSED(add_file(r, BAD[i]), BAD[i][0] == '/' ? "absolute" : "empty, '.' or '..'");
        cr_assert_eq(r->files_len, 0);
    }
    char name[5000];
    memset(name, 'a', sizeof(name));
    name[256] = '\0';
    REFUSED(add_file(r, name), "longer than 255");
    name[255] = '\0';
    OK(add_file(r, name));
    for (size_t i = 0; i < 4095; i += 2)
        memcpy(name + i, "a/", 2);
    name[4089] = '\0';
    OK(add_file(r, name));
    name[4089] = '/';
    name[4091] = '\0';
    REFUSED(add_file(r, name), "longer than a path");
    REFUSED(hutch_request_add_file(r, NULL, "", 0, 0, &err), "NULL");
    REFUSED(hutch_request_add_file(r, "x", NULL, 1, 0, &err), "NULL");
}

static void clash(const char *first, const char *second, const char *language, const char *words)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(set_code(r, language, ""));
    OK(add_file(r, "other"));
    OK(add_file(r, first));
    if (second)
        OK(add_file(r, second));
    if (words)
        REFUSED(request_check(r, &err), words);
    else
        OK(request_check(r, &err));
}

Test(request, file_names_that_meet_are_refused)
{
    clash("a", "a", NULL, "'a' is there twice");
    clash("a/b", "a", NULL, "'a' is a file, so 'a/b' can't be below it");
    clash("a", "a/b/c", NULL, "can't be below it");
    clash("main.py", NULL, NULL, "where the code is written");
    clash("main.py/x", NULL, NULL, "where the code is written");
    clash("main.py", NULL, "bash", NULL);
    clash("main.sh", NULL, "bash", "where the code is written");
    clash("d/main.py", NULL, NULL, NULL);
    clash("MAIN.PY", NULL, NULL, NULL);
    clash("a", "a-b", NULL, NULL);
    clash("a/b", "a-b", NULL, NULL);
    clash("a/b", "ab", NULL, NULL);
}

Test(request, a_name_below_a_file_is_found_across_names_between)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(set_code(r, NULL, ""));
    static const char *const NAMES[] = {"a/z", "a-", "a b", "a", "a.b", "a\x01"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        OK(add_file(r, NAMES[i]));
    REFUSED(request_check(r, &err), "'a' is a file");
}

Test(request, files_and_code_fit_the_disk)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set(r, "disk", "64K", &err));
    _cleanup_free_ char *data = calloc(1, 65536);
    OK(set_code(r, NULL, "1"));
    OK(hutch_request_add_file(r, "f", data, 65535, 0, &err));
    OK(request_check(r, &err));
    OK(add_file(r, "g"));
    REFUSED(request_check(r, &err), "--disk");
}

Test(request, files_are_counted)
{
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    char name[32];
    for (int i = 0; i < 16000; i++) {
        snprintf(name, sizeof(name), "%d", i);
        cr_assert_eq(add_file(r, name), 0);
    }
    REFUSED(add_file(r, "x"), "more than 16000");
}

/* ---- binds and layers as a whole ---- */

static void bind_check(const char *bind, const char *file, bool code, const char *words)
{
    static const char *const COMMAND[] = {"id", NULL};
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set(r, "ro-bind", "/x:/elsewhere", &err));
    OK(hutch_request_set(r, "bind", bind, &err));
    if (code)
        OK(set_code(r, NULL, ""));
    else
        OK(hutch_request_set_command(r, COMMAND, &err));
    if (file)
        OK(add_file(r, file));
    if (words)
        REFUSED(request_check(r, &err), words);
    else
        OK(request_check(r, &err));
}

Test(request, nothing_of_ours_is_written_into_a_bound_directory)
{
    bind_check("/h:/work", NULL, false, NULL);
    bind_check("/h:/work", NULL, true, NULL); /* the code then lies elsewhere */
    bind_check("/h:/work", "f", false, "would receive the input files");
    bind_check("/h:/work/d", NULL, true, NULL);
    bind_check("/h:/work/main.py", NULL, true, "where the code is written");
    bind_check("/h:/work/main.py/x", NULL, true, "where the code is written");
    bind_check("/h:/work/main.pyc", NULL, true, NULL);
    bind_check("/h:/work/main.py", NULL, false, NULL);
    bind_check("/h:/work/d", "d/f", true, "meet");
    bind_check("/h:/work/d", "d", true, "meet");
    bind_check("/h:/work/d/e", "d", true, "meet");
    bind_check("/h:/work/d", "dd", true, NULL);
    bind_check("/h:/elsewhere", NULL, false, "two binds");
    bind_check("/h:/elsewhere/sub", NULL, false, NULL);
}

Test(request, required_and_allowed_to_be_missing_contradict)
{
    static const char *const COMMAND[] = {"id", NULL};
    _cleanup_request_ struct hutch_request *r = new_request(HUTCH_VERB_RUN);
    OK(hutch_request_set_command(r, COMMAND, &err));
    OK(hutch_request_set(r, "allow-missing", "net_ns,cgroup", &err));
    OK(request_check(r, &err));
    OK(hutch_request_set(r, "require", "net_ns", &err));
    REFUSED(request_check(r, &err), "net_ns is allowed to be missing as well");
}

Test(request, check_takes_null)
{
    REFUSED(request_check(NULL, &err), "NULL");
    cr_assert_eq(request_check(NULL, NULL), -EINVAL);
}
