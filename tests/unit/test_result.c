#include "box/result.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static struct hutch_error err;
static struct hutch_request request;
static struct hutch_result *result;

static void fresh(enum hutch_verb verb)
{
    hutch_result_free(result);
    request = (struct hutch_request){
        .verb = verb,
        .limits = {.timeout_ms = 5000,
                   .cpu_time_ms = 1500,
                   .memory_bytes = 128ULL << 20,
                   .max_output_bytes = 64000},
    };
    result = result_new(&request);
    cr_assert_not_null(result);
}

static void set_up(void)
{
    fresh(HUTCH_VERB_RUN);
}

static void tear_down(void)
{
    hutch_result_free(result);
}

TestSuite(result, .init = set_up, .fini = tear_down);

static void put(struct stream *stream, const char *data, size_t len, size_t lost)
{
    buf_put(&stream->kept, data, len);
    stream->total += len + lost;
}
#define PUT(stream, text) put(stream, text, sizeof(text) - 1, 0)
#define PUT_CUT(stream, text, lost) put(stream, text, sizeof(text) - 1, lost)

static void set_value(const char *json)
{
    result->value = strdup(json);
    result->value_len = strlen(json);
}

static const char *finish(void)
{
    size_t len;
    cr_assert_eq(result_finish(result, &err), 0, "%s", err.message);
    const char *json = hutch_result_json(result, &len);
    struct json_slice value;
    cr_assert_eq(len, strlen(json));
    cr_assert_null(strpbrk(json, "\r\n"), "one line: %s", json);
    cr_assert_eq(json_parse(json, len, 64, HUTCH_STAGE_RESULT, &value, &err), 0, "%s: %s", json,
                 err.message);
    return json;
}

#define HAS(json, part) cr_assert_not_null(strstr(json, part), "no %s in %s", part, json)
#define HAS_NOT(json, part) cr_assert_null(strstr(json, part), "%s in %s", part, json)

Test(result, run_has_every_member)
{
    result->has_receipt = true;
    result->usage.wall_us = 11300;
    result->usage.cpu_us = 8000;
    result->usage.memory_peak_bytes = 9437184;
    result->usage.pids_peak = 3;
    for (int i = 0; i < LAYER_COUNT; i++)
        receipt_on(&result->receipt, (enum layer)i, "on");
    PUT(&result->out, "a\"\n");
    const char *json = finish();
    const char *receipt = strstr(json, "{\"backend\"");
    cr_assert_not_null(receipt);
    const char *want =
        "{\"ok\":true,\"reason\":\"exit\",\"exit_code\":0,\"signal\":null,\"timed_out\":false,"
        "\"error\":null,\"stdout\":\"a\\\"\\n\",\"stderr\":\"\",\"stdout_truncated\":false,"
        "\"stderr_truncated\":false,\"stdout_bytes\":3,\"stderr_bytes\":0,\"files\":[],"
        "\"files_skipped\":[],\"files_cut\":false,\"duration_ms\":11.3,\"usage\":{\"wall_ms\":11.3,"
        "\"cpu_ms\":8,\"memory_peak_bytes\":9437184,\"memory_limit_bytes\":134217728,"
        "\"pids_peak\":3,\"pids_denied\":0,\"source\":\"cgroup\"},\"receipt\":";
    cr_assert_eq(strncmp(json, want, strlen(want)), 0, "%s", json);
    cr_assert_eq((size_t)(receipt - json), strlen(want));
}

Test(result, exec_has_every_member)
{
    fresh(HUTCH_VERB_EXEC);
    result->has_receipt = true;
    result->usage.sampled = true;
    result->usage.wall_us = 1;
    result->duration_us = 9012;
    set_value("{\"n\":1180591620717411303424,\"f\":0.10}");
    PUT(&result->err, "e");
    const char *json = finish();
    const char *want =
        "{\"success\":true,\"output\":{\"n\":1180591620717411303424,\"f\":0.10},\"error\":null,"
        "\"stdout\":\"\",\"stderr\":\"e\",\"stdout_truncated\":false,\"stderr_truncated\":false,"
        "\"stdout_bytes\":0,\"stderr_bytes\":1,\"duration_ms\":9.012,\"reason\":\"exit\","
        "\"usage\":{\"wall_ms\":0.001,\"cpu_ms\":0,\"memory_peak_bytes\":0,"
        "\"memory_limit_bytes\":134217728,\"pids_peak\":0,\"pids_denied\":0,"
        "\"source\":\"sampled\"},\"receipt\":{\"backend\":\"namespace\"";
    cr_assert_eq(strncmp(json, want, strlen(want)), 0, "%s", json);
    cr_assert_eq(hutch_result_ok(result), 1);
    cr_assert_eq(hutch_result_exit_status(result), 0);
}

