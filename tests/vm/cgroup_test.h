/*
 * What the files of the cgroup test share: checks that end the process, a box's cgroup with a
 * process in it, and the place where the setting has it.
 */
#ifndef HUTCH_TESTS_VM_CGROUP_TEST_H
#define HUTCH_TESTS_VM_CGROUP_TEST_H

#include "kernel/cgroup.h"

#define MIB (1024ULL * 1024)

enum { NOT_HERE = 77 };

struct vm_test {
    const char *name;
    void (*run)(void);
};
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
extern const struct vm_test place_tests[], neighbour_tests[];
extern const size_t place_tests_len, neighbour_tests_len;

__attribute__((format(printf, 3, 4), noreturn)) void fail(int line, const char *what,
                                                          const char *format, ...);
/* Ends the process on a false one: `check(a == b, "what was seen: %d", a)`. */
#define check(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__LINE__, #condition, " " __VA_ARGS__);                                           \
    } while (0)

extern const struct cgroup_limits small;

/* Where HUTCH_VM_SETTING has its boxes, and what it says where there is none. */
enum cgroup_kind expected(void);
extern const char *expected_cause;
bool setting_is(const char *name);
/* Where nothing can be had the other tests have nothing to look at. */
#define NEED_CGROUP()                                                                              \
    if (expected() == CGROUP_NONE_HERE)                                                            \
    _exit(NOT_HERE)

typedef void program_fn(void);
void sleep_on(void);
void nothing(void);

struct cgroup create(const struct cgroup_limits *limits);
void destroy(struct cgroup *cgroup);
/* Starts `program` in the leaf; a deferred one waits at a pipe until it was adopted. */
pid_t start(struct cgroup *cgroup, program_fn *program);
int wait_for(pid_t pid);

void text_of(int dir_fd, const char *file, char text[static 128]);
bool is_there(const char *path);
/* The line of /proc/self/cgroup. */
void own_path(char text[static CGROUP_PATH_TEXT]);

/* ---- places made for the purpose, by root ---- */

#define TOP "/sys/fs/cgroup"
#define PLACE TOP "/vm-place"
#define SLICE TOP "/hutch.slice"
enum { ROOT = 0, ALICE = 4321 };
#define NEED(setting)                                                                              \
    if (!setting_is(setting))                                                                      \
    _exit(NOT_HERE)

/* Enables all of our controllers at the top. */
void widen_top(void);
/* As systemd delegates: the directory and a few of its files, nothing else. */
void make_place(const char *path, uid_t owner);
void end_place(const char *path);
void put(const char *dir, const char *file, const char *text);
void expect_text(const char *dir, const char *file, const char *expected_text);
/* Nothing of hutch is left in it. */
void expect_untouched(const char *place);

/* Runs `test` as a process of `user` in the place. */
void in_place(const char *place, uid_t user, void (*test)(const char *place));
/* Anything but an error. */
int create_any(struct cgroup *cgroup, char cause[static CGROUP_CAUSE_TEXT]);
/* A box in `place` that can run something, with these controllers. */
void make_box(const char *place, unsigned controllers);
/* A process that makes a box with a sleeper, says where, and then waits to be killed: as `user` and
 * in `place`, or as and where we are (NULL). */
pid_t start_owner(const char *place, uid_t user, char path[static CGROUP_PATH_TEXT]);
void end_process(pid_t pid);
double seconds(void);

#endif
