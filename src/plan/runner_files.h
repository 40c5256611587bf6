/*
 * runner_files.h - what of hutch runs inside a box, as tools/embed made it from src/runner.
 *
 * Python is started as `PYTHON FLAGS -c START [SCRIPT ARGS...]`: as an argument the start text
 * saves a file's open and a zip check, and it picks the .pyc that fits the interpreter, or the
 * source. JavaScript and bash need nothing of ours.
 */
#ifndef HUTCH_PLAN_RUNNER_FILES_H
#define HUTCH_PLAN_RUNNER_FILES_H

#include <stddef.h>

struct runner_file {
    const char *path; /* below /run/hutch */
    const unsigned char *data;
    size_t len;
};

extern const struct runner_file RUNNER_PYTHON_EXEC[];
extern const size_t RUNNER_PYTHON_EXEC_LEN;
extern const char RUNNER_PYTHON_EXEC_START[];

extern const struct runner_file RUNNER_PYTHON_RUN[];
extern const size_t RUNNER_PYTHON_RUN_LEN;
extern const char RUNNER_PYTHON_RUN_START[];

#endif
