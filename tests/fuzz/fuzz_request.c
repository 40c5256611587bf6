/* The request document: what a caller sends, for either verb. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "request/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_limits(const struct hutch_request *request)
{
    struct limits limits = request->limits;
    for (size_t i = 0; i < LIMITS_LEN; i++) {
        uint64_t value = *limit_slot(&limits, &LIMITS[i]);
        bool none = value == 0 && LIMITS[i].defaults[request->verb] == 0;
        must(none || (value >= LIMITS[i].min && value <= LIMITS[i].max));
    }
}

/* What the box is handed as args is one JSON object, byte for byte from the document. */
static void check_args(const struct hutch_request *request)
{
    struct json_slice args;
    struct hutch_error err;
    if (!request->args_json)
        return;
    must(json_parse(request->args_json, request->args_json_len, JSON_MAX_DEPTH, HUTCH_STAGE_REQUEST,
                    &args, &err) == 0);
    must(args.type == JSON_OBJECT && args.len == request->args_json_len);
}

static void check_texts(const struct hutch_request *request)
{
    must(!request->code || !memchr(request->code, '\0', request->code_len));
    must(!request->python || request->python[0] == '/');
    for (size_t i = 0; i < request->env.len; i++) {
        const char *equals = strchr(request->env.items[i], '=');
        must(equals && equals != request->env.items[i]);
    }
    for (size_t i = 0; i < request->files_len; i++) {
        const char *name = request->files[i].name;
        must(name[0] && name[0] != '/' && strcmp(name, "..") != 0 && strncmp(name, "../", 3) != 0 &&
             !strstr(name, "/../"));
    }
}

static void parse(enum hutch_verb verb, const char *text, size_t size)
{
    struct hutch_request *request = NULL;
    struct hutch_error err = {0};
    int r = hutch_request_from_json(verb, text, size, &request, &err);
    must((r == 0) == (request != NULL));
    if (r < 0) {
        must(err.code == r && err.message[0] && memchr(err.message, '\0', sizeof(err.message)));
        return;
    }
    check_limits(request);
    check_args(request);
    check_texts(request);
    (void)request_check(request, &err);
    must(request_default_policy(request) != NULL);
    hutch_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a read past the end is seen. */
    char *text = malloc(size ? size : 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    parse(HUTCH_VERB_EXEC, text, size);
    parse(HUTCH_VERB_RUN, text, size);
    free(text);
    return 0;
}
