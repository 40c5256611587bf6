#include "box/collect.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"

static char work[64];
static int work_fd;
static struct hutch_error err;
static struct hutch_request request;
static struct collected got;

static void shell(const char *script)
{
    const char *const argv[] = {"sh", "-c", script, work, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    pid_t pid;
    int status = 0;
    cr_assert_eq(posix_spawn(&pid, "/bin/sh", NULL, NULL, (char *const *)(uintptr_t)argv,
                             (char *const *)(uintptr_t)envp),
                 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0, "%s", script);
}

static void set_up(void)
{
    snprintf(work, sizeof(work), "/tmp/test_collect_XXXXXX");
    cr_assert_not_null(mkdtemp(work));
    work_fd = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(work_fd, 0);
    request = (struct hutch_request){.verb = HUTCH_VERB_RUN, .language = LANGUAGE_PYTHON};
}

static void tear_down(void)
{
    collected_free(&got);
    close(work_fd);
    shell("chmod -R u+rwX \"$0\"; rm -rf \"$0\"");
}

TestSuite(collect, .init = set_up, .fini = tear_down, .timeout = 60);

static void put(const char *name, const char *text, mode_t mode)
{
    _cleanup_close_ int fd = openat(work_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0, "%s: %s", name, strerror(errno));
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(fchmod(fd, mode), 0);
}

static void collect(const struct collect_bounds *bounds)
{
    int r = collect_files(work_fd, &request, bounds, &got, &err);
    cr_assert_eq(r, 0, "%s", err.message);
}

static const struct collected_file *file(const char *name)
{
    for (size_t i = 0; i < got.files_len; i++) {
        if (strcmp(got.files[i].name, name) == 0)
            return &got.files[i];
    }
    return NULL;
}

static const char *why(const char *name)
{
    for (size_t i = 0; i < got.skipped_len; i++) {
        if (strcmp(got.skipped[i].name, name) == 0)
            return got.skipped[i].why;
    }
    return "not skipped";
}

static void file_is(const char *name, const char *text)
{
    const struct collected_file *found = file(name);
    cr_assert_not_null(found, "%s was not collected", name);
    cr_assert_eq(found->name_len, strlen(name));
    cr_assert_eq(found->size, strlen(text));
    cr_assert_eq(found->data_len, strlen(text));
    cr_assert_arr_eq(found->data, text, strlen(text));
}

Test(collect, an_empty_directory_gives_nothing)
{
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 0);
    cr_assert_eq(got.skipped_len, 0);
    cr_assert_not(got.cut);
}

Test(collect, files_come_back_sorted_with_their_data)
{
    cr_assert_eq(mkdirat(work_fd, "d", 0755), 0);
    cr_assert_eq(mkdirat(work_fd, "d/e", 0755), 0);
    put("z", "last", 0644);
    put("d/e/f", "deep", 0755);
    put("d.txt", "", 0644);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 3);
    cr_assert_str_eq(got.files[0].name, "d.txt");
    cr_assert_str_eq(got.files[1].name, "d/e/f");
    cr_assert_str_eq(got.files[2].name, "z");
    file_is("d.txt", "");
    file_is("d/e/f", "deep");
    file_is("z", "last");
    cr_assert(file("d/e/f")->executable);
    cr_assert_not(file("z")->executable);
    cr_assert_not(got.cut);
}

Test(collect, code_and_unchanged_inputs_are_left_out)
{
    char same[] = "same", edited[] = "before", grown[] = "a", top[] = "sub/in", a[] = "a",
         b[] = "b", c[] = "c";
    struct input_file inputs[] = {
        {.name = c, .data = grown, .len = 1},
        {.name = top, .data = same, .len = 4},
        {.name = a, .data = same, .len = 4},
        {.name = b, .data = edited, .len = 6},
    };
    request.files = inputs;
    request.files_len = ARRAY_LEN(inputs);
    cr_assert_eq(mkdirat(work_fd, "sub", 0755), 0);
    put("main.py", "print()", 0644);
    put("sub/main.py", "not the code file", 0644);
    put("main.js", "not this one's", 0644);
    put("a", "same", 0644);
    put("sub/in", "same", 0000);
    put("b", "AFTER!", 0644);
    put("c", "a+", 0644);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 4);
    file_is("b", "AFTER!");
    file_is("c", "a+");
    file_is("main.js", "not this one's");
    file_is("sub/main.py", "not the code file");
}

Test(collect, a_command_has_no_code_file)
{
    request.language = LANGUAGE_NONE;
    put("main.py", "written by the command", 0644);
    collect(&COLLECT_BOUNDS);
    file_is("main.py", "written by the command");
}

