/* asan.c - what the harness never frees on purpose is no leak of what is tested. */
const char *__lsan_default_suppressions(void);

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:tests/support/\nleak:libcriterion\nleak:libboxfort\n";
}
