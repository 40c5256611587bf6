/*
 * doctor_box.c - the doctor's real boxes: one in which what a box must refuse is attempted, with
 * baits that were proved to be within reach outside; and one for each language.
 */
#include "box/doctor_box.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/facts.h"

#define PROGRAM_NAME "hutch-doctor"

/* ---- baits ----------------------------------------------------------------------------------- */

static int listen_here(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *any = (struct sockaddr *)(void *)&address;
    socklen_t len = sizeof(address);
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, any, len) < 0 || listen(fd, 4) < 0 || getsockname(fd, any, &len) < 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return take_fd(&fd);
}

static bool was_reached(int listener)
{
    _cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    return fd >= 0;
}

/* Where every user may put a file, and where a box has directories of its own or none. */
static bool put_file(char *path, size_t size)
{
    static const char *const PLACES[] = {"/tmp", "/var/tmp", "/dev/shm"};
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
        (void)snprintf(path, size, "%s/hutch-doctor-%016llx", PLACES[i],
                       (unsigned long long)random);
        _cleanup_close_ int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
        if (fd >= 0)
            return true;
    }
    return false;
}

struct baits {
    int listener;
    char file[64];
    struct probe_baits probe;
    bool proved[PROBE_ATTEMPTS_COUNT]; /* outside it gets through, or can't be shown outside */
};

static void baits_put(struct baits *baits, const char *variable)
{
    *baits = (struct baits){.listener = -1};
    baits->listener = listen_here(&baits->probe.port);
    if (!put_file(baits->file, sizeof(baits->file)))
        baits->file[0] = '\0';
    baits->probe.file = baits->file;
    baits->probe.variable = variable;
    for (size_t i = 0; i < PROBE_ATTEMPTS_COUNT; i++)
        baits->proved[i] =
            i >= PROBE_ATTEMPT_USR_WRITE || probe_try((enum probe_attempt_index)i, &baits->probe);
    if (baits->listener >= 0)
        baits->proved[PROBE_ATTEMPT_NETWORK] &= was_reached(baits->listener);
}

static void baits_take_away(struct baits *baits)
{
    close_fd(&baits->listener);
    if (baits->file[0] != '\0')
        (void)unlink(baits->file);
}

/* ---- the box with the attempts --------------------------------------------------------------- */

void doctor_inside(const struct probe_baits *baits, struct buf *out)
{
    for (size_t i = 0; i < PROBE_ATTEMPTS_COUNT; i++)
        buf_printf(out, "%s %s\n", PROBE_ATTEMPTS[i].name,
                   probe_try((enum probe_attempt_index)i, baits) ? "open" : "held");
}

static void cleanup_request(struct hutch_request **request)
{
    hutch_request_free(*request);
}

static void cleanup_result(struct hutch_result **result)
{
    hutch_result_free(*result);
}

static int set_command(struct hutch_request *request, const struct doctor_program *program,
                       const struct probe_baits *baits, struct hutch_error *err)
{
    char port[16];
    const char *argv[16] = {"/work/" PROGRAM_NAME};
    size_t len = 1;

    (void)snprintf(port, sizeof(port), "%d", baits->port);
    for (size_t i = 0; program->args[i] != NULL && len < ARRAY_LEN(argv) - 4; i++)
        argv[len++] = program->args[i];
    argv[len++] = port;
    argv[len++] = baits->file;
    argv[len++] = baits->variable;
    int r = hutch_request_set_command(request, argv, err);

    if (r == 0)
        r = hutch_request_add_file(request, PROGRAM_NAME, program->data, program->len, 0700, err);
#ifdef __SANITIZE_ADDRESS__
    if (r == 0) /* it would trace the program and change a limit, which a box refuses */
        r = hutch_request_set(request, "env", "ASAN_OPTIONS=detect_leaks=0:disable_coredump=0",
                              err);
#endif
    return r;
}

static bool says(const struct hutch_result *result, const char *name, const char *answer)
{
    size_t len;
    const char *out = hutch_result_stream(result, 1, &len);
    char line[64];
    int line_len = snprintf(line, sizeof(line), "%s %s\n", name, answer);

    return out != NULL && memmem(out, len, line, (size_t)line_len) != NULL;
}

static void take_denials(const struct hutch_result *result, const struct baits *baits,
                         struct doctor_report *report)
{
    bool reached = baits->listener >= 0 && was_reached(baits->listener);

    for (size_t i = 0; i < PROBE_ATTEMPTS_COUNT; i++) {
        const struct probe_attempt *attempt = &PROBE_ATTEMPTS[i];
        if (baits->proved[i])
            report->denials[report->denials_len++] = (struct doctor_denial){
                .name = attempt->name,
                .what = attempt->what,
                .held =
                    says(result, attempt->name, "held") && !(i == PROBE_ATTEMPT_NETWORK && reached),
            };
    }
}

