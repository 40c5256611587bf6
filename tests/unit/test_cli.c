/*
 * test_cli.c - the parts of the command that need no box: words against option tables, host
 * paths, terminal output, produced files on disk. The command's objects are in no library, so
 * their files are compiled in here.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>

#include "cli/io.c"
#include "cli/out.c"
#include "cli/parse.c"
#include "cli/terminal.c"

static struct hutch_error err;

/* ---- parsing ---- */

struct seen {
    struct buf log;
};

static int own_flag(void *ctx, const char *value, struct hutch_error *e)
{
    (void)e;
    buf_printf(&((struct seen *)ctx)->log, "flag=%s;", value ? value : "NULL");
    return 0;
}

static int own_file(void *ctx, const char *value, struct hutch_error *e)
{
    (void)e;
    buf_printf(&((struct seen *)ctx)->log, "file=%s;", value);
    return 0;
}

static int on_request(void *ctx, const struct request_option *row, const char *field,
                      const char *value, struct hutch_error *e)
{
    (void)e;
    buf_printf(&((struct seen *)ctx)->log, "%s/%s=%s;", row->name, field, value);
    return 0;
}

static int on_word(void *ctx, const char *text, struct hutch_error *e)
{
    (void)e;
    buf_printf(&((struct seen *)ctx)->log, "[%s];", text);
    return 0;
}

static const struct cli_option OWN[] = {
    {"json", 'j', NULL, "", own_flag},
    {"file", 0, "F", "", own_file},
};
static const struct cli_syntax SYNTAX = {
    .usage = "usage\n",
    .options = OWN,
    .options_len = ARRAY_LEN(OWN),
    .request_verbs = OPTION_RUN,
    .request_option = on_request,
    .positional = on_word,
    .dashes = true,
};

#define WORDS(...) ((char *[]){"verb", __VA_ARGS__, NULL})

static int parse_words(const struct cli_syntax *syntax, char **words, struct cli_parsed *parsed,
                       struct seen *seen)
{
    int argc = 0;
    while (words[argc])
        argc++;
    memset(&err, 0, sizeof(err));
    int r = cli_parse(syntax, seen, argc, words, parsed, &err);
    buf_put(&seen->log, "", 1);
    return r;
}

#define PARSES(want, ...)                                                                          \
    do {                                                                                           \
        /* Static: parsed points into it, and is looked at behind this block. */                   \
        static char *words_[] = {"verb", __VA_ARGS__, NULL};                                       \
        struct seen seen = {0};                                                                    \
        cr_assert_eq(parse_words(&SYNTAX, words_, &parsed, &seen), 0, "%s", err.message);          \
        cr_assert_str_eq(seen.log.data, want);                                                     \
        buf_free(&seen.log);                                                                       \
    } while (0)
#define REFUSES(words, ...)                                                                        \
    do {                                                                                           \
        struct seen seen = {0};                                                                    \
        cr_assert_eq(parse_words(&SYNTAX, WORDS(__VA_ARGS__), &parsed, &seen), -EINVAL);           \
        cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);                                              \
        cr_assert(strstr(err.message, words), "%s", err.message);                                  \
        buf_free(&seen.log);                                                                       \
    } while (0)

Test(cli, options_in_every_form)
{
    struct cli_parsed parsed;
    PARSES("flag=NULL;file=x;file=;file=a=b;[-];", "--json", "--file", "x", "--file=", "--file=a=b",
           "-");
    PARSES("flag=NULL;[x];flag=NULL;", "-j", "x", "--json");
    PARSES("timeout/--timeout=5;writable-root/--writable-root=1;", "--timeout=5",
           "--writable-root");
    PARSES("file=--json;", "--file", "--json");
    PARSES("[];", "");
    cr_assert_not(parsed.dashes);
    cr_assert_null(parsed.rest[0]);
}

Test(cli, two_dashes_end_the_options)
{
    struct cli_parsed parsed;
    PARSES("[f];", "f", "--", "--json", "--bogus", "--");
    cr_assert(parsed.dashes);
    cr_assert_str_eq(parsed.rest[0], "--json");
    cr_assert_str_eq(parsed.rest[2], "--");
    cr_assert_null(parsed.rest[3]);
    PARSES("", "--");
    cr_assert(parsed.dashes);
    cr_assert_null(parsed.rest[0]);
    PARSES("file=--;", "--file", "--");
    cr_assert_not(parsed.dashes);
}

Test(cli, help_stops_the_parsing)
{
    struct cli_parsed parsed;
    PARSES("flag=NULL;", "--json", "--help", "--bogus");
    cr_assert(parsed.help);
    PARSES("", "-h");
    cr_assert(parsed.help);
    PARSES("", "--", "--help");
    cr_assert_not(parsed.help);
}

