#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "request/request.h"

static struct hutch_error err;

static void cleanup_request(struct hutch_request **request)
{
    hutch_request_free(*request);
}
#define _cleanup_request_ _cleanup_(cleanup_request)

static struct hutch_request *parse(enum hutch_verb verb, const char *json)
{
    struct hutch_request *r = NULL;
    cr_assert_eq(hutch_request_from_json(verb, json, strlen(json), &r, &err), 0, "%s: %s", json,
                 err.message);
    return r;
}

static void refused(enum hutch_verb verb, const char *json, const char *words)
{
    struct hutch_request *r = NULL;
    memset(&err, 0, sizeof(err));
    int rc = hutch_request_from_json(verb, json, strlen(json), &r, &err);
    cr_assert_eq(rc, -EINVAL, "%s: %d", json, rc);
    cr_assert_null(r);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert(strstr(err.message, words), "%s: '%s' has no '%s'", json, err.message, words);
}

#define exec_refused(json, words) refused(HUTCH_VERB_EXEC, json, words)
#define run_refused(json, words) refused(HUTCH_VERB_RUN, json, words)

Test(json_request, every_member_of_exec)
{
    _cleanup_request_ struct hutch_request *r =
        parse(HUTCH_VERB_EXEC,
              "{\"code\":\"return args['x']\\n\",\"args\":{\"x\": 1180591620717411303424 },"
              "\"allowed_imports\":[\"math\",\"os.path\"],\"timeout_s\":2.5,\"memory_mb\":64,"
              "\"check\":\"none\",\"policy\":\"tool\",\"python\":\"/opt/py\",\"agent_id\":\"a-1\","
              "\"dependencies\":[\"x==1\"],"
              "\"limits\":{\"cpus\":0.5,\"cpu_time_s\":1e0,\"pids\":8,\"disk_bytes\":65536,"
              "\"max_output_bytes\":0}}");
    cr_assert_str_eq(r->code, "return args['x']\n");
    cr_assert_str_eq(r->args_json, "{\"x\": 1180591620717411303424 }");
    cr_assert_eq(r->allowed_imports.len, 2);
    cr_assert_str_eq(r->allowed_imports.items[1], "os.path");
    cr_assert_eq(r->limits.timeout_ms, 2500);
    cr_assert_eq(r->limits.memory_bytes, 64 << 20);
    cr_assert(r->unchecked);
    cr_assert_str_eq(r->policy, "tool");
    cr_assert_str_eq(r->python, "/opt/py");
    cr_assert_str_eq(r->agent_id, "a-1");
    cr_assert_eq(r->dependencies.len, 1);
    cr_assert_eq(r->limits.cpus_milli, 500);
    cr_assert_eq(r->limits.cpu_time_ms, 1000);
    cr_assert_eq(r->limits.pids, 8);
    cr_assert_eq(r->limits.disk_bytes, 65536);
    cr_assert_eq(r->limits.max_output_bytes, 0);
    cr_assert_eq(request_check(r, &err), 0, "%s", err.message);
}

Test(json_request, what_is_left_out_has_its_default)
{
    _cleanup_request_ struct hutch_request *r = parse(HUTCH_VERB_EXEC, "{\"code\":\"\"}");
    cr_assert_eq(r->language, LANGUAGE_PYTHON);
    cr_assert_null(r->args_json);
    cr_assert_not(r->unchecked);
    cr_assert_eq(r->limits.timeout_ms, 5000);
    cr_assert_eq(r->limits.memory_bytes, 128 << 20);
    cr_assert_null(r->policy);
    _cleanup_request_ struct hutch_request *nulls =
        parse(HUTCH_VERB_EXEC, "{\"code\":\"\",\"agent_id\":null,\"dependencies\":null,"
                               "\"policy\":null,\"python\":null,\"check\":\"strict\",\"args\":{}}");
    cr_assert_null(nulls->agent_id);
    cr_assert_null(nulls->policy);
}

