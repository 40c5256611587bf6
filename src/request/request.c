/*
 * request.c - making a request: each call copies, and refuses by name what can't be meant.
 * What only shows when everything is there is left to request_check().
 */
#include "request/request.h"

#include <string.h>

#include "base/error.h"
#include "request/internal.h"

int hutch_request_new(enum hutch_verb verb, struct hutch_request **ret_request,
                      struct hutch_error *err)
{
    if (verb != HUTCH_VERB_RUN && verb != HUTCH_VERB_EXEC)
        return error_request(err, "verb: there is no verb number %d", (int)verb);
    struct hutch_request *request = calloc(1, sizeof(*request));
    if (!request)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    request->verb = verb;
    request->stdin_fd = request->stdout_fd = request->stderr_fd = -1;
    request->require = LAYER_DEFAULT_REQUIRED;
    request->collect_files = verb == HUTCH_VERB_RUN;
    limits_defaults(&request->limits, verb);
    if (text_replace(&request->rootfs, "host", err) < 0 ||
        text_replace(&request->workdir, "/work", err) < 0) {
        hutch_request_free(request);
        return -ENOMEM;
    }
    *ret_request = request;
    return 0;
}

static void free_files(struct hutch_request *request)
{
    for (size_t i = 0; i < request->files_len; i++) {
        free(request->files[i].name);
        free(request->files[i].data);
    }
    free(request->files);
}

static void free_binds(struct hutch_request *request)
{
    for (size_t i = 0; i < request->binds_len; i++)
        bind_free(&request->binds[i]);
    free(request->binds);
}

void hutch_request_free(struct hutch_request *request)
{
    if (!request)
        return;
    free_files(request);
    free_binds(request);
    text_list_free(&request->command);
    text_list_free(&request->args);
    text_list_free(&request->allowed_imports);
    text_list_free(&request->dependencies);
    text_list_free(&request->env);
    free(request->code);
    free(request->args_json);
    free(request->agent_id);
    free(request->stdin_data);
    free(request->rootfs);
    free(request->workdir);
    free(request->python);
    free(request->policy);
    free(request->host_ids);
    free(request);
}

static int need(const void *pointer, const char *what, struct hutch_error *err)
{
    return pointer ? 0 : error_request(err, "%s is NULL", what);
}

static int need_verb(const struct hutch_request *request, enum hutch_verb verb, const char *what,
                     struct hutch_error *err)
{
    if (!request)
        return error_request(err, "the request is NULL");
    if (request->verb == verb)
        return 0;
    return error_request(err, "%s: only %s takes it", what,
                         verb == HUTCH_VERB_RUN ? "run" : "exec");
}

/* A copy with a NUL behind it, so that empty data has an address too. */
static int copy_data(const void *data, size_t len, void **ret_copy, struct hutch_error *err)
{
    if (len > 0 && !data)
        return error_request(err, "the data is NULL");
    char *copy = len < SIZE_MAX ? malloc(len + 1) : NULL;
    if (!copy)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    if (len > 0)
        memcpy(copy, data, len);
    copy[len] = '\0';
    *ret_copy = copy;
    return 0;
}

int request_language(struct hutch_request *request, const char *field, const char *name,
                     struct hutch_error *err)
{
    enum language language = language_from_name(name);
    if (language == LANGUAGE_COUNT)
        return error_request(err, "%s: '%.40s' is not one of python, javascript, bash", field,
                             name);
    if (request->verb == HUTCH_VERB_EXEC && language != LANGUAGE_PYTHON)
        return error_request(err, "%s: exec takes python only", field);
    request->language = language;
    return 0;
}

int request_code(struct hutch_request *request, const char *field, const void *code, size_t len,
                 struct hutch_error *err)
{
    if (len > CODE_MAX)
        return error_request(err, "%s: %zu bytes is more than the %zu that code can have", field,
                             len, CODE_MAX);
    const char *nul = len > 0 && code ? memchr(code, '\0', len) : NULL;
    if (nul)
        return error_request(err, "%s: a NUL at byte %zu; code is text", field,
                             (size_t)(nul - (const char *)code));
    void *copy;
    int r = copy_data(code, len, &copy, err);
    if (r < 0)
        return r;
    free(request->code);
    request->code = copy;
    request->code_len = len;
    if (request->language == LANGUAGE_NONE)
        request->language = LANGUAGE_PYTHON;
    return 0;
}

int hutch_request_set_code(struct hutch_request *request, const char *language, const void *code,
                           size_t code_len, struct hutch_error *err)
{
    int r = need(request, "the request", err);
    if (r == 0)
        r = request_language(request, "language", language ? language : "python", err);
    return r < 0 ? r : request_code(request, "code", code, code_len, err);
}