Test(cli, wrong_words_are_named)
{
    struct cli_parsed parsed;
    REFUSES("--bogus: there is no such option", "--bogus");
    REFUSES("--bogus: there is no such option", "--bogus=1");
    REFUSES("--: there is no such option", "--=x");
    REFUSES("-x: there is no such option", "-x");
    REFUSES("-jj: there is no such option", "-jj");
    REFUSES("--file: its value is missing", "--file");
    REFUSES("--timeout: its value is missing", "--timeout");
    REFUSES("--json: it takes no value", "--json=1");
    REFUSES("--writable-root: it takes no value", "--writable-root=1");
    REFUSES("--time: there is no such option", "--time", "5");
    REFUSES("--collect: there is no such option", "--collect", "data");
}

Test(cli, a_verb_takes_only_its_own)
{
    struct cli_parsed parsed;
    struct seen seen = {0};
    struct cli_syntax exec = SYNTAX, bare = SYNTAX;
    exec.request_verbs = OPTION_EXEC;
    cr_assert_eq(parse_words(&exec, WORDS("--env", "A=1"), &parsed, &seen), -EINVAL);
    cr_assert_eq(parse_words(&exec, WORDS("--pids", "1"), &parsed, &seen), 0);
    bare.request_verbs = 0;
    bare.positional = NULL;
    bare.dashes = false;
    cr_assert_eq(parse_words(&bare, WORDS("--pids", "1"), &parsed, &seen), -EINVAL);
    cr_assert_eq(parse_words(&bare, WORDS("x"), &parsed, &seen), -EINVAL);
    cr_assert_eq(parse_words(&bare, WORDS("--"), &parsed, &seen), -EINVAL);
    buf_free(&seen.log);
}

/* ---- host paths ---- */

static void path_is(enum option_path kind, const char *value, const char *want)
{
    _cleanup_free_ char *path = NULL;
    cr_assert_eq(cli_host_path(kind, value, &path, &err), 0, "%s", err.message);
    cr_assert_str_eq(path, want);
}

Test(cli, relative_host_paths_get_the_current_directory)
{
    cr_assert_eq(chdir("/usr"), 0);
    path_is(OPTION_PATH_NONE, "a/b", "a/b");
    path_is(OPTION_PATH_ALWAYS, ".:/work", "/usr/.:/work");
    path_is(OPTION_PATH_ALWAYS, "/a:/b", "/a:/b");
    path_is(OPTION_PATH_ALWAYS, ":/b", ":/b");
    path_is(OPTION_PATH_ALWAYS, "", "");
    path_is(OPTION_PATH_IF_PATH, "tool", "tool");
    path_is(OPTION_PATH_IF_PATH, "./tool", "/usr/./tool");
    path_is(OPTION_PATH_IF_PATH, "p.json", "/usr/p.json");
    path_is(OPTION_PATH_IF_PATH, ".json", ".json");
    path_is(OPTION_PATH_IF_PATH, "/x", "/x");
}

Test(cli, a_deleted_directory_is_an_error_only_for_relative_paths)
{
    char dir[] = "/tmp/test_cli_XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(chdir(dir), 0);
    cr_assert_eq(rmdir(dir), 0);
    path_is(OPTION_PATH_ALWAYS, "/a:/b", "/a:/b");
    _cleanup_free_ char *path = NULL;
    cr_assert_lt(cli_host_path(OPTION_PATH_ALWAYS, "a:/b", &path, &err), 0);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert(strstr(err.message, "absolute path"), "%s", err.message);
}

/* ---- terminal ---- */

static void cleans(const char *text, size_t len, bool last, const char *want, size_t want_used)
{
    _cleanup_buf_ struct buf out = BUF(0);
    size_t used = terminal_clean(&out, text, len, last);
    buf_put(&out, "", 1);
    cr_assert_str_eq(out.data, want);
    cr_assert_eq(used, want_used);
}

Test(cli, control_characters_are_made_visible)
{
    cleans("a\tb\r\nc", 6, false, "a\tb\r\nc", 6);
    cleans("\x1b[31m\x07\x08\x7f\0x", 10, false, "^[[31m^G^H^?^@x", 10);
    cleans("\xc2\x9b"
           "1m\xc2\xa0",
           6, false, "<U+009B>1m\xc2\xa0", 6);
    cleans("\x9b"
           "1m\xff\xc0\x80",
           6, false, "<9B>1m<FF><C0><80>", 6);
    cleans("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x87", 9, false, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x87",
           9);
}

