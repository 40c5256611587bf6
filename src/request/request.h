/*
 * request.h - what a caller asks for: text in, one checked struct out.
 *
 * No system calls are made here: host paths are kept as text and looked at when the plan's
 * facts are gathered. After request_check() the struct is only read.
 */
#ifndef HUTCH_REQUEST_REQUEST_H
#define HUTCH_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layer.h"
#include "hutch.h"

enum language {
    LANGUAGE_NONE, /* a command */
    LANGUAGE_PYTHON,
    LANGUAGE_JAVASCRIPT,
    LANGUAGE_BASH,
    LANGUAGE_COUNT,
};

/* One row a language: how its code is named and run. */
struct language_info {
    const char *name;      /* "python" */
    const char *suffix;    /* ".py" */
    const char *code_file; /* "main.py" */
    const char *policy;    /* the profile of run when none is named */
};
const struct language_info *language_info(enum language language);
/* LANGUAGE_COUNT if there is none of that name (or with that suffix). */
enum language language_from_name(const char *name);
enum language language_from_suffix(const char *file_name);

struct limits {
    uint64_t timeout_ms;       /* 1 .. 86,400,000; there is always one */
    uint64_t cpu_time_ms;      /* 0: none */
    uint64_t memory_bytes;     /* 1M .. 1T */
    uint64_t cpus_milli;       /* 10 .. 1,024,000 */
    uint64_t pids;             /* 1 .. 32768: processes and threads of the program */
    uint64_t disk_bytes;       /* 64K .. 1T, over /work, /tmp and /dev/shm together */
    uint64_t max_output_bytes; /* 0 .. 1G, for each stream */
};

/* A list of strings or byte strings, grown by the setters. */
struct text_list {
    char **items;
    size_t len;
};

struct input_file {
    char *name; /* relative to /work */
    void *data;
    size_t len;
    bool executable;
};

struct bind {
    char *source; /* absolute host path */
    char *target; /* absolute path in the box, normalised */
    bool writable;
};

enum output_flood { FLOOD_DROP, FLOOD_KILL };

struct hutch_request {
    enum hutch_verb verb;
    enum language language;
    char *code;
    size_t code_len;
    struct text_list command; /* run: argv of a command, when there is no code */
    struct text_list args;    /* run: the script's arguments */

    /* exec */
    char *args_json; /* NULL: {} */
    size_t args_json_len;
    struct text_list allowed_imports;
    bool unchecked; /* "check": "none" */
    char *agent_id;
    struct text_list dependencies;

    struct limits limits;
    enum output_flood flood;

    struct input_file *files;
    size_t files_len;
    struct text_list env; /* "K=V", at most one for a name: a later one replaces */
    void *stdin_data;
    size_t stdin_len;
    int stdin_fd;  /* -1: stdin_data */
    int stdout_fd; /* -1: kept in the result */
    int stderr_fd;

    char *rootfs; /* "host" or an absolute directory */
    struct bind *binds;
    size_t binds_len;
    bool writable_root;
    char *workdir; /* absolute path in the box; default /work */
    char *python;  /* absolute host path of the interpreter, or NULL */
    char *policy;  /* a profile's name, or a file's path (has a '/' or ends in .json), or NULL */
    layer_mask require;       /* LAYER_DEFAULT_REQUIRED and what --require added */
    layer_mask allow_missing; /* from --allow-missing */
    layer_mask require_named; /* what --require itself named */
    bool collect_files;       /* false: produced files are not read */
    bool omit_file_data;      /* the result's JSON gives produced files without their data */
    char *host_ids;           /* "FIRST:COUNT", root mode's host ids, or NULL */
};

/* One row an option of the command; the command's help and its parser, hutch_request_set() and
 * the man page's check read this table. */
enum option_verbs {
    OPTION_RUN = 1U << HUTCH_VERB_RUN,
    OPTION_EXEC = 1U << HUTCH_VERB_EXEC,
};
/* How a value may begin with a host path; the command makes a relative one absolute. */
enum option_path {
    OPTION_PATH_NONE,
    OPTION_PATH_ALWAYS,  /* "SRC:DST": also without a slash */
    OPTION_PATH_IF_PATH, /* a name, unless it has a slash (a policy: or ends in .json) */
};
struct request_option {
    const char *name;  /* "timeout" */
    const char *value; /* "S"; NULL: takes none */
    const char *help;  /* a few words, with the default; NULL: for the library alone */
    unsigned verbs;
    enum option_path path;
    int (*set)(struct hutch_request *request, const char *field, const char *value,
               struct hutch_error *err);
    const char *help_exec; /* NULL: the same as help */
};
extern const struct request_option REQUEST_OPTIONS[];
extern const size_t REQUEST_OPTIONS_LEN;
const struct request_option *request_option_find(const char *name);

/* Applies a command-line option to a request that came as a document: a limit can only be
 * lowered, every other option is the operator's word and replaces the document's. Errors give
 * the option with its dashes. */
int request_set_lowering(struct hutch_request *request, const char *option, const char *value,
                         struct hutch_error *err);

/* Checks the request as a whole (something to run, names that clash, verb against members).
 * Every entry point calls it first. */
int request_check(const struct hutch_request *request, struct hutch_error *err);

/* The profile's name for this request when none is named: tool, python, node or default. */
const char *request_default_policy(const struct hutch_request *request);

#endif
