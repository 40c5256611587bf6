/*
 * main.c - the command: finds the verb and hands over.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

const struct cli_verb CLI_VERBS[] = {
    {"run", "[OPTIONS] FILE [-- ARGS...]  |  -- COMMAND [ARGS...]", "run a script or a command",
     cli_run},
    {"exec", "[OPTIONS] [FILE|-]", "JSON request in, JSON result out", cli_exec},
    {"validate", "[--allow-import M]... [FILE|-]", "the static check of exec alone", cli_validate},
    {"plan", "run|exec ...", "show as JSON what would be done", cli_plan},
    {"doctor", "[--json]", "build a real box and name what is in the way", cli_doctor},
    {"policy", "list | show NAME | count NAME|FILE | check FILE", "seccomp profiles", cli_policy},
    {"version", "[--json]", "the version", cli_version},
    {"help", "[VERB]", "this, or a verb's options", cli_help},
};
const size_t CLI_VERBS_LEN = ARRAY_LEN(CLI_VERBS);

static const struct cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < CLI_VERBS_LEN; i++) {
        if (strcmp(CLI_VERBS[i].name, name) == 0)
            return &CLI_VERBS[i];
    }
    return NULL;
}

static int show_verbs(int fd)
{
    _cleanup_buf_ struct buf text = BUF(0);
    buf_puts(&text, "hutch runs code you don't trust in a fresh set of Linux namespaces.\n\n");
    for (size_t i = 0; i < CLI_VERBS_LEN; i++)
        buf_printf(&text, "  hutch %-8s %s\n%17s%s\n", CLI_VERBS[i].name, CLI_VERBS[i].usage, "",
                   CLI_VERBS[i].what);
    buf_puts(&text, "\n`hutch VERB --help` shows a verb's options; hutch(1) has the rest.\n");
    if (fd == STDOUT_FILENO)
        return cli_print(text.data, text.len);
    (void)cli_write(fd, text.data, text.len);
    return CLI_USAGE;
}

int cli_help(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-')
        return show_verbs(STDOUT_FILENO);
    const struct cli_verb *verb = find_verb(argv[1]);
    if (!verb) {
        cli_message("%s: there is no such verb; see `hutch --help`", argv[1]);
        return CLI_USAGE;
    }
    static char help[] = "--help";
    char *words[] = {argv[1], help, NULL};
    return verb->run == cli_help ? show_verbs(STDOUT_FILENO) : verb->run(2, words);
}

/* With 0, 1 or 2 closed, the next file that is opened would become a standard stream. */
static bool have_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* Lower ones are open by now, so that open() gives exactly this number. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    }
    return true;
}

/* A mask that hides files from their own owner would hide them from us. */
static void keep_owner_bits(void)
{
    (void)umask(umask(077) & 077);
}

int main(int argc, char **argv)
{
    if (!have_standard_fds())
        return CLI_FAILED;
    keep_owner_bits();
    if (argc < 2)
        return show_verbs(STDERR_FILENO);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_verbs(STDOUT_FILENO);
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(1, argv + 1);
    const struct cli_verb *verb = find_verb(argv[1]);
    if (verb)
        return verb->run(argc - 1, argv + 1);
    cli_message("%s: there is no such verb; see `hutch --help`", argv[1]);
    return CLI_USAGE;
}
