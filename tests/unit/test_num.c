#include "base/num.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct hutch_error err;

#define OK(call, value, want)                                                                      \
    do {                                                                                           \
        cr_assert_eq((call), 0, "%s", err.message);                                                \
        cr_assert_eq(value, want);                                                                 \
    } while (0)
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        v = 77;                                                                                    \
        cr_assert_eq((call), -EINVAL);                                                             \
        cr_assert_eq(v, 77);                                                                       \
        cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);                                              \
        cr_assert(strstr(err.message, words), "%s", err.message);                                  \
    } while (0)

Test(num, u64_whole_text_in_range)
{
    uint64_t v;
    OK(num_u64("n", "1", 1, 10, &v, &err), v, 1);
    OK(num_u64("n", "010", 1, 10, &v, &err), v, 10);
    OK(num_u64("n", "18446744073709551615", 0, UINT64_MAX, &v, &err), v, UINT64_MAX);
    REFUSED(num_u64("--pids", "0", 1, 10, &v, &err), "--pids: '0' is out of range; give 1 to 10");
    REFUSED(num_u64("n", "11", 1, 10, &v, &err), "out of range");
    REFUSED(num_u64("n", "18446744073709551617", 0, 10, &v, &err), "out of range");
}

Test(num, u64_nothing_but_digits)
{
    uint64_t v;
    static const char *const BAD[] = {"",    " 1",  "1 ", "+1", "-1",      "1.0",
                                      "1e1", "0x1", "1K", "x",  "\xd9\xa1"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        REFUSED(num_u64("n", BAD[i], 0, UINT64_MAX, &v, &err), "is not a whole number; give 0 to");
}

Test(num, bytes_with_suffix)
{
    uint64_t v;
    const uint64_t max = (uint64_t)1 << 40;
    OK(num_bytes("n", "0", 0, max, &v, &err), v, 0);
    OK(num_bytes("n", "17", 0, max, &v, &err), v, 17);
    OK(num_bytes("n", "2k", 0, max, &v, &err), v, 2048);
    OK(num_bytes("n", "2K", 0, max, &v, &err), v, 2048);
    OK(num_bytes("n", "3m", 0, max, &v, &err), v, 3 << 20);
    OK(num_bytes("n", "1G", 0, max, &v, &err), v, 1 << 30);
    OK(num_bytes("n", "1T", 0, max, &v, &err), v, max);
    OK(num_bytes("n", "1t", 0, max, &v, &err), v, max);
    REFUSED(num_bytes("--memory", "2T", 1 << 20, max, &v, &err),
            "--memory: '2T' is out of range; give 1M to 1T");
    REFUSED(num_bytes("n", "1023", 1024, max, &v, &err), "give 1K to 1T");
    REFUSED(num_bytes("n", "1048577M", 0, max, &v, &err), "out of range");
}

Test(num, bytes_never_wraps)
{
    uint64_t v;
    /* 2^24 T is 2^64. */
    REFUSED(num_bytes("n", "16777216T", 0, UINT64_MAX - 1, &v, &err), "out of range");
    REFUSED(num_bytes("n", "16777217T", 0, 1000, &v, &err), "give 0 to 1000");
    REFUSED(num_bytes("n", "99999999999999999999", 0, 1000, &v, &err), "out of range");
}

Test(num, bytes_refuses_other_forms)
{
    uint64_t v;
    static const char *const BAD[] = {"",    "M",  "1.5M", "1MB", "1 M",
                                      "-1M", "1P", "1b",   "M1",  "1e3"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        REFUSED(num_bytes("n", BAD[i], 0, UINT64_MAX, &v, &err), "is not a size such as 64M");
}

Test(num, milli_decimals)
{
    uint64_t v;
    const uint64_t max = 86400000;
    OK(num_milli("n", "5", 1, max, &v, &err), v, 5000);
    OK(num_milli("n", "5.0", 1, max, &v, &err), v, 5000);
    OK(num_milli("n", "0.5", 1, max, &v, &err), v, 500);
    OK(num_milli("n", ".5", 1, max, &v, &err), v, 500);
    OK(num_milli("n", "0.001", 1, max, &v, &err), v, 1);
    OK(num_milli("n", "86400", 1, max, &v, &err), v, max);
    OK(num_milli("n", "86400.000000", 1, max, &v, &err), v, max);
    OK(num_milli("n", "000000000000000000000000001", 1, max, &v, &err), v, 1000);
    OK(num_milli("n", "1.00000000000000000000000000", 1, max, &v, &err), v, 1000);
}

Test(num, milli_rounds_up)
{
    uint64_t v;
    OK(num_milli("n", "0.0011", 1, 10000, &v, &err), v, 2);
    OK(num_milli("n", "1.0005", 1, 10000, &v, &err), v, 1001);
    OK(num_milli("n", "1.00000000000000000000000001", 1, 10000, &v, &err), v, 1001);
    OK(num_milli("n", "0.0000000001", 0, 10000, &v, &err), v, 1);
}

Test(num, milli_exponents_of_json)
{
    uint64_t v;
    OK(num_milli("n", "5e-1", 1, 10000, &v, &err), v, 500);
    OK(num_milli("n", "1E0", 1, 10000, &v, &err), v, 1000);
    OK(num_milli("n", "0.01e+2", 1, 10000, &v, &err), v, 1000);
    OK(num_milli("n", "0e999999999999999999999", 0, 10000, &v, &err), v, 0);
    REFUSED(num_milli("n", "1e999999999999999999999", 1, 10000, &v, &err), "out of range");
    REFUSED(num_milli("n", "1e-999999999999999999999", 1, 10000, &v, &err), "out of range");
    REFUSED(num_milli("n", "1e18", 1, 10000, &v, &err), "out of range");
}

Test(num, milli_range_is_exact)
{
    uint64_t v;
    REFUSED(num_milli("--timeout", "0.0001", 1, 86400000, &v, &err),
            "--timeout: '0.0001' is out of range; give 0.001 to 86400");
    REFUSED(num_milli("n", "0.00099999", 1, 86400000, &v, &err), "out of range");
    REFUSED(num_milli("n", "86400.0001", 1, 86400000, &v, &err), "out of range");
    REFUSED(num_milli("n", "0", 1, 86400000, &v, &err), "out of range");
    REFUSED(num_milli("n", "0.009", 10, 1024000, &v, &err), "give 0.01 to 1024");
    REFUSED(num_milli("n", "99999999999999999999999999", 1, UINT64_MAX - 1, &v, &err),
            "out of range");
}

Test(num, milli_refuses_other_forms)
{
    uint64_t v;
    static const char *const BAD[] = {"",     ".",     "5.",    "-1", "+1",   "1e",  "1e+",
                                      "1.e1", "e1",    "1 ",    " 1", "inf",  "nan", "0x1",
                                      "1,5",  "1.2.3", "1e1.5", "5s", "1e--1"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        REFUSED(num_milli("n", BAD[i], 0, UINT64_MAX, &v, &err), "is not a number; give 0 to");
}
