#include "plan/payload.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"

static struct hutch_error err;

static struct hutch_request exec_request(const char *code)
{
    return (struct hutch_request){
        .verb = HUTCH_VERB_EXEC,
        .language = LANGUAGE_PYTHON,
        .code = (char *)(uintptr_t)code,
        .code_len = strlen(code),
    };
}

#define TEXT_IS(buf, want)                                                                         \
    cr_assert((buf).len == strlen(want) && memcmp((buf).data, want, (buf).len) == 0, "%.*s",       \
              (int)(buf).len, (buf).data)

Test(payload, writes_the_request_of_exec)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    struct hutch_request request = exec_request("return 'a\"b\\\n\xc3\xa9'");
    cr_assert_eq(payload_request_json(&request, false, &buf, &err), 0);
    TEXT_IS(buf, "{\"mode\":\"exec\",\"check\":\"strict\",\"allowed_imports\":[],"
                 "\"code\":\"return 'a\\\"b\\\\\\n\xc3\xa9'\",\"args\":{}}");
}

Test(payload, splices_the_args_unchanged)
{
    static const char ARGS[] = "{ \"n\":1180591620717411303424, \"f\" : 1.10, \"f\":\"\\u00e9\"}";
    _cleanup_buf_ struct buf buf = BUF(0);
    struct hutch_request request = exec_request("pass");
    request.args_json = (char *)(uintptr_t)ARGS;
    request.args_json_len = strlen(ARGS);
    cr_assert_eq(payload_request_json(&request, false, &buf, &err), 0);
    cr_assert_not_null(memmem(buf.data, buf.len, ARGS, strlen(ARGS)));
}

Test(payload, lists_imports_and_waives_the_check)
{
    char *imports[] = {(char *)(uintptr_t) "json", (char *)(uintptr_t) "os.path"};
    _cleanup_buf_ struct buf buf = BUF(0);
    struct hutch_request request = exec_request("pass");
    request.allowed_imports = (struct text_list){imports, 2};
    request.unchecked = true;
    cr_assert_eq(payload_request_json(&request, false, &buf, &err), 0);
    TEXT_IS(buf, "{\"mode\":\"exec\",\"check\":\"none\",\"allowed_imports\":[\"json\",\"os.path\"],"
                 "\"code\":\"pass\",\"args\":{}}");
}

Test(payload, validates_strictly_and_without_args)
{
    static const char ARGS[] = "{\"x\":1}";
    _cleanup_buf_ struct buf buf = BUF(0);
    struct hutch_request request = exec_request("pass");
    request.unchecked = true;
    request.args_json = (char *)(uintptr_t)ARGS;
    request.args_json_len = strlen(ARGS);
    cr_assert_eq(payload_request_json(&request, true, &buf, &err), 0);
    TEXT_IS(buf, "{\"mode\":\"validate\",\"check\":\"strict\",\"allowed_imports\":[],"
                 "\"code\":\"pass\",\"args\":{}}");
}

Test(payload, refuses_code_that_is_not_utf8)
{
    _cleanup_buf_ struct buf buf = BUF(0);
    struct hutch_request request = exec_request("return '\xe9'");
    cr_assert_eq(payload_request_json(&request, false, &buf, &err), -EINVAL);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert_not_null(strstr(err.message, "UTF-8"));
}

Test(payload, says_when_there_is_no_room)
{
    _cleanup_buf_ struct buf buf = BUF(16);
    struct hutch_request request = exec_request("pass");
    cr_assert_eq(payload_request_json(&request, false, &buf, &err), -E2BIG);
    cr_assert_eq(err.stage, HUTCH_STAGE_PLAN);
}

static bool has_file(const struct runner_file *files, size_t len, const char *path)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(files[i].path, path) == 0)
            return files[i].len > 0;
    return false;
}

Test(payload, gives_each_use_of_python_its_runner)
{
    struct hutch_request request = exec_request("pass");
    size_t len = 0;
    const struct runner_file *files = payload_files(&request, &len);
    cr_assert(has_file(files, len, "python/exec.py"));
    cr_assert_not(has_file(files, len, "python/run.py"));
    cr_assert_not_null(strstr(payload_start(&request), "/run/hutch/python/exec."));

    request.verb = HUTCH_VERB_RUN;
    files = payload_files(&request, &len);
    cr_assert(has_file(files, len, "python/run.py"));
    cr_assert_not(has_file(files, len, "python/exec.py"));
    cr_assert_not_null(strstr(payload_start(&request), "/run/hutch/python/run."));
}

Test(payload, gives_other_programs_nothing)
{
    struct hutch_request request = exec_request("x");
    size_t len = 7;
    request.verb = HUTCH_VERB_RUN;
    request.language = LANGUAGE_BASH;
    cr_assert_null(payload_files(&request, &len));
    cr_assert_eq(len, 0);
    cr_assert_null(payload_start(&request));

    request = (struct hutch_request){.language = LANGUAGE_NONE};
    cr_assert_null(payload_files(&request, &len));
    cr_assert_null(payload_start(&request));
}