Test(result, a_box_that_was_not_built_claims_nothing)
{
    result_fail(result, REASON_SETUP, "mount /proc: %s", "Operation not permitted");
    const char *json = finish();
    HAS(json, "\"ok\":false,\"reason\":\"setup\",\"exit_code\":null,\"signal\":null");
    HAS(json, "\"error\":\"mount /proc: Operation not permitted\"");
    HAS(json, "\"usage\":null,\"receipt\":null}");
}

Test(result, exec_without_a_value_fails)
{
    fresh(HUTCH_VERB_EXEC);
    result_fail(result, REASON_EXIT, "ValueError: %s", "no");
    const char *json = finish();
    HAS(json, "{\"success\":false,\"output\":null,\"error\":\"ValueError: no\",");
    HAS(json, "\"reason\":\"exit\"");
    cr_assert_eq(hutch_result_ok(result), 0);
    cr_assert_eq(hutch_result_exit_status(result), 1);
    cr_assert_null(hutch_result_output(result, NULL));
}

Test(result, a_value_that_came_before_a_kill_is_not_shown)
{
    fresh(HUTCH_VERB_EXEC);
    set_value("42");
    result->reason = REASON_TIMEOUT;
    HAS(finish(), "{\"success\":false,\"output\":null,\"error\":\"sandbox execution timed out");
}

Test(result, a_value_with_line_ends_stays_on_the_one_line)
{
    fresh(HUTCH_VERB_EXEC);
    set_value("[1,\n\r2]");
    HAS(finish(), "\"output\":[1,  2],");
}

Test(result, run_maps_each_reason_to_its_exit_status)
{
    static const struct {
        enum reason reason;
        int exit_code, signal, exec_error, status;
    } CASES[] = {
        {REASON_EXIT, 0, 0, 0, 0},
        {REASON_EXIT, 1, 0, 0, 1},
        {REASON_EXIT, 255, 0, 0, 255},
        {REASON_SIGNAL, 0, SIGSEGV, 0, 139},
        {REASON_SIGNAL, 0, SIGKILL, 0, 137},
        {REASON_TIMEOUT, 0, SIGKILL, 0, 124},
        {REASON_CPU_TIME, 0, SIGKILL, 0, 124},
        {REASON_MEMORY, 0, SIGKILL, 0, 137},
        {REASON_OUTPUT, 0, SIGKILL, 0, 137},
        {REASON_SYSCALL, 0, SIGSYS, 0, 159},
        {REASON_REQUEST, 0, 0, 0, 2},
        {REASON_SETUP, 0, 0, 0, 125},
        {REASON_SETUP, 0, 0, ENOENT, 127},
        {REASON_SETUP, 0, 0, ENOTDIR, 127},
        {REASON_SETUP, 0, 0, EACCES, 126},
        {REASON_SETUP, 0, 0, ENOEXEC, 126},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        fresh(HUTCH_VERB_RUN);
        result->reason = CASES[i].reason;
        result->exit_code = CASES[i].exit_code;
        result->signal = CASES[i].signal;
        result->exec_error = CASES[i].exec_error;
        (void)finish();
        cr_assert_eq(hutch_result_exit_status(result), CASES[i].status, "case %zu: %d", i,
                     hutch_result_exit_status(result));
        cr_assert_eq(hutch_result_ok(result), CASES[i].status == 0);
    }
}

Test(result, exec_maps_each_reason_to_its_exit_status)
{
    for (int i = 0; i < REASON_COUNT; i++) {
        fresh(HUTCH_VERB_EXEC);
        result->reason = (enum reason)i;
        (void)finish();
        int want = i == REASON_REQUEST ? 2 : i == REASON_SETUP ? 125 : 1;
        cr_assert_eq(hutch_result_exit_status(result), want, "%s", reason_name((enum reason)i));
    }
}

Test(result, exit_code_and_signal_belong_to_their_reasons)
{
    result->exit_code = 3;
    const char *json = finish();
    HAS(json, "\"ok\":false,\"reason\":\"exit\",\"exit_code\":3,\"signal\":null");
    HAS(json, "\"error\":null");
    fresh(HUTCH_VERB_RUN);
    result->reason = REASON_SIGNAL;
    result->signal = SIGSEGV;
    HAS(finish(), "\"reason\":\"signal\",\"exit_code\":null,\"signal\":11,\"timed_out\":false");
    fresh(HUTCH_VERB_RUN);
    result->reason = REASON_TIMEOUT;
    result->signal = SIGKILL;
    HAS(finish(), "\"exit_code\":null,\"signal\":null,\"timed_out\":true");
}

