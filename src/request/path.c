/*
 * path.c - names and paths, looked at as text alone: nothing here touches the file system.
 */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "request/internal.h"

#define WORK "/work/"

static bool is_dots(const char *component, size_t len)
{
    return (len == 1 && component[0] == '.') || (len == 2 && memcmp(component, "..", 2) == 0);
}

int check_file_name(const char *field, const char *name, struct hutch_error *err)
{
    if (name[0] == '/')
        return error_request(err, "%s: '%.80s' is absolute; names are relative to /work", field,
                             name);
    if (strlen(name) + strlen(WORK) >= PATH_MAX)
        return error_request(err, "%s: the name is longer than a path can be", field);
    const char *at = name;
    for (;;) {
        size_t len = strcspn(at, "/");
        if (len == 0 || is_dots(at, len))
            return error_request(err, "%s: '%.80s' has an empty, '.' or '..' part", field, name);
        if (len > NAME_MAX)
            return error_request(err, "%s: a part of '%.80s' is longer than %d bytes", field, name,
                                 NAME_MAX);
        if (at[len] == '\0')
            return 0;
        at += len + 1;
    }
}

int box_path(const char *field, const char *path, char **ret_path, struct hutch_error *err)
{
    if (path[0] != '/')
        return error_request(err, "%s: '%.80s' is not an absolute path in the box", field, path);
    if (strlen(path) >= PATH_MAX)
        return error_request(err, "%s: the path is longer than a path can be", field);
    _cleanup_free_ char *normal = malloc(strlen(path) + 1);
    if (!normal)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    size_t used = 0;
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        if (is_dots(at, len) && len == 2)
            return error_request(err, "%s: '%.80s' has a '..' part", field, path);
        if (len > 0 && !is_dots(at, len)) {
            normal[used++] = '/';
            memcpy(normal + used, at, len);
            used += len;
        }
        at += len + (at[len] == '/');
    }
    if (used == 0)
        normal[used++] = '/';
    normal[used] = '\0';
    *ret_path = take_ptr(normal);
    return 0;
}

bool path_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (strcmp(dir, "/") == 0)
        return true;
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* What the box itself stands on. */
static int check_target(const char *field, const char *target, struct hutch_error *err)
{
    static const char *const OWN[] = {"/proc", "/dev", "/sys", "/run/hutch"};
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        if (path_below(target, OWN[i]) || path_below(OWN[i], target))
            return error_request(err,
                                 "%s: '%.80s' would hide the box's own %s; choose another "
                                 "place",
                                 field, target, OWN[i]);
    }
    if (strchr(target, ':'))
        return error_request(err,
                             "%s: '%.80s' has a ':' in it; read-only is --ro-bind, writable "
                             "is --bind",
                             field, target);
    return 0;
}

/* A host path may have colons, and what follows the separator is absolute: the last ":/". */
static const char *separator(const char *value)
{
    const char *found = NULL;
    for (const char *at = strstr(value, ":/"); at; at = strstr(at + 1, ":/"))
        found = at;
    return found;
}

int bind_parse(const char *field, const char *value, bool writable, struct bind *ret_bind,
               struct hutch_error *err)
{
    const char *colon = separator(value);
    if (!colon || colon == value)
        return error_request(err, "%s: '%.80s' is not SRC:DST with an absolute DST", field, value);
    if (value[0] != '/')
        return error_request(err, "%s: the source in '%.80s' is not an absolute path", field,
                             value);
    _cleanup_free_ char *source = strndup(value, (size_t)(colon - value));
    if (!source)
        return error_oom(err, HUTCH_STAGE_REQUEST);
    _cleanup_free_ char *target = NULL;
    int r = box_path(field, colon + 1, &target, err);
    if (r == 0)
        r = check_target(field, target, err);
    if (r < 0)
        return r;
    *ret_bind = (struct bind){take_ptr(source), take_ptr(target), writable};
    return 0;
}

void bind_free(struct bind *bind)
{
    free(bind->source);
    free(bind->target);
}
