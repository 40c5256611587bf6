/*
 * internal.h - what the files of src/request/ share.
 *
 * `field` is always the name that the caller knows the thing by ("--memory", "timeout_s",
 * "files[2].name"); it opens every error message.
 */
#ifndef HUTCH_REQUEST_INTERNAL_H
#define HUTCH_REQUEST_INTERNAL_H

#include "base/json.h"
#include "request/request.h"

#define CODE_MAX ((size_t)16 << 20)
#define ARGS_MAX ((size_t)16 << 20)
#define REQUEST_JSON_MAX ((size_t)256 << 20)
#define LIST_MAX 65536U
/* The kernel's bound for one string of argv or the environment (MAX_ARG_STRLEN), NUL included. */
#define ARG_MAX_BYTES ((size_t)128 << 10)

/* ---- limits.c ---- */
enum limit_unit {
    LIMIT_SECONDS, /* kept in ms */
    LIMIT_CPUS,    /* kept in thousandths */
    LIMIT_BYTES,
    LIMIT_COUNT,
};
struct limit_info {
    const char *option; /* "memory" */
    const char *member; /* the JSON request's */
    enum limit_unit unit;
    unsigned member_shift; /* a member in MiB: 20 */
    size_t offset;         /* in struct limits */
    uint64_t min, max;     /* as kept */
    uint64_t defaults[2];  /* by verb; 0: none */
};
extern const struct limit_info LIMITS[];
extern const size_t LIMITS_LEN;
void limits_defaults(struct limits *limits, enum hutch_verb verb);
uint64_t *limit_slot(struct limits *limits, const struct limit_info *info);
int limit_set(struct limits *limits, const char *option, const char *field, const char *value,
              struct hutch_error *err);
/* Takes back what was raised above `before`. */
void limits_lower(struct limits *limits, const struct limits *before);

/* ---- text.c ---- */
/* Replaces *slot by a copy of value. */
int text_replace(char **slot, const char *value, struct hutch_error *err);
int text_list_add(struct text_list *list, const char *field, const char *text,
                  struct hutch_error *err);
void text_list_free(struct text_list *list);
bool text_list_has(const struct text_list *list, const char *text);
/* Refuses what can't be one string of argv or the environment. */
int check_arg(const char *field, const char *text, struct hutch_error *err);
int check_identifier(const char *field, const char *text, struct hutch_error *err);
int check_module(const char *field, const char *text, struct hutch_error *err);
int check_policy_name(const char *field, const char *text, struct hutch_error *err);
/* "K=V" with a usable K. */
int check_env(const char *field, const char *text, struct hutch_error *err);

/* ---- path.c ---- */
/* A name of an input file: relative to /work, no empty, `.` or `..` component. */
int check_file_name(const char *field, const char *name, struct hutch_error *err);
/* An absolute path in the box, written the one normal way; `..` is refused. */
int box_path(const char *field, const char *path, char **ret_path, struct hutch_error *err);
/* True if path is `dir` or below it; both normal. */
bool path_below(const char *path, const char *dir);
/* Parses "SRC:DST". The caller owns what ret_bind points to. */
int bind_parse(const char *field, const char *value, bool writable, struct bind *ret_bind,
               struct hutch_error *err);
void bind_free(struct bind *bind);

/* ---- request.c, with names for the errors ---- */
int request_code(struct hutch_request *request, const char *field, const void *code, size_t len,
                 struct hutch_error *err);
int request_language(struct hutch_request *request, const char *field, const char *name,
                     struct hutch_error *err);
int request_import(struct hutch_request *request, const char *field, const char *module,
                   struct hutch_error *err);
int request_env(struct hutch_request *request, const char *field, const char *text,
                struct hutch_error *err);
/* Takes args text that is known to be a JSON object. */
int request_args(struct hutch_request *request, const char *json, size_t len,
                 struct hutch_error *err);
int request_file(struct hutch_request *request, const char *field, const char *name,
                 const void *data, size_t len, bool executable, struct hutch_error *err);

#endif