Test(result, errors_say_which_limit_it_was)
{
    static const struct {
        enum reason reason;
        int signal;
        const char *text;
    } CASES[] = {
        {REASON_TIMEOUT, 9, "sandbox execution timed out after 5.00s"},
        {REASON_CPU_TIME, 9, "CPU time limit reached after 1.50s"},
        {REASON_MEMORY, 9, "memory limit of 128 MiB reached"},
        {REASON_OUTPUT, 9, "output limit of 64000 bytes a stream reached"},
        {REASON_SIGNAL, SIGSEGV, "killed by signal 11 (SIGSEGV)"},
        {REASON_SIGNAL, SIGABRT, "killed by signal 6 (SIGABRT)"},
        {REASON_SIGNAL, 40, "killed by signal 40"},
        {REASON_SYSCALL, SIGSYS, "killed by the system call filter (SIGSYS)"},
        {REASON_NO_RESULT, 0, "the code ended without a result"},
        {REASON_PROTOCOL, 0, "the code left a malformed result"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        fresh(HUTCH_VERB_EXEC);
        result->reason = CASES[i].reason;
        result->signal = CASES[i].signal;
        (void)finish();
        cr_assert_str_eq(hutch_result_error(result), CASES[i].text);
    }
}

Test(result, small_limits_are_told_exactly)
{
    result->limits.timeout_ms = 1;
    result->reason = REASON_TIMEOUT;
    result_describe(result);
    cr_assert_str_eq(result->error, "sandbox execution timed out after 0.001s");
    result_fail(result, REASON_TIMEOUT, "mine");
    result_describe(result);
    cr_assert_str_eq(result->error, "mine", "a text that is set stays");
    fresh(HUTCH_VERB_RUN);
    result->usage.memory_limit_bytes = (1 << 20) + 1;
    result->reason = REASON_MEMORY;
    result_describe(result);
    cr_assert_str_eq(result->error, "memory limit of 1048577 bytes reached");
}

Test(result, milliseconds_have_up_to_three_decimals)
{
    static const struct {
        uint64_t us;
        const char *text;
    } CASES[] = {
        {0, "\"duration_ms\":0,"},         {1, "\"duration_ms\":0.001,"},
        {50, "\"duration_ms\":0.05,"},     {999, "\"duration_ms\":0.999,"},
        {1000, "\"duration_ms\":1,"},      {11300, "\"duration_ms\":11.3,"},
        {11030, "\"duration_ms\":11.03,"}, {86400000000, "\"duration_ms\":86400000,"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        fresh(HUTCH_VERB_RUN);
        result->duration_us = CASES[i].us;
        HAS(finish(), CASES[i].text);
    }
}

Test(result, output_at_the_limit_is_not_flagged)
{
    PUT(&result->out, "12345678");
    PUT_CUT(&result->err, "12345678", 1);
    const char *json = finish();
    HAS(json, "\"stdout_truncated\":false,\"stderr_truncated\":true,\"stdout_bytes\":8,"
              "\"stderr_bytes\":9");
}

Test(result, a_cut_drops_the_character_that_it_split)
{
    static const struct {
        const char *kept;
        size_t want;
    } CASES[] = {
        {"ab", 2},
        {"a\xc3", 1},     /* of two bytes */
        {"a\xe2\x82", 1}, /* of three */
        {"a\xe0", 1},
        {"a\xe0\xa4", 1},
        {"a\xed\x9f", 1},
        {"a\xf0", 1}, /* of four */
        {"a\xf0\x9f", 1},
        {"a\xf0\x9f\x98", 1},
        {"a\xf4\x8f\xbf", 1},
        {"a\xc3\xa9", 3}, /* whole ones stay */
        {"a\xf0\x9f\x98\x80", 5},
        {"a\xff", 2}, /* what is no character at all stays */
        {"a\x80\x80\x80\x80", 5},
        {"\xe2", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        fresh(HUTCH_VERB_RUN);
        result->out.kept = BUF(strlen(CASES[i].kept)); /* full: the stand-in needs no room */
        put(&result->out, CASES[i].kept, strlen(CASES[i].kept), 100);
        const char *json = finish();
        size_t len;
        (void)hutch_result_stream(result, 1, &len);
        cr_assert_eq(len, CASES[i].want, "case %zu: %zu", i, len);
        HAS(json, "\"stdout_truncated\":true");
        cr_assert_eq(result->out.total, strlen(CASES[i].kept) + 100);
    }
}

Test(result, a_whole_output_keeps_even_a_broken_end)
{
    PUT(&result->out, "a\xe2\x82");
    const char *json = finish();
    HAS(json, "\"stdout\":\"a\xef\xbf\xbd\",\"stdout_b64\":\"YeKC\"");
}

Test(result, bytes_that_are_not_text_come_back_beside_it)
{
    PUT(&result->out, "ok\xff\xfe\x00"
                      "end");
    PUT(&result->err, "plain");
    const char *json = finish();
    HAS(json,
        "\"stdout\":\"ok\xef\xbf\xbd\xef\xbf\xbd\\u0000end\",\"stdout_b64\":\"b2v//gBlbmQ=\"");
    HAS_NOT(json, "stderr_b64");
    size_t len;
    const void *bytes = hutch_result_stream(result, 1, &len);
    cr_assert_eq(len, 8);
    cr_assert_arr_eq((const char *)bytes,
                     "ok\xff\xfe\x00"
                     "end",
                     8);
}

Test(result, a_stream_that_was_passed_on_is_counted_only)
{
    result->out.passed_on = result->err.passed_on = true;
    result->out.total = 64000;
    result->err.total = 64001;
    const char *json = finish();
    HAS(json, "\"stdout\":\"\",\"stderr\":\"\",\"stdout_truncated\":false,"
              "\"stderr_truncated\":true,\"stdout_bytes\":64000,\"stderr_bytes\":64001");
}

static void add_files(void)
{
    struct collected *files = &result->files;
    files->files = calloc(2, sizeof(*files->files));
    files->files[0] = (struct collected_file){
        .name = strdup("a\xff"), .name_len = 2, .data = strdup("12"), .data_len = 2, .size = 3};
    files->files[1] = (struct collected_file){
        .name = strdup("out.csv"), .name_len = 7, .data = strdup(""), .data_len = 0, .size = 0};
    files->files_len = 2;
    files->skipped = calloc(1, sizeof(*files->skipped));
    files->skipped[0] =
        (struct skipped_file){.name = strdup("l\xfe"), .name_len = 2, .why = "symlink"};
    files->skipped_len = 1;
}

Test(result, files_come_with_their_data)
{
    add_files();
    result->files.cut = true;
    HAS(finish(), "\"files\":[{\"name\":\"a\xef\xbf\xbd\",\"name_b64\":\"Yf8=\",\"size\":3,"
                  "\"data\":\"MTI=\",\"truncated\":true},{\"name\":\"out.csv\",\"size\":0,"
                  "\"data\":\"\",\"truncated\":false}],\"files_skipped\":[{\"name\":\"l\xef\xbf\xbd"
                  "\",\"name_b64\":\"bP4=\",\"why\":\"symlink\"}],\"files_cut\":true");
}

Test(result, files_data_can_be_left_out)
{
    request.omit_file_data = true;
    hutch_result_free(result);
    result = result_new(&request);
    add_files();
    const char *json = finish();
    HAS(json, "{\"name\":\"out.csv\",\"size\":0,\"truncated\":false}");
    HAS_NOT(json, "\"data\"");
}

Test(result, files_are_handed_out_by_index)
{
    add_files();
    (void)finish();
    const char *name = NULL;
    const void *data = NULL;
    size_t len = 99;
    cr_assert_eq(hutch_result_file_count(result), 2);
    cr_assert_eq(hutch_result_file(result, 1, &name, &data, &len), 0);
    cr_assert_str_eq(name, "out.csv");
    cr_assert_not_null(data);
    cr_assert_eq(len, 0);
    len = 99;
    cr_assert_eq(hutch_result_file(result, 2, &name, &data, &len), -EINVAL);
    cr_assert_eq(len, 99);
}

Test(result, streams_are_one_and_two)
{
    PUT(&result->err, "e");
    (void)finish();
    size_t len = 99;
    cr_assert_str_eq(hutch_result_stream(result, 1, &len), "");
    cr_assert_eq(len, 0);
    cr_assert_str_eq(hutch_result_stream(result, 2, &len), "e");
    cr_assert_eq(len, 1);
    cr_assert_null(hutch_result_stream(result, 0, &len));
    cr_assert_null(hutch_result_stream(result, 3, NULL));
}

Test(result, a_request_that_could_not_be_read_has_a_result)
{
    hutch_result_free(result);
    result = result_new(NULL);
    result->verb = HUTCH_VERB_EXEC;
    result_fail(result, REASON_REQUEST, "unknown member \"%s\"", "x");
    HAS(finish(), "{\"success\":false,\"output\":null,\"error\":\"unknown member \\\"x\\\"\"");
    cr_assert_eq(hutch_result_exit_status(result), 2);
    cr_assert_str_eq(hutch_result_reason(result), "request");
}

Test(result, free_takes_null)
{
    hutch_result_free(NULL);
}

Test(result, every_reason_has_its_name)
{
    static const char *const NAMES[] = {"exit",     "signal",  "timeout", "cpu_time",
                                        "memory",   "output",  "syscall", "no_result",
                                        "protocol", "invalid", "request", "setup"};
    cr_assert_eq(ARRAY_LEN(NAMES), REASON_COUNT);
    for (int i = 0; i < REASON_COUNT; i++)
        cr_assert_str_eq(reason_name((enum reason)i), NAMES[i]);
}