Test(collect, a_big_unchanged_input_does_not_spend_the_budget)
{
    static char data[300000];
    char name[] = "in";
    struct input_file input = {.name = name, .data = data, .len = sizeof(data)};
    request.files = &input;
    request.files_len = 1;
    memset(data, 'i', sizeof(data));
    _cleanup_close_ int fd = openat(work_fd, "in", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_eq(write(fd, data, sizeof(data)), (ssize_t)sizeof(data));
    put("out", "whole", 0644);
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.bytes_max = 5;
    collect(&bounds);
    cr_assert_eq(got.files_len, 1);
    file_is("out", "whole");

    /* One byte at the end makes it a produced file. */
    collected_free(&got);
    cr_assert_eq(pwrite(fd, "X", 1, sizeof(data) - 1), 1);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(file("in")->data_len, sizeof(data));
    cr_assert_eq(file("in")->data[sizeof(data) - 1], 'X');
}

Test(collect, links_are_named_and_never_followed)
{
    put("real", "data", 0644);
    static const char *const LINKS[][2] = {
        {"/etc/hostname", "absolute"},
        {"../../../etc/hostname", "upwards"},
        {"/proc/self/root/etc/hostname", "magic"},
        {"real", "inside"},
        {"/etc", "directory"},
        {"nowhere", "dangling"},
        {"loop", "loop"},
    };
    for (size_t i = 0; i < ARRAY_LEN(LINKS); i++)
        cr_assert_eq(symlinkat(LINKS[i][0], work_fd, LINKS[i][1]), 0);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 1);
    file_is("real", "data");
    cr_assert_eq(got.skipped_len, ARRAY_LEN(LINKS));
    for (size_t i = 0; i < ARRAY_LEN(LINKS); i++)
        cr_assert_str_eq(why(LINKS[i][1]), "symlink", "%s", LINKS[i][1]);
}

Test(collect, a_link_in_the_code_files_place_is_not_read)
{
    cr_assert_eq(symlinkat("/etc/hostname", work_fd, "main.py"), 0);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 0);
    cr_assert_str_eq(why("main.py"), "symlink");
}

Test(collect, fifos_and_sockets_do_not_block)
{
    put("real.json", "{}", 0644);
    cr_assert_eq(mkfifoat(work_fd, "pipe", 0666), 0);
    cr_assert_eq(mkfifoat(work_fd, "closed", 0000), 0);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", work);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    collect(&COLLECT_BOUNDS);
    file_is("real.json", "{}");
    cr_assert_str_eq(why("pipe"), "fifo");
    cr_assert_str_eq(why("closed"), "fifo");
    cr_assert_str_eq(why("sock"), "socket");
}

Test(collect, modes_keep_nothing_back)
{
    static const mode_t MODES[] = {0000, 0100, 0200, 0300, 0400, 0500};
    put("f000", "file", 0000);
    for (size_t i = 0; i < ARRAY_LEN(MODES); i++) {
        char name[32];
        snprintf(name, sizeof(name), "d%04o", MODES[i]);
        cr_assert_eq(mkdirat(work_fd, name, 0700), 0);
        snprintf(name, sizeof(name), "d%04o/in", MODES[i]);
        put(name, "inner", 0000);
        snprintf(name, sizeof(name), "d%04o", MODES[i]);
        cr_assert_eq(fchmodat(work_fd, name, MODES[i], 0), 0);
    }
    cr_assert_eq(fchmod(work_fd, 0000), 0);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 1 + ARRAY_LEN(MODES));
    cr_assert_eq(got.skipped_len, 0);
    file_is("f000", "file");
    file_is("d0000/in", "inner");
    file_is("d0400/in", "inner");
    cr_assert_not(file("f000")->executable);
}

/* Root's boxes have a host id of their own, a plain user's the user's. */
Test(collect, files_of_the_boxs_own_host_id_are_read)
{
    put("f", "file", 0000);
    cr_assert_eq(mkdirat(work_fd, "d", 0700), 0);
    put("d/g", "file", 0400);
    if (geteuid() == 0) {
        cr_assert_eq(fchownat(work_fd, "d/g", 54321, 54321, 0), 0);
        cr_assert_eq(fchownat(work_fd, "d", 54321, 54321, 0), 0);
        cr_assert_eq(fchownat(work_fd, "f", 54321, 54321, 0), 0);
    }
    cr_assert_eq(fchmodat(work_fd, "d", 0000, 0), 0);
    collect(&COLLECT_BOUNDS);
    file_is("f", "file");
    file_is("d/g", "file");
}

/* A chain of directories "d", each in the one before; returns an fd of the innermost. */
static int dig(unsigned depth)
{
    int fd = dup(work_fd);
    for (unsigned i = 0; i < depth; i++) {
        cr_assert_eq(mkdirat(fd, "d", 0700), 0);
        int inner = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cr_assert_geq(inner, 0);
        close(fd);
        fd = inner;
    }
    return fd;
}

static void put_at(int fd, const char *name)
{
    _cleanup_close_ int made = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(made, 0);
}

Test(collect, depth_is_bounded)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.depth_max = 3;
    _cleanup_close_ int at_bound = dig(3);
    put_at(at_bound, "f");
    collect(&bounds);
    cr_assert_not_null(file("d/d/d/f"));
    cr_assert_not(got.cut);

    collected_free(&got);
    cr_assert_eq(mkdirat(at_bound, "below", 0700), 0);
    collect(&bounds);
    cr_assert_not_null(file("d/d/d/f"));
    cr_assert_str_eq(why("d/d/d/below"), "directory depth");
    cr_assert(got.cut);
}