Test(json_request, unknown_members_are_named)
{
    exec_refused("{\"code\":\"\",\"timeout\":1}", "unknown member 'timeout' in the request");
    exec_refused("{\"code\":\"\",\"Code\":\"\"}", "unknown member 'Code'");
    exec_refused("{\"code\":\"\",\"files\":[]}", "unknown member 'files'");
    exec_refused("{\"code\":\"\",\"limits\":{\"ram\":1}}", "limits: unknown member 'ram'");
    exec_refused("{\"code\":\"\",\"limits\":{\"timeout_s\":1}}", "unknown member 'timeout_s'");
    run_refused("{\"code\":\"\",\"check\":\"none\"}", "unknown member 'check'");
    run_refused("{\"files\":[{\"name\":\"a\",\"text\":\"\",\"mode\":1}]}",
                "files[0]: unknown member 'mode'");
}

Test(json_request, duplicate_members_are_refused)
{
    exec_refused("{\"code\":\"\",\"code\":\"x\"}", "'code' is there twice");
    exec_refused("{\"code\":\"\",\"limits\":{\"pids\":1,\"pids\":2}}", "'pids' is there twice");
}

Test(json_request, the_document_is_one_object)
{
    exec_refused("", "not JSON");
    exec_refused("[]", "the request: must be an object, not an array");
    exec_refused("null", "must be an object");
    exec_refused("{\"code\":\"\"} {}", "not JSON");
    exec_refused("{}", "code: exec needs it");
    struct hutch_request *r = NULL;
    cr_assert_eq(hutch_request_from_json(HUTCH_VERB_EXEC, NULL, 0, &r, &err), -EINVAL);
    cr_assert_eq(hutch_request_from_json((enum hutch_verb)9, "{}", 2, &r, &err), -EINVAL);
}

Test(json_request, types_are_strict)
{
    exec_refused("{\"code\":1}", "code: must be a string, not a number");
    exec_refused("{\"code\":null}", "code: must be a string, not null");
    exec_refused("{\"code\":\"\",\"args\":[]}", "args: must be an object, not an array");
    exec_refused("{\"code\":\"\",\"args\":null}", "args: must be an object");
    exec_refused("{\"code\":\"\",\"allowed_imports\":\"math\"}",
                 "allowed_imports: must be an array");
    exec_refused("{\"code\":\"\",\"allowed_imports\":[\"math\",1]}",
                 "allowed_imports[1]: must be a");
    exec_refused("{\"code\":\"\",\"timeout_s\":\"5\"}",
                 "timeout_s: must be a number, not a string");
    exec_refused("{\"code\":\"\",\"timeout_s\":true}", "timeout_s: must be a number");
    exec_refused("{\"code\":\"\",\"timeout_s\":null}", "timeout_s: must be a number");
    exec_refused("{\"code\":\"\",\"limits\":[]}", "limits: must be an object");
    exec_refused("{\"code\":\"\",\"check\":false}", "check: must be a string");
    exec_refused("{\"code\":\"\",\"check\":\"off\"}", "check: 'off' is not one of strict, none");
    exec_refused("{\"code\":\"\",\"policy\":1}", "policy: must be a string");
}

/* A document with one limit in it, where that limit belongs. */
static const char *with_limit(char json[200], bool top, const char *member, const char *value)
{
    if (top)
        snprintf(json, 200, "{\"code\":\"\",\"%s\":%s}", member, value);
    else
        snprintf(json, 200, "{\"code\":\"\",\"limits\":{\"%s\":%s}}", member, value);
    return json;
}