int hutch_request_set_command(struct hutch_request *request, const char *const *argv,
                              struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "command", err);
    if (r == 0)
        r = need(argv, "the command", err);
    if (r < 0)
        return r;
    struct text_list command = {0};
    for (size_t i = 0; argv[i] && r == 0; i++) {
        r = check_arg("command", argv[i], err);
        if (r == 0)
            r = text_list_add(&command, "command", argv[i], err);
    }
    /* All of it or the old one: half a command would be another command. */
    text_list_free(r == 0 ? &request->command : &command);
    if (r == 0)
        request->command = command;
    return r;
}

int hutch_request_add_arg(struct hutch_request *request, const char *arg, struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "args", err);
    if (r == 0)
        r = need(arg, "the argument", err);
    if (r == 0)
        r = check_arg("args", arg, err);
    return r < 0 ? r : text_list_add(&request->args, "args", arg, err);
}

int request_args(struct hutch_request *request, const char *json, size_t len,
                 struct hutch_error *err)
{
    if (len > ARGS_MAX)
        return error_request(err, "args: %zu bytes is more than the %zu that args can have", len,
                             ARGS_MAX);
    void *copy;
    int r = copy_data(json, len, &copy, err);
    if (r < 0)
        return r;
    free(request->args_json);
    request->args_json = copy;
    request->args_json_len = len;
    return 0;
}

int hutch_request_set_args(struct hutch_request *request, const char *json, size_t json_len,
                           struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_EXEC, "JSON args", err);
    if (r == 0)
        r = need(json, "the args text", err);
    struct json_slice args;
    if (r == 0)
        r = json_parse(json, json_len, JSON_MAX_DEPTH, HUTCH_STAGE_REQUEST, &args, err);
    if (r < 0)
        return r;
    if (args.type != JSON_OBJECT)
        return error_request(err, "args: must be a JSON object");
    return request_args(request, args.text, args.len, err);
}

int request_import(struct hutch_request *request, const char *field, const char *module,
                   struct hutch_error *err)
{
    int r = check_module(field, module, err);
    if (r < 0 || text_list_has(&request->allowed_imports, module))
        return r;
    return text_list_add(&request->allowed_imports, field, module, err);
}

int hutch_request_allow_import(struct hutch_request *request, const char *module,
                               struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_EXEC, "allowed_imports", err);
    if (r == 0)
        r = need(module, "the module's name", err);
    return r < 0 ? r : request_import(request, "allowed_imports", module, err);
}

int request_file(struct hutch_request *request, const char *field, const char *name,
                 const void *data, size_t len, bool executable, struct hutch_error *err)
{
    int r = check_file_name(field, name, err);
    if (r < 0)
        return r;
    /* One inode each, and the box's directories need some too. */
    if (request->files_len >= 16000)
        return error_request(err, "%s: more than 16000 input files", field);
    struct input_file *files = reallocarray(request->files, request->files_len + 1, sizeof(*files));
    if (!files)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    request->files = files;
    _cleanup_free_ char *name_copy = strdup(name);
    if (!name_copy)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    void *data_copy;
    r = copy_data(data, len, &data_copy, err);
    if (r < 0)
        return r;
    files[request->files_len++] =
        (struct input_file){take_ptr(name_copy), data_copy, len, executable};
    return 0;
}

int hutch_request_add_file(struct hutch_request *request, const char *name, const void *data,
                           size_t data_len, unsigned mode, struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "input files", err);
    if (r == 0)
        r = need(name, "the file's name", err);
    return r < 0 ? r : request_file(request, "file", name, data, data_len, mode & 0100, err);
}

int hutch_request_set_stdin(struct hutch_request *request, const void *data, size_t data_len,
                            struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "stdin", err);
    void *copy;
    if (r == 0)
        r = copy_data(data, data_len, &copy, err);
    if (r < 0)
        return r;
    free(request->stdin_data);
    request->stdin_data = copy;
    request->stdin_len = data_len;
    request->stdin_fd = -1;
    return 0;
}

int hutch_request_set_stdin_fd(struct hutch_request *request, int fd, struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "stdin", err);
    if (r == 0 && fd < 0)
        r = error_request(err, "stdin: %d is not a file descriptor", fd);
    if (r < 0)
        return r;
    free(request->stdin_data);
    request->stdin_data = NULL;
    request->stdin_len = 0;
    request->stdin_fd = fd;
    return 0;
}

int hutch_request_set_output_fds(struct hutch_request *request, int stdout_fd, int stderr_fd,
                                 struct hutch_error *err)
{
    int r = need_verb(request, HUTCH_VERB_RUN, "output fds", err);
    if (r < 0)
        return r;
    request->stdout_fd = stdout_fd < 0 ? -1 : stdout_fd;
    request->stderr_fd = stderr_fd < 0 ? -1 : stderr_fd;
    return 0;
}

/* "K=V" against "K": the name's length, or 0. */
static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && b[len] == '=';
}

int request_env(struct hutch_request *request, const char *field, const char *text,
                struct hutch_error *err)
{
    int r = check_env(field, text, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < request->env.len; i++) {
        if (same_name(text, request->env.items[i]))
            return text_replace(&request->env.items[i], text, err);
    }
    return text_list_add(&request->env, field, text, err);
}
