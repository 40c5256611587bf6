/* spawn.c - see spawn.h. */
#include "support/spawn.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP_DEFAULT ((size_t)64 << 20)
#define DEADLINE_DEFAULT_MS 60000

extern char **environ;

double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1000.0 + (double)now.tv_nsec / 1e6;
}

double slow(void)
{
    const char *text = getenv("HUTCH_TEST_SLOW");
    double factor = text ? strtod(text, NULL) : 1.0;
#ifdef __SANITIZE_ADDRESS__
    factor *= 2;
#endif
    return factor < 1.0 ? 1.0 : factor;
}

long rss_bound(long kib)
{
#ifdef __SANITIZE_ADDRESS__
    return 6 * kib;
#else
    return kib;
#endif
}

void sleep_ms(unsigned ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

static void child_exec(const struct spawn *spec, const int in, const int out, const int err)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(124);
    if (!spec->keep_fds)
        (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    if (spec->cwd && chdir(spec->cwd) < 0)
        _exit(124);
    if (spec->child)
        spec->child(spec->arg);
    union {
        const char *const *given;
        char *const *wanted; /* exec's type, which is older than const */
    } argv = {.given = spec->argv}, env = {.given = spec->env};
    execvpe(argv.wanted[0], argv.wanted, spec->env ? env.wanted : environ);
    _exit(errno == ENOENT ? 127 : 126);
}

void spawn_start(const struct spawn *spec, struct child *ret_child)
{
    int in[2] = {-1, -1}, out[2], err[2];

    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(err, O_CLOEXEC), 0);
    if (spec->input || spec->open_stdin)
        cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
    else
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(in[0], 0);
    double started = now_ms();
    pid_t pid = fork();
    cr_assert_geq(pid, 0, "fork: %s", strerror(errno));
    if (pid == 0)
        child_exec(spec, in[0], out[1], err[1]);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    *ret_child = (struct child){
        .pid = pid,
        .pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
        .in = in[1],
        .out = out[0],
        .err = err[0],
        .started_ms = started,
        .spec = *spec,
    };
    cr_assert_geq(ret_child->pidfd, 0);
    fcntl(ret_child->out, F_SETFL, O_NONBLOCK);
    fcntl(ret_child->err, F_SETFL, O_NONBLOCK);
    if (ret_child->in >= 0)
        fcntl(ret_child->in, F_SETFL, O_NONBLOCK);
}

/* Reads what is there; false at the end of the file. */
static bool drain(int fd, char **data, size_t *len, size_t *total, size_t keep)
{
    static char chunk[65536];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            return false;
        size_t take = *len + (size_t)got > keep ? keep - *len : (size_t)got;
        char *grown = realloc(*data, *len + take + 1);
        cr_assert_not_null(grown);
        memcpy(grown + *len, chunk, take);
        *data = grown;
        *len += take;
        *total += (size_t)got;
        grown[*len] = 0;
    }
}

/* Writes what fits; closes the pipe when all is written or nobody reads. */
static void feed(struct child *child, size_t *fed)
{
    const char *input = child->spec.input;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    ssize_t put = 0;
    if (*fed < child->spec.input_len)
        put = write(child->in, input + *fed, child->spec.input_len - *fed);
    signal(SIGPIPE, before);
    if (put > 0)
        *fed += (size_t)put;
    if (*fed >= child->spec.input_len || (put < 0 && errno != EAGAIN && errno != EINTR)) {
        close(child->in);
        child->in = -1;
    }
}

static void close_all(struct child *child)
{
    int *fds[] = {&child->in, &child->out, &child->err, &child->pidfd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

static void reap(struct child *child, struct output *ret)
{
    int status = 0;
    struct rusage usage;
    while (wait4(child->pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    ret->ms = now_ms() - child->started_ms;
    ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret->max_rss_kib = usage.ru_maxrss;
}

void spawn_finish(struct child *child, struct output *ret_output)
{
    struct output o = {.out = calloc(1, 1), .err = calloc(1, 1)};
    size_t keep = child->spec.keep_bytes ? child->spec.keep_bytes : KEEP_DEFAULT, fed = 0;
    double deadline =
        child->started_ms +
        (child->spec.deadline_ms ? child->spec.deadline_ms : DEADLINE_DEFAULT_MS) * slow();
    bool out_open = true, err_open = true, ended = false;

    while (!ended) {
        struct pollfd fds[] = {
            {.fd = child->pidfd, .events = POLLIN},
            {.fd = out_open ? child->out : -1, .events = POLLIN},
            {.fd = err_open ? child->err : -1, .events = POLLIN},
            {.fd = child->spec.open_stdin ? -1 : child->in, .events = POLLOUT},
        };
        double left = deadline - now_ms();
        if (left <= 0 && !o.late) {
            o.late = true;
            kill(child->pid, SIGKILL);
        }
        poll(fds, 4, o.late ? 1000 : (int)left + 1);
        ended = fds[0].revents != 0;
        if (fds[3].revents)
            feed(child, &fed);
        if (out_open && (fds[1].revents || ended))
            out_open = drain(child->out, &o.out, &o.out_len, &o.out_total, keep);
        if (err_open && (fds[2].revents || ended))
            err_open = drain(child->err, &o.err, &o.err_len, &o.err_total, keep);
    }
    o.pipe_held = out_open || err_open;
    reap(child, &o);
    close_all(child);
    *ret_output = o;
}

struct output spawn_run(const struct spawn *spec)
{
    struct child child;
    struct output output;
    spawn_start(spec, &child);
    spawn_finish(&child, &output);
    return output;
}

bool spawn_await(struct child *child, const char *text, unsigned within_ms)
{
    char *seen = calloc(1, 1);
    size_t len = 0, total = 0;
    double deadline = now_ms() + within_ms * slow();
    bool found = false, open = true;

    while (!found && open && now_ms() < deadline) {
        struct pollfd fd = {.fd = child->out, .events = POLLIN};
        if (poll(&fd, 1, 100) > 0)
            open = drain(child->out, &seen, &len, &total, KEEP_DEFAULT);
        found = strstr(seen, text) != NULL;
    }
    free(seen);
    return found;
}

void spawn_kill(struct child *child, int sig)
{
    (void)syscall(SYS_pidfd_send_signal, child->pidfd, sig, NULL, 0);
}

void output_free(struct output *output)
{
    free(output->out);
    free(output->err);
    output->out = output->err = NULL;
}
