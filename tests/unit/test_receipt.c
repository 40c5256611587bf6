#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "box/result.h"

static struct receipt receipt;

static char *json(void)
{
    struct buf buf = BUF(0);
    receipt_put_json(&buf, &receipt);
    char *text = buf_take(&buf, NULL);
    cr_assert_not_null(text);
    return text;
}

static void all_on(void)
{
    memset(&receipt, 0, sizeof(receipt));
    for (int i = 0; i < LAYER_COUNT; i++)
        receipt_on(&receipt, (enum layer)i, "on");
}

TestSuite(receipt, .init = all_on);

Test(receipt, every_layer_is_named_in_order)
{
    receipt_on(&receipt, LAYER_MEMORY, "cgroup");
    _cleanup_free_ char *text = json();
    cr_assert_str_eq(
        text, "{\"backend\":\"namespace\",\"layers\":{\"user_ns\":\"on\",\"pid_ns\":\"on\","
              "\"mount_ns\":\"on\",\"net_ns\":\"on\",\"ipc_ns\":\"on\",\"uts_ns\":\"on\","
              "\"cgroup_ns\":\"on\",\"time_ns\":\"on\",\"root\":\"on\",\"caps\":\"on\","
              "\"no_new_privs\":\"on\",\"seccomp\":\"on\",\"landlock\":\"on\",\"cgroup\":\"on\","
              "\"memory\":\"cgroup\",\"pids\":\"on\",\"cpu\":\"on\"},\"missing\":[],\"notes\":[]}");
}

Test(receipt, a_missing_layer_has_its_cause)
{
    receipt_missing(&receipt, LAYER_LANDLOCK, "off", "the kernel has no %s", "Landlock");
    receipt_missing(&receipt, LAYER_MEMORY, "watchdog", "no cgroup: \"%s\"", "v1");
    _cleanup_free_ char *text = json();
    cr_assert_not_null(strstr(text, "\"landlock\":\"off\""));
    cr_assert_not_null(strstr(text, "\"memory\":\"watchdog\""));
    cr_assert_not_null(
        strstr(text, "\"missing\":[{\"layer\":\"landlock\",\"cause\":\"the kernel has no "
                     "Landlock\"},{\"layer\":\"memory\",\"cause\":\"no cgroup: \\\"v1\\\"\"}]"));
}

Test(receipt, what_is_on_again_is_not_missing)
{
    receipt_missing(&receipt, LAYER_CPU, "affinity", "no cgroup");
    receipt_on(&receipt, LAYER_CPU, "cgroup");
    _cleanup_free_ char *text = json();
    cr_assert_not_null(strstr(text, "\"missing\":[]"));
}

Test(receipt, a_layer_that_nobody_recorded_is_off)
{
    receipt.layers[LAYER_SECCOMP].how = NULL;
    _cleanup_free_ char *text = json();
    cr_assert_not_null(strstr(text, "\"seccomp\":\"off\""));
    cr_assert_not_null(strstr(text, "\"missing\":[{\"layer\":\"seccomp\",\"cause\":"));
}

Test(receipt, notes_are_said_once_and_bounded)
{
    receipt_note(&receipt, "groups of %s", "the caller");
    receipt_note(&receipt, "groups of the caller");
    receipt_note(&receipt, "another");
    cr_assert_eq(receipt.notes_len, 2);
    _cleanup_free_ char *text = json();
    cr_assert_not_null(strstr(text, "\"notes\":[\"groups of the caller\",\"another\"]"));
    for (int i = 0; i < 100; i++)
        receipt_note(&receipt, "note %d", i);
    cr_assert_eq(receipt.notes_len, ARRAY_LEN(receipt.notes));
}

Test(receipt, a_cause_that_is_cut_leaves_valid_json)
{
    char longer[2 * RECEIPT_CAUSE_TEXT];
    for (size_t i = 0; i + 2 < sizeof(longer); i += 2)
        memcpy(longer + i, "\xc3\xa9", 3);
    receipt_missing(&receipt, LAYER_CGROUP, "off", "%s", longer);
    _cleanup_free_ char *text = json();
    struct json_slice value;
    cr_assert_eq(json_parse(text, strlen(text), 8, HUTCH_STAGE_RESULT, &value, NULL), 0);
    cr_assert_eq(value.type, JSON_OBJECT);
}