Test(cli, a_started_character_waits_for_its_rest)
{
    cleans("a\xc3", 2, false, "a", 1);
    cleans("a\xf0\x9f\x90", 4, false, "a", 1);
    cleans("a\xf0\x9f\x90", 4, true, "a<F0><9F><90>", 4);
    cleans("\xe2\x1b[", 3, false, "<E2>^[[", 3);
    cleans("\xc2", 1, true, "<C2>", 1);
}

/* ---- produced files ---- */

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

struct place {
    char path[64];
    int dir;
};

static struct place place_new(void)
{
    struct place place = {.path = "/tmp/test_cli_XXXXXX"};
    cr_assert_not_null(mkdtemp(place.path));
    cr_assert_eq(out_open(place.path, &place.dir, &err), 0, "%s", err.message);
    return place;
}

static void place_free(struct place *place)
{
    (void)close(place->dir);
    (void)nftw(place->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
#define _cleanup_place_ _cleanup_(place_free)

static void has_text(int dir, const char *name, const char *want)
{
    char text[64] = "";
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    cr_assert_geq(fd, 0, "%s", name);
    cr_assert_geq(read(fd, text, sizeof(text) - 1), 0);
    cr_assert_str_eq(text, want);
}

static size_t entries(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    cr_assert_not_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

Test(cli, produced_files_get_their_directories)
{
    _cleanup_place_ struct place place = place_new();
    cr_assert_eq(write_one(place.dir, "a/b/c", "x", 1), 0);
    cr_assert_eq(write_one(place.dir, "a/b/c", "yy", 2), 0);
    cr_assert_eq(write_one(place.dir, "-n\n", "", 0), 0);
    has_text(place.dir, "a/b/c", "yy");
    has_text(place.dir, "-n\n", "");
    cr_assert_eq(entries(place.path), 2, "nothing else is left");
}

Test(cli, produced_files_never_leave_their_directory)
{
    _cleanup_place_ struct place place = place_new();
    static const char *const BAD[] = {"",          "/x", "..",   ".",  "../x",
                                      "a/../../x", "a/", "a//b", "./a"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        cr_assert_eq(write_one(place.dir, BAD[i], "x", 1), -EINVAL, "%s", BAD[i]);
    cr_assert_eq(entries(place.path), 0);
}

Test(cli, links_are_replaced_never_written_through)
{
    _cleanup_place_ struct place place = place_new();
    cr_assert_eq(write_one(place.dir, "victim", "old", 3), 0);
    cr_assert_eq(symlinkat("victim", place.dir, "soft"), 0);
    cr_assert_eq(linkat(place.dir, "victim", place.dir, "hard", 0), 0);
    cr_assert_eq(mkfifoat(place.dir, "fifo", 0600), 0);
    cr_assert_eq(write_one(place.dir, "soft", "new", 3), 0);
    cr_assert_eq(write_one(place.dir, "hard", "new", 3), 0);
    cr_assert_eq(write_one(place.dir, "fifo", "new", 3), 0);
    has_text(place.dir, "victim", "old");
    has_text(place.dir, "soft", "new");
    has_text(place.dir, "hard", "new");
    has_text(place.dir, "fifo", "new");
}

Test(cli, directories_are_not_entered_through_links)
{
    _cleanup_place_ struct place place = place_new();
    cr_assert_eq(mkdirat(place.dir, "away", 0700), 0);
    cr_assert_eq(symlinkat("away", place.dir, "d"), 0);
    cr_assert_eq(write_one(place.dir, "d/x", "x", 1), -ENOTDIR);
    cr_assert_eq(faccessat(place.dir, "away/x", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    cr_assert_eq(write_one(place.dir, "away", "x", 1), -EISDIR);
    cr_assert_eq(entries(place.path), 2, "the file under its new name is gone too");
}

Test(cli, the_directory_itself_is_made_and_no_link)
{
    _cleanup_place_ struct place place = place_new();
    char path[128];
    int dir;
    snprintf(path, sizeof(path), "%s/new/", place.path);
    cr_assert_eq(out_open(path, &dir, &err), 0, "%s", err.message);
    close(dir);
    cr_assert_eq(symlinkat("new", place.dir, "link"), 0);
    static const char *const BAD[] = {"link", "link/", "link/below", "no/such", "new/../link"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        snprintf(path, sizeof(path), "%s/%s", place.path, BAD[i]);
        cr_assert_lt(out_open(path, &dir, &err), 0, "%s", path);
        cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    }
    cr_assert_lt(out_open("", &dir, &err), 0);
    snprintf(path, sizeof(path), "%s/new/../new", place.path);
    cr_assert_eq(out_open(path, &dir, &err), 0, "%s", err.message);
    close(dir);
}
