#include <string.h>

#include "base/cleanup.h"
#include "request/request.h"

static const struct language_info LANGUAGES[LANGUAGE_COUNT] = {
    [LANGUAGE_NONE] = {"", "", "", "default"},
    [LANGUAGE_PYTHON] = {"python", ".py", "main.py", "python"},
    [LANGUAGE_JAVASCRIPT] = {"javascript", ".js", "main.js", "node"},
    [LANGUAGE_BASH] = {"bash", ".sh", "main.sh", "default"},
};

const struct language_info *language_info(enum language language)
{
    return &LANGUAGES[(unsigned)language < LANGUAGE_COUNT ? language : LANGUAGE_NONE];
}

enum language language_from_name(const char *name)
{
    for (unsigned i = LANGUAGE_PYTHON; i < LANGUAGE_COUNT; i++) {
        if (strcmp(LANGUAGES[i].name, name) == 0)
            return (enum language)i;
    }
    return LANGUAGE_COUNT;
}

enum language language_from_suffix(const char *file_name)
{
    size_t len = strlen(file_name);
    for (unsigned i = LANGUAGE_PYTHON; i < LANGUAGE_COUNT; i++) {
        size_t suffix_len = strlen(LANGUAGES[i].suffix);
        if (len > suffix_len && strcmp(file_name + len - suffix_len, LANGUAGES[i].suffix) == 0)
            return (enum language)i;
    }
    return LANGUAGE_COUNT;
}
