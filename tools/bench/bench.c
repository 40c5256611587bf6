/*
 * bench.c - what a run costs, side by side: every contender once in each round, medians at the
 * end, so that a noisy machine is noisy for all of them.
 *
 *   bench COMMAND ROUNDS     COMMAND is the path of the hutch command
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hutch.h"
#include "kernel/seccomp.h"

extern char **environ;

#define ONE_LINE "print(1)"
#define PYTHON "/usr/bin/python3"

static const char *command;
static char script[] = "/tmp/hutch-bench-XXXXXX.py";

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Runs argv with all output to /dev/null; it must exit 0. */
static void run_argv(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(const void *)argv, environ) !=
        0)
        die(argv[0]);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("a contender failed");
}

static void bare_python(void)
{
    const char *argv[] = {PYTHON, "-I", "-S", "-c", "pass", NULL};

    run_argv(argv);
}

/* The filter that hutch gives such a script, for bubblewrap's --seccomp. */
static char filter_fd[12];

static void open_filter(void)
{
    const struct policy_shipped *python = policy_shipped_find("python");
    int fd = memfd_create("filter", 0);
    size_t len = python->code[POLICY_CGROUP].len * sizeof(struct sock_filter);

    if (fd < 0 || write(fd, python->code[POLICY_CGROUP].insns, len) != (ssize_t)len)
        die("write the filter");
    (void)snprintf(filter_fd, sizeof(filter_fd), "%d", fd);
}

/* What of our isolation bubblewrap can do: namespaces, own root, /proc, /dev, no capabilities, the
 * same system call filter. */
static void bubblewrap(void)
{
    const char *argv[] = {"bwrap",
                          "--unshare-all",
                          "--die-with-parent",
                          "--new-session",
                          "--clearenv",
                          "--hostname",
                          "hutch",
                          "--seccomp",
                          filter_fd,
                          "--cap-drop",
                          "ALL",
                          "--ro-bind",
                          "/usr",
                          "/usr",
                          "--symlink",
                          "usr/bin",
                          "/bin",
                          "--symlink",
                          "usr/lib",
                          "/lib",
                          "--symlink",
                          "usr/lib64",
                          "/lib64",
                          "--ro-bind",
                          "/etc/ld.so.cache",
                          "/etc/ld.so.cache",
                          "--proc",
                          "/proc",
                          "--dev",
                          "/dev",
                          "--size",
                          "67108864",
                          "--tmpfs",
                          "/tmp",
                          "--size",
                          "67108864",
                          "--tmpfs",
                          "/work",
                          "--chdir",
                          "/work",
                          PYTHON,
                          "-I",
                          "-S",
                          "-c",
                          "pass",
                          NULL};

    (void)lseek((int)strtol(filter_fd, NULL, 10), 0, SEEK_SET);
    run_argv(argv);
}

static void hutch_command(void)
{
    const char *argv[] = {command, "run", script, NULL};

    run_argv(argv);
}

static void library(enum hutch_verb verb, const char *code)
{
    struct hutch_error err = {0};
    struct hutch_request *request = NULL;
    struct hutch_result *result = NULL;

    if (hutch_request_new(verb, &request, &err) < 0 ||
        hutch_request_set_code(request, "python", code, strlen(code), &err) < 0 ||
        hutch_run(request, &result, &err) < 0)
        die(err.message);
    if (!hutch_result_ok(result))
        die(hutch_result_json(result, NULL));
    hutch_result_free(result);
    hutch_request_free(request);
}

static void library_run(void)
{
    library(HUTCH_VERB_RUN, ONE_LINE);
}
static void library_exec(void)
{
    library(HUTCH_VERB_EXEC, "return 1");
}

/* ---- hosts that are big ---------------------------------------------------------------------- */

static void *ballast;
#define BALLAST_BYTES (2UL << 30)

static void grow_host(void)
{
    ballast = mmap(NULL, BALLAST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ballast == MAP_FAILED)
        die("no 2 GiB of memory");
    memset(ballast, 1, BALLAST_BYTES);
}

