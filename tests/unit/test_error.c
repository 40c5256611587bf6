#include "base/error.h"

#include <criterion/criterion.h>
#include <string.h>

Test(error, fills_and_returns_negative)
{
    struct hutch_error err;
    cr_assert_eq(error_set(&err, HUTCH_STAGE_LAUNCH, EPERM, "open `%s`", "x"), -EPERM);
    cr_assert_eq(err.code, -EPERM);
    cr_assert_eq(err.stage, HUTCH_STAGE_LAUNCH);
    cr_assert_str_eq(err.message, "open `x`");
    cr_assert_eq(error_set(&err, HUTCH_STAGE_LAUNCH, -EPERM, "x"), -EPERM);
}

Test(error, negative_without_an_error_object)
{
    cr_assert_eq(error_set(NULL, HUTCH_STAGE_LAUNCH, EPERM, "x"), -EPERM);
    cr_assert_eq(error_errno(NULL, HUTCH_STAGE_LAUNCH, EPERM, "x"), -EPERM);
    cr_assert_eq(error_oom(NULL, HUTCH_STAGE_LAUNCH), -ENOMEM);
    cr_assert_lt(error_set(NULL, HUTCH_STAGE_LAUNCH, 0, "x"), 0);
}

Test(error, errno_text_is_added)
{
    struct hutch_error err;
    cr_assert_eq(error_errno(&err, HUTCH_STAGE_HOST, ENOENT, "open `%s`", "x"), -ENOENT);
    cr_assert_str_eq(err.message, "open `x`: No such file or directory");
    error_errno(&err, HUTCH_STAGE_HOST, 99999, "x");
    cr_assert_str_eq(err.message, "x: unknown error");
}

Test(error, texts_do_not_follow_the_locale_or_the_sign)
{
    cr_assert_str_eq(error_text(EACCES), "Permission denied");
    cr_assert_str_eq(error_text(-EACCES), "Permission denied");
    cr_assert_str_eq(error_text(99999), "unknown error");
}

Test(error, request_is_the_callers_mistake)
{
    struct hutch_error err;
    cr_assert_eq(error_request(&err, "bad %d", 1), -EINVAL);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert_str_eq(err.message, "bad 1");
}

Test(error, long_message_is_cut_at_a_character)
{
    struct hutch_error err;
    char text[HUTCH_ERROR_TEXT * 2];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    error_set(&err, HUTCH_STAGE_HOST, EIO, "%s", text);
    cr_assert_eq(strlen(err.message), HUTCH_ERROR_TEXT - 1);
    /* A four-byte character at each place around the cut: whole or not at all. */
    for (size_t place = HUTCH_ERROR_TEXT - 6; place < HUTCH_ERROR_TEXT; place++) {
        memset(text, 'a', sizeof(text) - 1);
        memcpy(text + place, "\xf0\x9f\x90\x87", 4);
        error_set(&err, HUTCH_STAGE_HOST, EIO, "%s", text);
        size_t want = place + 4 <= HUTCH_ERROR_TEXT - 1 ? HUTCH_ERROR_TEXT - 1 : place;
        cr_assert_eq(strlen(err.message), want, "place %zu: %zu", place, strlen(err.message));
    }
}
