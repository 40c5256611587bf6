/* Options, sizes and numbers: each line of the input is an option's name, a blank, its value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "request/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_limits(const struct hutch_request *request, const struct limits *most)
{
    struct limits now = request->limits, bound = *most;
    for (size_t i = 0; i < LIMITS_LEN; i++) {
        uint64_t value = *limit_slot(&now, &LIMITS[i]);
        uint64_t above = *limit_slot(&bound, &LIMITS[i]);
        bool none = value == 0 && LIMITS[i].defaults[request->verb] == 0;
        must(none || (value >= LIMITS[i].min && value <= LIMITS[i].max));
        must(above == 0 || value <= above);
    }
}

static void check_binds(const struct hutch_request *request)
{
    for (size_t i = 0; i < request->binds_len; i++) {
        const char *target = request->binds[i].target;
        must(request->binds[i].source[0] == '/' && target[0] == '/' && target[1]);
        must(!strstr(target, "//") && !strstr(target, "/../") && !strstr(target, "/./"));
        must(!path_below(target, "/proc") && !path_below("/run/hutch", target));
    }
}

static void check_walls(const struct hutch_request *request)
{
    must((request->require & LAYER_DEFAULT_REQUIRED) == LAYER_DEFAULT_REQUIRED);
    must((request->allow_missing & LAYER_NEVER_MISSING) == 0);
    must(((request->require | request->allow_missing) & ~LAYER_ALL) == 0);
    must(request->workdir[0] == '/');
    must(strcmp(request->rootfs, "host") == 0 || request->rootfs[0] == '/');
}

/* What is refused changes nothing and says something; what is taken is in its range. */
static void numbers(const char *value)
{
    struct hutch_error err = {0};
    uint64_t number = 7;
    if (num_u64("n", value, 10, 1000, &number, &err) == 0)
        must(number >= 10 && number <= 1000);
    else
        must(number == 7 && err.message[0]);
    number = 7;
    if (num_bytes("n", value, 1024, (uint64_t)1 << 40, &number, &err) == 0)
        must(number >= 1024 && number <= (uint64_t)1 << 40);
    else
        must(number == 7);
    number = 7;
    if (num_milli("n", value, 10, 86400000, &number, &err) == 0)
        must(number >= 10 && number <= 86400000);
    else
        must(number == 7);
}

static void line(struct hutch_request *run, struct hutch_request *exec, char *text)
{
    struct hutch_error err = {0};
    char *blank = strchr(text, ' ');
    const char *value = blank ? blank + 1 : "";
    if (blank)
        *blank = '\0';
    struct limits before = exec->limits;
    int r = hutch_request_set(run, text, value, &err);
    must(r == 0 || (r == err.code && err.message[0]));
    (void)request_set_lowering(exec, text, value, &err);
    check_limits(exec, &before);
    numbers(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hutch_error err;
    struct hutch_request *run = NULL, *exec = NULL;
    char *text = malloc(size + 1), *rest = text;
    if (text && hutch_request_new(HUTCH_VERB_RUN, &run, &err) == 0 &&
        hutch_request_new(HUTCH_VERB_EXEC, &exec, &err) == 0) {
        memcpy(text, data, size);
        text[size] = '\0';
        for (char *at = strsep(&rest, "\n"); at; at = strsep(&rest, "\n"))
            line(run, exec, at);
        check_limits(run, &(struct limits){0});
        check_binds(run);
        check_walls(run);
        (void)hutch_request_set_code(run, NULL, "x", 1, &err);
        (void)request_check(run, &err);
    }
    hutch_request_free(run);
    hutch_request_free(exec);
    free(text);
    return 0;
}
