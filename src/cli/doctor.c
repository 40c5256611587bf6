/*
 * doctor.c - hutch doctor: can boxes be built here, and if not, why and what to do.
 *
 * The program of the doctor's box is this command itself (`hutch doctor --inside`), so that no
 * tool of the machine is needed for the attempts.
 */
#include <fcntl.h>
#include <string.h>

#include "base/num.h"
#include "box/doctor.h"
#include "cli/cli.h"

#define INSIDE "--inside"
#define BAIT "HUTCH_DOCTOR_BAIT"
#define PROGRAM_MAX_BYTES ((size_t)64 << 20)

static int set_json(void *ctx, const char *value, struct hutch_error *err)
{
    (void)value, (void)err;
    *(bool *)ctx = true;
    return 0;
}

static const struct cli_option OPTIONS[] = {
    {"json", 0, NULL, "as JSON", set_json},
};
static const struct cli_syntax SYNTAX = {
    .usage = "usage: hutch doctor [--json]\n",
    .options = OPTIONS,
    .options_len = ARRAY_LEN(OPTIONS),
};

/* ---- in the box ---- */

static int inside(char *const *words)
{
    _cleanup_buf_ struct buf out = BUF(0);
    struct hutch_error err;
    uint64_t port;
    if (num_u64("port", words[0], 0, 65535, &port, &err) < 0)
        return cli_failed(&err);
    const struct probe_baits baits = {(int)port, words[1], words[2]};
    doctor_inside(&baits, &out);
    return cli_print(out.failed ? NULL : out.data, out.len);
}

/* ---- for people: one line a finding ---- */

struct style {
    const char *good, *bad, *warning, *plain;
};

static struct style style_for(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = !isatty(fd) || (no_color && *no_color) || !term || strcmp(term, "dumb") == 0;
    return plain ? (struct style){"", "", "", ""}
                 : (struct style){"\033[32m", "\033[31m", "\033[33m", "\033[0m"};
}

static void put_line(struct buf *out, const char *color, const struct style *style,
                     const char *mark, const char *name, const char *text)
{
    buf_printf(out, "%s%-7s%s %-12s ", color, mark, style->plain, name);
    (void)terminal_clean(out, text, strlen(text), true);
}

static void show_layers(struct buf *out, const struct style *style,
                        const struct doctor_report *report)
{
    _cleanup_buf_ struct buf layers = BUF(0);
    for (enum layer layer = 0; layer < LAYER_COUNT; layer++) {
        const char *how = report->receipt.layers[layer].how;
        bool on = how && strcmp(how, "on") == 0;
        buf_printf(&layers, "%s%s%s%s", layer ? " " : "", layer_name(layer), on ? "" : "=",
                   on ? "" : (how ? how : "off"));
    }
    buf_put(&layers, "", 1);
    put_line(out, style->good, style, "ok", "layers", layers.failed ? "" : layers.data);
    buf_puts(out, "\n");
}

static void show_box(struct buf *out, const struct style *style, const struct doctor_report *report)
{
    if (!report->box_ran) {
        put_line(out, style->bad, style, "FAILED", "box", report->error);
        buf_puts(out, "\n");
        return;
    }
    put_line(out, style->good, style, "ok", "box", "one was built and a program ran in it");
    buf_puts(out, "\n");
    show_layers(out, style, report);
    for (size_t i = 0; i < report->denials_len; i++) {
        const struct doctor_denial *denial = &report->denials[i];
        put_line(out, denial->held ? style->good : style->bad, style,
                 denial->held ? "ok" : "FAILED", denial->name, denial->what);
        buf_puts(out, denial->held ? " is refused\n" : " is NOT refused\n");
    }
}

static void show_findings(struct buf *out, const struct style *style,
                          const struct findings *findings, enum finding_severity severity)
{
    bool blocker = severity == FINDING_BLOCKER;
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->severity != severity)
            continue;
        put_line(out, blocker ? style->bad : style->warning, style, blocker ? "BLOCKER" : "warning",
                 finding->layer, finding->cause);
        buf_puts(out, "; remedy: ");
        (void)terminal_clean(out, finding->remedy, strlen(finding->remedy), true);
        buf_puts(out, "\n");
    }
}

static void put_report(struct buf *out, const struct doctor_report *report)
{
    const struct style style = style_for(STDOUT_FILENO);
    size_t blockers = findings_count(&report->findings, FINDING_BLOCKER);
    size_t warnings = findings_count(&report->findings, FINDING_WARNING);
    const char *capabilities = report->capabilities ? report->capabilities : "unknown";
    buf_printf(out, "hutch %s on Linux %s, mode %s, capabilities %.60s%s\n", hutch_version(),
               report->kernel, report->mode ? report->mode : "none", capabilities,
               strlen(capabilities) > 60 ? "..." : "");
    show_box(out, &style, report);
    show_findings(out, &style, &report->findings, FINDING_BLOCKER);
    show_findings(out, &style, &report->findings, FINDING_WARNING);
    buf_printf(out, "boxes %s run here: %zu blocker%s, %zu warning%s\n",
               report->can_run ? "can" : "can't", blockers, blockers == 1 ? "" : "s", warnings,
               warnings == 1 ? "" : "s");
}

/* ---- outside ---- */

/* Through /proc, so that a binary that was replaced or deleted meanwhile is still this one. */
static void read_ourselves(struct buf *program)
{
    _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || buf_read_fd(program, fd, PROGRAM_MAX_BYTES) < 0)
        program->len = 0; /* then the box can't start it, and what is in the way is named */
}

static int examine(bool json)
{
    static const char *const ARGS[] = {"doctor", INSIDE, NULL};
    _cleanup_doctor_report_ struct doctor_report report = {0};
    _cleanup_buf_ struct buf program = BUF(0), out = BUF(0);
    struct hutch_error err;
    read_ourselves(&program);
    if (setenv(BAIT, "1", 1) < 0)
        return CLI_NEGATIVE;
    const struct doctor_program self = {program.len > 0 ? program.data : "", program.len, ARGS,
                                        BAIT};
    if (doctor_run(&self, &report, &err) < 0) {
        (void)cli_failed(&err);
        return CLI_NEGATIVE;
    }
    if (json) {
        doctor_put_json(&out, &report);
        buf_puts(&out, "\n");
    } else {
        put_report(&out, &report);
    }
    int printed = cli_print(out.failed ? NULL : out.data, out.len);
    return printed == CLI_OK && report.can_run ? CLI_OK : CLI_NEGATIVE;
}

int cli_doctor(int argc, char **argv)
{
    bool json = false;
    struct cli_parsed parsed;
    struct hutch_error err;
    if (argc == 5 && strcmp(argv[1], INSIDE) == 0)
        return inside(argv + 2);
    if (cli_parse(&SYNTAX, &json, argc, argv, &parsed, &err) < 0)
        return cli_failed(&err);
    return parsed.help ? cli_show_help(&SYNTAX) : examine(json);
}