static void shrink_host(void)
{
    (void)munmap(ballast, BALLAST_BYTES);
}

static int many[10000];

static void open_many(void)
{
    struct rlimit limit = {20000, 20000};

    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (size_t i = 0; i < 10000; i++)
        many[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (many[9999] < 0)
        die("the limit of open files is below 10,000");
}

static void close_many(void)
{
    for (size_t i = 0; i < 10000; i++)
        (void)close(many[i]);
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct contender {
    const char *name;
    void (*run)(void);
    double *ms;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(struct contender *c, int rounds)
{
    qsort(c->ms, (size_t)rounds, sizeof(double), by_size);
    return c->ms[rounds / 2];
}

static void measure(const char *title, struct contender *contenders, size_t len, int rounds)
{
    double base;

    for (size_t i = 0; i < len; i++) {
        contenders[i].ms = calloc((size_t)rounds, sizeof(double));
        contenders[i].run(); /* warm caches */
    }
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < len; i++) {
            double start = now_ms();
            contenders[i].run();
            contenders[i].ms[round] = now_ms() - start;
        }
    (void)printf("%s (%d rounds, medians)\n", title, rounds);
    base = median(&contenders[0], rounds);
    for (size_t i = 0; i < len; i++) {
        double ms = i == 0 ? base : median(&contenders[i], rounds);
        (void)printf("  %-28s %8.2f ms  %5.2f x\n", contenders[i].name, ms, ms / base);
        free(contenders[i].ms);
    }
    (void)fflush(stdout);
}

/* The small and the big host take turns, in pairs, so that both see the same machine. */
static void compare_hosts(const char *title, const char *name, void (*grow)(void),
                          void (*shrink)(void), int rounds)
{
    double *small = calloc((size_t)rounds, sizeof(double));
    double *big = calloc((size_t)rounds, sizeof(double));
    struct contender a = {"library run, small host", NULL, small}, b = {name, NULL, big};
    const int block = 20;

    for (int done = 0; done < rounds; done += block) {
        for (int pass = 0; pass < 2; pass++) {
            if (pass == 1)
                grow();
            for (int i = done; i < done + block && i < rounds; i++) {
                double start = now_ms();
                library_run();
                (pass == 1 ? big : small)[i] = now_ms() - start;
            }
            if (pass == 1)
                shrink();
        }
    }
    (void)printf("%s (%d rounds, medians)\n", title, rounds);
    double base = median(&a, rounds), other = median(&b, rounds);
    (void)printf("  %-28s %8.2f ms\n  %-28s %8.2f ms  %5.2f x\n", a.name, base, b.name, other,
                 other / base);
    free(small);
    free(big);
}

static void write_script(void)
{
    int fd = mkstemps(script, 3);

    if (fd < 0 || write(fd, ONE_LINE, strlen(ONE_LINE)) < 0)
        die("write the script");
    (void)close(fd);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 200;
    struct contender cold[] = {{"bare python3 -I -S -c pass", bare_python, NULL},
                               {"library: run one line", library_run, NULL},
                               {"command: run one line", hutch_command, NULL},
                               {"library: exec return 1", library_exec, NULL},
                               {"bubblewrap", bubblewrap, NULL}};
    size_t len = sizeof(cold) / sizeof(cold[0]);

    if (argc < 2 || rounds < 1)
        die("usage: bench COMMAND [ROUNDS]");
    command = argv[1];
    write_script();
    open_filter();
    if (access("/usr/bin/bwrap", X_OK) < 0)
        len--;
    measure("cold start", cold, len, rounds);
    compare_hosts("host of 2 GiB", "library run, 2 GiB resident", grow_host, shrink_host, rounds);
    compare_hosts("host with 10,000 open fds", "library run, 10,000 fds", open_many, close_many,
                  rounds);
    (void)unlink(script);
    return 0;
}
