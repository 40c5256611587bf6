/*
 * cli.h - what the verbs of the command share: option parsing, reading, writing, failing.
 *
 * The command holds no policy: it turns words into a request, drives the run, and shows the
 * result. Every message is one line `hutch: ...` on stderr.
 */
#ifndef HUTCH_CLI_CLI_H
#define HUTCH_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "hutch.h"
#include "request/request.h"

enum cli_status {
    CLI_OK = 0,
    CLI_NEGATIVE = 1, /* the code failed or was refused */
    CLI_USAGE = 2,    /* wrong usage or a bad request */
    CLI_FAILED = 125, /* hutch could not do it */
};

/* ---- verbs ---- */

struct cli_verb {
    const char *name;
    const char *usage; /* behind "hutch NAME" */
    const char *what;
    int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit status */
};
extern const struct cli_verb CLI_VERBS[];
extern const size_t CLI_VERBS_LEN;

int cli_run(int argc, char **argv);
int cli_exec(int argc, char **argv);
int cli_validate(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_help(int argc, char **argv);

/* ---- parse.c: options ---- */

struct cli_option {
    const char *name;  /* "file" */
    char letter;       /* 'v' for -v, or 0 */
    const char *value; /* "HOST[:NAME]"; NULL: takes none */
    const char *help;
    int (*set)(void *ctx, const char *value, struct hutch_error *err);
};

struct cli_syntax {
    const char *usage; /* the help's first lines */
    const struct cli_option *options;
    size_t options_len;
    unsigned request_verbs; /* which REQUEST_OPTIONS are taken too; 0: none */
    int (*request_option)(void *ctx, const struct request_option *row, const char *field,
                          const char *value, struct hutch_error *err);
    int (*positional)(void *ctx, const char *text, struct hutch_error *err);
    bool dashes; /* what follows "--" is the program's */
};

struct cli_parsed {
    bool help;
    bool dashes;       /* there was a "--" */
    char *const *rest; /* what followed it, up to argv's NULL */
};

/* argv[0] is skipped. Errors are HUTCH_STAGE_REQUEST and name the word. Stops at --help. */
int cli_parse(const struct cli_syntax *syntax, void *ctx, int argc, char **argv,
              struct cli_parsed *ret_parsed, struct hutch_error *err);
int cli_show_help(const struct cli_syntax *syntax);
/* A path of the host as the library wants it: relative ones get the current directory. The
 * caller frees *ret_value. */
int cli_host_path(enum option_path kind, const char *value, char **ret_value,
                  struct hutch_error *err);

/* ---- io.c ---- */

/* One line on stderr, made harmless for a terminal. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The message of an error, and the exit status that goes with it. */
int cli_failed(const struct hutch_error *err);
/* Writes everything; waits for a non-blocking fd; negative errno. */
int cli_write(int fd, const char *data, size_t len);
/* Writes to stdout; CLI_OK, or CLI_FAILED with a message. */
int cli_print(const char *data, size_t len);
int cli_print_line(const char *data, size_t len);

/* Opens a file of the host: a directory, and unless `pipes` also a named FIFO, is refused. */
int cli_open(const char *path, bool pipes, int *ret_fd, mode_t *ret_mode, struct hutch_error *err);
/* Reads all of a file, or of stdin for "-". */
int cli_read(const char *path, size_t max, struct buf *buf, mode_t *ret_mode,
             struct hutch_error *err);

/* ---- failure.c ---- */

/* Where there is no result to show: prints one with the same members, and the message. */
int cli_failed_json(enum hutch_verb verb, const struct hutch_error *err);

/* ---- build_run.c, build_exec.c: words to a request ---- */

struct run_words {
    struct hutch_request *request;
    const char *code_path; /* "-" for stdin; NULL: a command */
    const char *stdin_path;
    const char *out;    /* directory for produced files */
    const char **files; /* --file, as given */
    size_t files_len;
    int stdin_fd;
    bool json, verbose;
    bool usage_error; /* the words themselves were wrong, not what they name */
    struct cli_parsed parsed;
};
void run_words_free(struct run_words *words);
#define _cleanup_run_words_ _cleanup_(run_words_free)
/* Makes words->request. On failure words->usage_error says whether the command line itself was
 * wrong; with words->parsed.help set, the help has been asked for and there is nothing to run. */
int run_words_build(int argc, char **argv, struct run_words *words, struct hutch_error *err);
int run_words_help(void);

struct exec_words {
    struct hutch_request *request;
    const char *path; /* of the document; "-" for stdin */
    struct exec_option *options;
    size_t options_len;
    struct hutch_request *scratch; /* the options are tried on it before anything is read */
    bool verbose;
    struct cli_parsed parsed;
};
void exec_words_free(struct exec_words *words);
#define _cleanup_exec_words_ _cleanup_(exec_words_free)
int exec_words_build(int argc, char **argv, struct exec_words *words, struct hutch_error *err);
int exec_words_help(void);

/* ---- drive.c: a run under way ---- */

/* Blocks the signals that end a box, so that they arrive through an fd: -1 on failure. Call
 * before the run starts. */
int drive_signals(void);
/* Steps the run to its end. A signal ends the box first and is handed out (else 0); with `watch`
 * (output is passed on) also the SIGPIPE of a reader that went away. */
int drive_run(struct hutch_run *run, int signals, bool watch, int *ret_signal,
              struct hutch_error *err);

/* ---- terminal.c: output of the box on a terminal ---- */

/* A small process of our own between the box and the terminal, that makes control sequences
 * harmless: the library may block in a write, so this can't be done in the same loop. */
struct terminal {
    pid_t pid;  /* 0: none is needed */
    int fds[2]; /* what the library is given in place of 1 and 2 */
};
int terminal_start(struct terminal *terminal, struct hutch_error *err);
/* Closes our ends and waits until everything is shown. */
void terminal_finish(struct terminal *terminal);
/* Appends text with control characters made visible. Returns how much of it was used: an
 * unfinished UTF-8 character at the end stays, unless `last`. */
size_t terminal_clean(struct buf *out, const char *text, size_t len, bool last);

/* ---- out.c: produced files ---- */

int out_open(const char *path, int *ret_dir, struct hutch_error *err);
/* Writes every produced file below dir, never through a link; the first failure is kept, the
 * other files are still written. */
int out_write(int dir, const struct hutch_result *result, struct hutch_error *err);

/* ---- summary.c: what the result's JSON says ---- */

/* One line for each stream that was cut, if it was passed on. */
void summary_cuts(const struct hutch_result *result);
/* One line for each kind of produced file that isn't whole or wasn't taken. */
void summary_files(const struct hutch_result *result);
/* -v: layers, what is missing and why, usage. */
void summary_receipt(const struct hutch_result *result);

#endif