/* Why the box didn't run, or what its program said when it failed. */
static void take_error(const struct hutch_result *result, struct doctor_report *report)
{
    const char *error = hutch_result_error(result);
    size_t len = 0;
    const char *text = hutch_result_stream(result, 2, &len);
    const char *end = text != NULL ? memchr(text, '\n', len) : NULL;

    if (error != NULL)
        (void)snprintf(report->error, sizeof(report->error), "%s", error);
    else
        (void)snprintf(report->error, sizeof(report->error),
                       "its program ended with status %d: %.*s", hutch_result_exit_status(result),
                       (int)(end != NULL ? end - text : (ptrdiff_t)len), text != NULL ? text : "");
}

static void take_result(const struct hutch_result *result, const struct baits *baits,
                        struct doctor_report *report)
{
    report->receipt = result->receipt;
    report->box_ran = hutch_result_ok(result) == 1;
    if (report->box_ran)
        take_denials(result, baits, report);
    else
        take_error(result, report);
}

static int run_attempts(const struct doctor_program *program, const struct baits *baits,
                        struct doctor_report *report, struct hutch_error *err)
{
    _cleanup_(cleanup_request) struct hutch_request *request = NULL;
    _cleanup_(cleanup_result) struct hutch_result *result = NULL;
    int r = hutch_request_new(HUTCH_VERB_RUN, &request, err);

    if (r == 0)
        r = set_command(request, program, &baits->probe, err);
    if (r == 0)
        r = hutch_run(request, &result, err);
    if (r == 0)
        take_result(result, baits, report);
    return r;
}

int doctor_attempt(const struct doctor_program *program, struct doctor_report *report,
                   struct hutch_error *err)
{
    struct baits baits;
    int r;

    baits_put(&baits, program->variable);
    r = run_attempts(program, &baits, report, err);
    baits_take_away(&baits);
    return r;
}

/* ---- languages ------------------------------------------------------------------------------- */

static const struct {
    enum language language;
    enum hutch_verb verb;
    const char *id, *name, *code, *answer;
} TRIALS[] = {
    {LANGUAGE_PYTHON, HUTCH_VERB_EXEC, "exec", NULL, "return 6 * 7", "42"},
    {LANGUAGE_PYTHON, HUTCH_VERB_RUN, "python", "python", "print(6 * 7)", "42\n"},
    {LANGUAGE_JAVASCRIPT, HUTCH_VERB_RUN, "javascript", "javascript", "console.log(6 * 7)", "42\n"},
    {LANGUAGE_BASH, HUTCH_VERB_RUN, "bash", "bash", "echo $((6 * 7))", "42\n"},
};

static bool is_answer(const struct hutch_result *result, size_t trial)
{
    bool exec = TRIALS[trial].verb == HUTCH_VERB_EXEC;
    size_t len = 0;
    const char *text =
        exec ? hutch_result_output(result, &len) : hutch_result_stream(result, 1, &len);

    return hutch_result_ok(result) == 1 && text != NULL && len == strlen(TRIALS[trial].answer) &&
           memcmp(text, TRIALS[trial].answer, len) == 0;
}

static void found(struct findings *findings, size_t trial, const char *remedy, const char *cause)
{
    struct finding *finding =
        findings_add(findings, TRIALS[trial].id, TRIALS[trial].id, FINDING_WARNING);

    if (finding == NULL)
        return;
    (void)snprintf(finding->cause, sizeof(finding->cause), "%s", cause);
    (void)snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
}

static int try_language(size_t trial, struct findings *findings, struct hutch_error *err)
{
    _cleanup_(cleanup_request) struct hutch_request *request = NULL;
    _cleanup_(cleanup_result) struct hutch_result *result = NULL;
    const char *code = TRIALS[trial].code, *error;
    char cause[FINDING_TEXT];
    int r = hutch_request_new(TRIALS[trial].verb, &request, err);

    if (r == 0)
        r = hutch_request_set_code(request, TRIALS[trial].name, code, strlen(code), err);
    if (r == 0)
        r = hutch_run(request, &result, err);
    if (r < 0 || is_answer(result, trial))
        return r;
    error = hutch_result_error(result);
    (void)snprintf(cause, sizeof(cause), "`%s` didn't answer 42: %.300s", code,
                   error != NULL ? error : "something else came out");
    found(findings, trial, "see what `hutch run -v` says of a script", cause);
    return 0;
}

int doctor_try_languages(bool box_ran, struct findings *findings, struct hutch_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(TRIALS); i++) {
        const char *remedy;
        char cause[96];
        if (facts_interpreter(TRIALS[i].language, &remedy) == NULL) {
            (void)snprintf(cause, sizeof(cause), "there is no interpreter for %s in /usr",
                           language_info(TRIALS[i].language)->name);
            found(findings, i, remedy, cause);
        } else if (box_ran && !findings_have_layer(findings, TRIALS[i].id)) {
            int r = try_language(i, findings, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}
