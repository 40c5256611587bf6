/*
 * check.c - the request as a whole, once everything is in it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "request/internal.h"

static int check_exec(const struct hutch_request *request, struct hutch_error *err)
{
    if (!request->code)
        return error_request(err, "code: exec needs it");
    if (request->env.len > 0)
        return error_request(err, "env: exec takes none; pass values in args");
    return 0;
}

static int check_run(const struct hutch_request *request, struct hutch_error *err)
{
    if (request->code && request->command.len > 0)
        return error_request(err, "there is both code and a command to run; give one");
    if (request->code)
        return 0;
    if (request->command.len == 0)
        return error_request(err, "there is nothing to run; give a code file, or a command "
                                  "after --");
    if (request->command.items[0][0] == '\0')
        return error_request(err, "command: the program's name is empty");
    if (request->args.len > 0)
        return error_request(err, "args: a command has its arguments in itself");
    if (request->language != LANGUAGE_NONE)
        return error_request(err, "language: it is for a code file, and this is a command");
    return 0;
}

/* Byte order with '/' before everything, so that a directory's entries follow it at once. */
static int by_path(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a;
    const unsigned char *y = *(const unsigned char *const *)b;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    int left = *x == '/' ? 1 : *x ? *x + 1 : 0;
    int right = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return left - right;
}

static int name_clash(const char *first, const char *second, const char *code_file,
                      struct hutch_error *err)
{
    size_t len = strlen(first);
    if (strncmp(first, second, len) != 0 || (second[len] != '\0' && second[len] != '/'))
        return 0;
    if (code_file && strcmp(first, code_file) == 0)
        return error_request(err,
                             "file: '%.80s' is where the code is written; rename the input "
                             "file",
                             second);
    if (second[len] == '/')
        return error_request(err, "file: '%.80s' is a file, so '%.80s' can't be below it", first,
                             second);
    return error_request(err, "file: '%.80s' is there twice", first);
}

static int check_names(const struct hutch_request *request, struct hutch_error *err)
{
    const char *code_file = request->code ? language_info(request->language)->code_file : NULL;
    size_t len = request->files_len + (code_file != NULL);
    if (request->files_len == 0)
        return 0;
    _cleanup_free_ const char **names = reallocarray(NULL, len, sizeof(*names));
    if (!names)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    for (size_t i = 0; i < request->files_len; i++)
        names[i] = request->files[i].name;
    if (code_file)
        names[len - 1] = code_file;
    qsort(names, len, sizeof(*names), by_path);
    for (size_t i = 1; i < len; i++) {
        int r = name_clash(names[i - 1], names[i], code_file, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What goes in must leave the program some room; the rest of the accounting is the kernel's. */
static int check_room(const struct hutch_request *request, struct hutch_error *err)
{
    uint64_t total = request->code_len;
    for (size_t i = 0; i < request->files_len; i++)
        total += request->files[i].len;
    if (total > request->limits.disk_bytes)
        return error_request(err,
                             "disk: the code and the input files have %llu bytes, the limit "
                             "is %llu; raise it with --disk",
                             (unsigned long long)total,
                             (unsigned long long)request->limits.disk_bytes);
    return 0;
}

/* Our own files must never be written into a directory of the host. */
static int check_bind(const struct hutch_request *request, const struct bind *bind,
                      struct hutch_error *err)
{
    const bool is_work = path_below("/work", bind->target);
    if (is_work && request->files_len > 0)
        return error_request(err,
                             "bind: '%.80s' would receive the input files; bind below /work or "
                             "elsewhere, or put the files into its source",
                             bind->target);
    if (request->code && request->verb == HUTCH_VERB_RUN && !is_work) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/work/%s", language_info(request->language)->code_file);
        if (path_below(bind->target, path))
            return error_request(err, "bind: '%.80s' is where the code is written; bind elsewhere",
                                 bind->target);
    }
    for (size_t i = 0; i < request->files_len; i++) {
        _cleanup_free_ char *path = NULL;
        if (asprintf(&path, "/work/%s", request->files[i].name) < 0) {
            path = NULL;
            return error_oom(err, HUTCH_STAGE_REQUEST);
        }
        if (path_below(path, bind->target) || path_below(bind->target, path))
            return error_request(err,
                                 "bind: the input file '%.80s' and the bind to '%.80s' meet; "
                                 "rename one",
                                 request->files[i].name, bind->target);
    }
    return 0;
}

static int check_binds(const struct hutch_request *request, struct hutch_error *err)
{
    for (size_t i = 0; i < request->binds_len; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(request->binds[i].target, request->binds[j].target) == 0)
                return error_request(err, "bind: two binds have the target '%.80s'",
                                     request->binds[i].target);
        }
        int r = check_bind(request, &request->binds[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_layers(const struct hutch_request *request, struct hutch_error *err)
{
    layer_mask both = request->require_named & request->allow_missing;
    for (int i = 0; i < LAYER_COUNT; i++) {
        if (both & LAYER_BIT(i))
            return error_request(err,
                                 "require: %s is allowed to be missing as well; drop one of "
                                 "--require and --allow-missing",
                                 layer_name((enum layer)i));
    }
    return 0;
}

int request_check(const struct hutch_request *request, struct hutch_error *err)
{
    if (!request)
        return error_request(err, "the request is NULL");
    bool exec = request->verb == HUTCH_VERB_EXEC;
    int r = exec ? check_exec(request, err) : check_run(request, err);
    if (r == 0)
        r = check_names(request, err);
    if (r == 0 && !exec)
        r = check_room(request, err);
    if (r == 0)
        r = check_binds(request, err);
    if (r == 0)
        r = check_layers(request, err);
    return r;
}

const char *request_default_policy(const struct hutch_request *request)
{
    if (request->verb == HUTCH_VERB_EXEC)
        return "tool";
    return language_info(request->language)->policy;
}