Test(json_request, numbers_at_their_edges)
{
    static const struct {
        const char *member, *least, *most;
        const char *bad[5];
    } CASES[] = {
        {"timeout_s", "0.001", "86400", {"0", "0.0001", "86400.1", "-1", "1e400"}},
        {"memory_mb", "1", "1048576", {"0", "1048577", "1.5", "18446744073709551617", "1e3"}},
        {"cpus", "0.01", "1024", {"0", "0.009", "1025", "-1", "1e-400"}},
        {"cpu_time_s", "0.001", "86400", {"0", "0.0001", "86401", "-0.5", "1e99"}},
        {"pids", "1", "32768", {"0", "32769", "-1", "2.0", "4294967297"}},
        {"disk_bytes", "65536", "1099511627776", {"65535", "0", "1099511627777", "-1", "1e6"}},
        {"max_output_bytes", "0", "1073741824", {"1073741825", "-1", "0.5", "-0", "1e400"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char json[200];
        bool top = i < 2;
        const char *member = CASES[i].member;
        hutch_request_free(parse(HUTCH_VERB_EXEC, with_limit(json, top, member, CASES[i].least)));
        hutch_request_free(parse(HUTCH_VERB_EXEC, with_limit(json, top, member, CASES[i].most)));
        for (size_t j = 0; j < ARRAY_LEN(CASES[i].bad); j++) {
            exec_refused(with_limit(json, top, member, CASES[i].bad[j]), member);
            cr_assert(strstr(err.message, "give "), "%s", err.message);
        }
    }
}

Test(json_request, texts_arrive_as_sent_or_not_at_all)
{
    exec_refused("{\"code\":\"a\\u0000b\"}", "code: a NUL at byte 1");
    exec_refused("{\"code\":\"\\ud800\"}", "code: has half a surrogate pair");
    exec_refused("{\"code\":\"\",\"policy\":\"a\\u0000b\"}", "policy: has a NUL");
    exec_refused("{\"code\":\"\",\"python\":\"python3\"}", "python: 'python3' is not an absolute");
    exec_refused("{\"code\":\"\",\"allowed_imports\":[\"a b\"]}", "allowed_imports[0]: 'a b'");
    exec_refused("{\"code\":\"\",\"dependencies\":[\"\"]}", "dependencies[0]: is empty");
}

Test(json_request, identifiers)
{
    static const char *const BAD[] = {"", "../x", "-a", "_a", "a b", "a.b", "a/b", "\xc3\xa9"};
    char json[200];
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        snprintf(json, sizeof(json), "{\"code\":\"\",\"agent_id\":\"%s\"}", BAD[i]);
        exec_refused(json, "invalid agent_id '");
    }
    char id[66];
    memset(id, 'a', 65);
    id[65] = '\0';
    snprintf(json, sizeof(json), "{\"code\":\"\",\"agent_id\":\"%s\"}", id);
    exec_refused(json, "invalid agent_id");
    snprintf(json, sizeof(json), "{\"code\":\"\",\"agent_id\":\"%s\"}", id + 1);
    hutch_request_free(parse(HUTCH_VERB_EXEC, json));
    hutch_request_free(parse(HUTCH_VERB_EXEC, "{\"code\":\"\",\"agent_id\":\"A_b-9\"}"));
}

Test(json_request, every_member_of_run)
{
    _cleanup_request_ struct hutch_request *r = parse(
        HUTCH_VERB_RUN,
        "{\"code\":\"echo\",\"language\":\"bash\",\"args\":[\"a\",\"\"],\"timeout_s\":1,"
        "\"memory_mb\":32,\"limits\":{\"pids\":4},\"policy\":\"default\","
        "\"env\":{\"A\":\"1=2\",\"B\":\"\"},\"stdin\":\"x\\u0000y\",\"require\":[\"memory,pids\"],"
        "\"files\":[{\"name\":\"a\",\"data\":\"AAH/\"},"
        "{\"executable\":true,\"text\":\"hi\",\"name\":\"d/b\"},{\"name\":\"c\",\"data\":\"\"}]}");
    cr_assert_eq(r->language, LANGUAGE_BASH);
    cr_assert_eq(r->args.len, 2);
    cr_assert_eq(r->env.len, 2);
    cr_assert_str_eq(r->env.items[0], "A=1=2");
    cr_assert_eq(r->stdin_len, 3);
    cr_assert_eq(r->require_named, LAYER_BIT(LAYER_MEMORY) | LAYER_BIT(LAYER_PIDS));
    cr_assert_eq(r->files_len, 3);
    cr_assert_eq(r->files[0].len, 3);
    cr_assert_arr_eq((char *)r->files[0].data, "\x00\x01\xff", 3);
    cr_assert_not(r->files[0].executable);
    cr_assert(r->files[1].executable);
    cr_assert_str_eq(r->files[1].name, "d/b");
    cr_assert_eq(r->files[2].len, 0);
    cr_assert_eq(request_check(r, &err), 0, "%s", err.message);
}

Test(json_request, order_of_code_and_language_does_not_matter)
{
    _cleanup_request_ struct hutch_request *a =
        parse(HUTCH_VERB_RUN, "{\"language\":\"javascript\",\"code\":\"\"}");
    _cleanup_request_ struct hutch_request *b =
        parse(HUTCH_VERB_RUN, "{\"code\":\"\",\"language\":\"javascript\"}");
    cr_assert_eq(a->language, LANGUAGE_JAVASCRIPT);
    cr_assert_eq(b->language, LANGUAGE_JAVASCRIPT);
}

Test(json_request, run_takes_a_command)
{
    _cleanup_request_ struct hutch_request *r =
        parse(HUTCH_VERB_RUN, "{\"command\":[\"sh\",\"-c\",\"id\"]}");
    cr_assert_eq(r->command.len, 3);
    cr_assert_eq(request_check(r, &err), 0);
}

Test(json_request, run_is_as_strict)
{
    run_refused("{\"env\":[]}", "env: must be an object");
    run_refused("{\"env\":{\"A=B\":\"\"}}", "no '='");
    run_refused("{\"env\":{\"\":\"x\"}}", "no name");
    run_refused("{\"env\":{\"A\":1}}", "env.A: must be a string");
    run_refused("{\"env\":{\"A\":\"\\u0000\"}}", "env.A: has a NUL");
    run_refused("{\"args\":{}}", "args: must be an array");
    run_refused("{\"language\":\"perl\"}", "perl");
    run_refused("{\"files\":{}}", "files: must be an array");
    run_refused("{\"files\":[1]}", "files[0]: must be an object");
    run_refused("{\"files\":[{\"name\":\"a\"}]}", "files[0]: needs a name, and data or text");
    run_refused("{\"files\":[{\"data\":\"\"}]}", "files[0]: needs a name");
    run_refused("{\"files\":[{\"name\":\"a\",\"data\":\"\",\"text\":\"\"}]}", "not both");
    run_refused("{\"files\":[{\"name\":\"../a\",\"text\":\"\"}]}", "files[0]: '../a'");
    run_refused("{\"files\":[{\"name\":\"a\\u0000\",\"text\":\"\"}]}", "files[0].name: has a NUL");
    run_refused("{\"files\":[{\"name\":\"a\",\"text\":\"\",\"executable\":1}]}",
                "files[0].executable: must be true or false");
    run_refused("{\"bind\":[\"/:/x\"]}", "unknown member 'bind'");
    run_refused("{\"rootfs\":\"/\"}", "unknown member 'rootfs'");
}

Test(json_request, base64_is_strict)
{
    static const char *const BAD[] = {"A",    "AA",   "AAA",      "AAAA=",     "AA=A",
                                      "A===", "====", "AA==AAAA", "AAA\\n",    "AA A",
                                      "AB==", "AAB=", "A-_A",     "AA\\u0000A"};
    char json[200];
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        snprintf(json, sizeof(json), "{\"files\":[{\"name\":\"a\",\"data\":\"%s\"}]}", BAD[i]);
        run_refused(json, "files[0].data: not base64");
    }
    _cleanup_request_ struct hutch_request *r =
        parse(HUTCH_VERB_RUN, "{\"files\":[{\"name\":\"a\",\"data\":\"Zg==\"},"
                              "{\"name\":\"b\",\"data\":\"Zm8=\"},"
                              "{\"name\":\"c\",\"data\":\"Zm9v\\/+8=\"}]}");
    cr_assert_eq(r->files[0].len, 1);
    cr_assert_eq(r->files[1].len, 2);
    cr_assert_arr_eq((char *)r->files[2].data, "foo\xff\xef", 5);
}

Test(json_request, hostile_depth_is_refused)
{
    _cleanup_buf_ struct buf json = BUF(0);
    buf_puts(&json, "{\"code\":\"\",\"args\":");
    for (int i = 0; i < 200000; i++)
        buf_puts(&json, "{\"a\":");
    buf_put(&json, "", 1);
    struct hutch_request *r = NULL;
    cr_assert_eq(hutch_request_from_json(HUTCH_VERB_EXEC, json.data, json.len - 1, &r, &err),
                 -E2BIG);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
}
