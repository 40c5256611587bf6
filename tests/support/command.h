/*
 * command.h - run the real hutch command and look into what it answers.
 *
 * The command is found through env HUTCH, else beside the test program: build/tests/box/test_x
 * uses build/hutch, and the same for the test build (env HUTCH_TESTING, build/testing/hutch) and
 * the probe (env HUTCH_PROBE, build/tests/probe). So a copied tree tests itself.
 *
 * Paths into a JSON answer are written "receipt.layers.memory", "files.0.name".
 */
#ifndef HUTCH_TESTS_COMMAND_H
#define HUTCH_TESTS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <yajl/yajl_tree.h>

#include "support/spawn.h"

const char *hutch_path(void);
const char *hutch_testing_path(void);
const char *probe_path(void);
/* build/tests/.., where the test's own tree is. */
const char *build_path(const char *below);

/* What the command answered; json is NULL where its stdout wasn't one JSON value. */
struct answer {
    struct output o;
    yajl_val json;
};
void answer_free(struct answer *answer);
#define _cleanup_answer_ __attribute__((cleanup(answer_free)))

/* hutch ARGS; `base` (may be NULL) gives everything else about the process. */
struct answer hutch(const char *const *args);
struct answer hutch_with(const struct spawn *base, const char *const *args);

/* hutch run --json --language LANGUAGE OPTIONS - , with the code on stdin. */
struct answer run_code(const char *language, const char *code, const char *const *options);
#define run_py(code, options) run_code("python", (code), (options))
#define run_js(code, options) run_code("javascript", (code), (options))
#define run_sh(code, options) run_code("bash", (code), (options))
/* hutch run --json OPTIONS -- ARGV */
struct answer run_command(const char *const *options, const char *const *argv);
/* hutch exec OPTIONS - , with the request on stdin. */
struct answer exec_request(const char *request, const char *const *options);
/* The same for a body of code, with the request's other members as JSON text (`"args":{},`
 * style, without braces; may be NULL). */
struct answer exec_body(const char *code, const char *members);

/* A list of options: `first` and then `second` (either may be NULL); never freed. */
const char *const *join(const char *const *first, const char *const *second);

/* All of these fail the test, and print the whole answer, where the path or type is not there. */
const char *answer_text(const struct answer *answer, const char *path);
const char *answer_number(const struct answer *answer, const char *path); /* its exact text */
long long answer_int(const struct answer *answer, const char *path);
double answer_double(const struct answer *answer, const char *path);
bool answer_bool(const struct answer *answer, const char *path);
size_t answer_len(const struct answer *answer, const char *path); /* of an array or object */
bool answer_is_null(const struct answer *answer, const char *path);
/* These answer without failing. */
bool answer_has(const struct answer *answer, const char *path);
bool answer_is(const struct answer *answer, const char *path, const char *text);
/* The index in "files" or "files_skipped" of the entry with that name, -1. */
int answer_find(const struct answer *answer, const char *array, const char *name);
/* A produced file's bytes (decoded, NUL-terminated, never freed), NULL if it isn't listed. */
char *answer_file(const struct answer *answer, const char *name, size_t *ret_len);
/* Decodes base64; NULL if it isn't. */
char *base64_decode(const char *text, size_t *ret_len);

/* Everything about an answer, for messages. */
const char *answer_show(const struct answer *answer);

/* The reason is `reason`, and what goes with it in every result (exit_code null unless exit,
 * signal null unless signal, the command's status) is consistent. */
void expect_reason(const struct answer *answer, const char *reason);
/* Reason exit, status 0, nothing on stderr. */
void expect_clean(const struct answer *answer);
/* expect_clean, and this stdout. */
void expect_stdout(const struct answer *answer, const char *text);
/* hutch refused: this exit status, and one line on its stderr that has `word` in it. */
void expect_refused(const struct answer *answer, int status, const char *word);

#define expect(answer, condition) cr_assert((condition), "%s\n%s", #condition, answer_show(answer))

#endif
