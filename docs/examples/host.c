/*
 * host.c - a program that runs code it doesn't trust.
 *
 *   cc -o host host.c $(pkg-config --cflags --libs hutch)
 *
 * First a script, waited for; then two boxes at once in a poll loop of our own, as a server
 * would have one. It is C11, and C++ as well.
 */
#include <errno.h>
#include <hutch.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static int complain(const char *what, const struct hutch_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return -1;
}

/* ---- a script, waited for ---- */

static int make_script(struct hutch_request **ret_request, struct hutch_error *err)
{
    static const char code[] = "import csv\n"
                               "total = sum(int(row[1]) for row in csv.reader(open('in.csv')))\n"
                               "open('total.txt', 'w').write(str(total))\n"
                               "print('added up')\n";
    static const char table[] = "apples,3\npears,4\n";
    struct hutch_request *request = NULL;
    int r = hutch_request_new(HUTCH_VERB_RUN, &request, err);

    if (r == 0)
        r = hutch_request_set_code(request, "python", code, strlen(code), err);
    if (r == 0)
        r = hutch_request_add_file(request, "in.csv", table, strlen(table), 0644, err);
    /* Every option of `hutch run`, by its name. */
    if (r == 0)
        r = hutch_request_set(request, "timeout", "10", err);
    if (r == 0)
        r = hutch_request_set(request, "memory", "256M", err);
    if (r < 0)
        hutch_request_free(request);
    else
        *ret_request = request;
    return r;
}

static void show_files(const struct hutch_result *result)
{
    for (size_t i = 0; i < hutch_result_file_count(result); i++) {
        const char *name;
        const void *data;
        size_t len;
        if (hutch_result_file(result, i, &name, &data, &len) == 0)
            printf("script: wrote %s: %.*s\n", name, (int)len, (const char *)data);
    }
}

static int run_and_wait(void)
{
    struct hutch_request *request = NULL;
    struct hutch_result *result = NULL;
    struct hutch_error err;
    int ok;

    if (make_script(&request, &err) < 0)
        return complain("script", &err);
    if (hutch_run(request, &result, &err) < 0) {
        hutch_request_free(request);
        return complain("script", &err);
    }
    /* That there is a result says nothing about how the script ended. */
    ok = hutch_result_ok(result);
    if (ok) {
        size_t len;
        const void *out = hutch_result_stream(result, 1, &len);
        printf("script: says %.*s", (int)len, (const char *)out);
        show_files(result);
    } else {
        const char *error = hutch_result_error(result);
        fprintf(stderr, "script: %s: %s\n", hutch_result_reason(result), error ? error : "");
    }
    hutch_result_free(result);
    hutch_request_free(request);
    return ok ? 0 : -1;
}

/* ---- two boxes in a loop of our own ---- */

struct job {
    const char *name;
    struct hutch_request *request;
    struct hutch_run *run;
    int done;
};

/* A function: its arguments and its value are JSON, numbers of any size come back as they are. */
static int start_function(struct job *job, struct hutch_error *err)
{
    static const char code[] = "return sum(args['numbers']) ** 20";
    static const char args[] = "{\"numbers\": [20, 22]}";
    int r = hutch_request_new(HUTCH_VERB_EXEC, &job->request, err);

    if (r == 0)
        r = hutch_request_set_code(job->request, "python", code, strlen(code), err);
    if (r == 0)
        r = hutch_request_set_args(job->request, args, strlen(args), err);
    return r < 0 ? r : hutch_run_start(job->request, &job->run, err);
}

/* A command that takes too long. */
static int start_command(struct job *job, struct hutch_error *err)
{
    static const char *const command[] = {"sh", "-c", "echo started; sleep 60", NULL};
    int r = hutch_request_new(HUTCH_VERB_RUN, &job->request, err);

    if (r == 0)
        r = hutch_request_set_command(job->request, command, err);
    if (r == 0)
        r = hutch_request_set(job->request, "timeout", "0.5", err);
    return r < 0 ? r : hutch_run_start(job->request, &job->run, err);
}

static int take_result(struct job *job, struct hutch_error *err)
{
    struct hutch_result *result = NULL;

    if (hutch_run_finish(job->run, &result, err) < 0)
        return complain(job->name, err);
    printf("%s: %s\n", job->name, hutch_result_json(result, NULL));
    hutch_result_free(result);
    return 0;
}

/* One round: waits until a box has something to say, and lets it say it. */
static int step_jobs(struct job *jobs, size_t len, size_t *left, struct hutch_error *err)
{
    struct pollfd fds[2];

    for (size_t i = 0; i < len; i++) {
        fds[i].fd = jobs[i].done ? -1 : hutch_run_fd(jobs[i].run);
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }
    if (poll(fds, (nfds_t)len, -1) < 0 && errno != EINTR)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (fds[i].revents == 0)
            continue;
        jobs[i].done = hutch_run_step(jobs[i].run, err);
        if (jobs[i].done < 0)
            return complain(jobs[i].name, err);
        if (jobs[i].done == 1) {
            --*left;
            if (take_result(&jobs[i], err) < 0)
                return -1;
        }
    }
    return 0;
}

static int run_in_a_loop(void)
{
    struct job jobs[2] = {{"function", NULL, NULL, 0}, {"command", NULL, NULL, 0}};
    struct hutch_error err;
    size_t left = 2;
    int r = 0;

    if (start_function(&jobs[0], &err) < 0 || start_command(&jobs[1], &err) < 0)
        r = complain("start", &err);
    while (r == 0 && left > 0)
        r = step_jobs(jobs, 2, &left, &err);
    for (size_t i = 0; i < 2; i++) {
        hutch_run_free(jobs[i].run); /* ends a box that still runs */
        hutch_request_free(jobs[i].request);
    }
    return r;
}

int main(void)
{
    printf("libhutch %s\n", hutch_version());
    return run_and_wait() < 0 || run_in_a_loop() < 0 ? 1 : 0;
}