Test(collect, a_chain_deeper_than_any_path_ends)
{
    _cleanup_close_ int fd = dig(3000);
    put_at(fd, "bottom");
    put("top", "here", 0644);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 1);
    file_is("top", "here");
    cr_assert_eq(got.skipped_len, 1);
    cr_assert(got.cut);
}

Test(collect, the_list_of_files_is_bounded)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.files_max = 10;
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%02d", i);
        put(name, "x", 0644);
    }
    collect(&bounds);
    cr_assert_eq(got.files_len, 10);
    cr_assert_not(got.cut, "a full list is not a cut one");

    collected_free(&got);
    put("f10", "x", 0644);
    collect(&bounds);
    cr_assert_eq(got.files_len, 10);
    cr_assert(got.cut);
}

Test(collect, the_list_of_skipped_entries_is_bounded)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.files_max = 3;
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "l%d", i);
        cr_assert_eq(symlinkat("x", work_fd, name), 0);
    }
    put("f", "x", 0644);
    collect(&bounds);
    cr_assert_eq(got.skipped_len, 3);
    cr_assert_eq(got.files_len, 1);
    cr_assert(got.cut);
}

Test(collect, the_entries_looked_at_are_bounded)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.entries_max = 5;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%d", i);
        cr_assert_eq(mkdirat(work_fd, name, 0700), 0);
    }
    collect(&bounds);
    cr_assert_not(got.cut);
    put("d0/f", "x", 0644);
    collected_free(&got);
    collect(&bounds);
    cr_assert(got.cut);
}

Test(collect, ten_thousand_files_give_a_cut_list)
{
    for (int i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        put_at(work_fd, name);
    }
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, 1000);
    cr_assert(got.cut);
}

Test(collect, data_is_bounded_over_all_files)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.bytes_max = 10;
    put("a", "1234567", 0644);
    put("b", "1234567", 0644);
    put("c", "1234567", 0644);
    collect(&bounds);
    size_t total = 0;
    cr_assert_eq(got.files_len, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(got.files[i].size, 7);
        cr_assert_arr_eq(got.files[i].data, "1234567", got.files[i].data_len);
        total += got.files[i].data_len;
    }
    cr_assert_eq(total, 10);
}

Test(collect, a_sparse_terabyte_costs_its_budget)
{
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.bytes_max = 1 << 20;
    put("huge", "", 0644);
    _cleanup_close_ int fd = openat(work_fd, "huge", O_WRONLY | O_CLOEXEC);
    cr_assert_eq(ftruncate(fd, (off_t)1 << 40), 0);
    collect(&bounds);
    cr_assert_eq(got.files_len, 1);
    cr_assert_eq(got.files[0].size, 1ULL << 40);
    cr_assert_eq(got.files[0].data_len, 1 << 20);
}

Test(collect, any_byte_may_be_in_a_name)
{
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    const char *const names[] = {"-rf", " ",        "a\nb", "\xff\xfe", "A",
                                 "a",   "\x1b[31m", "...",  longest};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        put(names[i], names[i], 0644);
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(got.files_len, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        file_is(names[i], names[i]);
    for (size_t i = 1; i < got.files_len; i++) {
        const unsigned char *before = (const unsigned char *)got.files[i - 1].name;
        cr_assert_lt(strcmp((const char *)before, got.files[i].name), 0);
    }
}

static unsigned open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    cr_assert_not_null(dir);
    unsigned count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

Test(collect, no_fd_is_left_open)
{
    _cleanup_close_ int deep = dig(20);
    put_at(deep, "f");
    put("g", "x", 0644);
    cr_assert_eq(mkfifoat(work_fd, "pipe", 0600), 0);
    unsigned before = open_fds();
    collect(&COLLECT_BOUNDS);
    cr_assert_eq(open_fds(), before);

    collected_free(&got);
    struct collect_bounds bounds = COLLECT_BOUNDS;
    bounds.entries_max = 10; /* ends in the middle of the chain */
    collect(&bounds);
    cr_assert(got.cut);
    cr_assert_eq(open_fds(), before);
}

Test(collect, the_callers_fd_can_be_used_again)
{
    put("f", "x", 0644);
    collect(&COLLECT_BOUNDS);
    collected_free(&got);
    collect(&COLLECT_BOUNDS);
    file_is("f", "x");
}

Test(collect, a_bad_directory_is_an_error_and_leaves_the_output_alone)
{
    struct collected untouched = {.files_len = 7};
    cr_assert_eq(collect_files(-1, &request, &COLLECT_BOUNDS, &untouched, &err), -EBADF);
    cr_assert_eq(err.stage, HUTCH_STAGE_COLLECT);
    cr_assert_eq(untouched.files_len, 7);
}
