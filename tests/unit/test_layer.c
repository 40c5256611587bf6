#include "base/layer.h"

#include <criterion/criterion.h>
#include <string.h>

Test(layer, names_go_both_ways)
{
    for (int i = 0; i < LAYER_COUNT; i++) {
        const char *name = layer_name((enum layer)i);
        cr_assert_eq(layer_from_name(name, strlen(name)), i, "%s", name);
    }
    cr_assert_str_eq(layer_name(LAYER_NO_NEW_PRIVS), "no_new_privs");
}

Test(layer, only_whole_names)
{
    cr_assert_eq(layer_from_name("user_ns,x", 7), LAYER_USER_NS);
    cr_assert_eq(layer_from_name("user_n", 6), -1);
    cr_assert_eq(layer_from_name("user_nsx", 8), -1);
    cr_assert_eq(layer_from_name("", 0), -1);
    cr_assert_eq(layer_from_name("CPU", 3), -1);
    cr_assert_str_eq(layer_name(LAYER_COUNT), "unknown");
}

Test(layer, what_can_never_go_is_required)
{
    cr_assert_eq(LAYER_NEVER_MISSING & ~LAYER_DEFAULT_REQUIRED, 0);
    cr_assert_eq(LAYER_DEFAULT_REQUIRED & ~LAYER_ALL, 0);
}
