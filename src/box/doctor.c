/*
 * doctor.c - puts together what was observed, what a real box did, and the verdict.
 *
 * The box decides: if it ran, nothing that was observed can be a blocker, however it looks; if it
 * didn't, there is at least one, whatever was observed.
 */
#include "box/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "box/doctor_box.h"
#include "kernel/caps.h"
#include "kernel/userns.h"

#define DENIALS_MIN 3

void doctor_report_free(struct doctor_report *report)
{
    free(report->capabilities);
    report->capabilities = NULL;
}

static void __attribute__((format(printf, 5, 6)))
found(struct findings *findings, const char *id, const char *layer, const char *remedy,
      const char *format, ...)
{
    struct finding *finding = findings_add(findings, id, layer, FINDING_BLOCKER);
    va_list args;

    if (finding == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(finding->cause, sizeof(finding->cause), format, args);
    va_end(args);
    (void)snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
}

/* ---- what was observed ----------------------------------------------------------------------- */

static void choose_mode(bool has_proc, struct doctor_report *report)
{
    struct facts facts = {0};
    struct hutch_error err = {0};

    if (userns_choose(NULL, &facts, &err) == 0)
        report->mode = facts.mode == PLAN_MODE_ROOT ? "root" : "self-map";
    else if (has_proc)
        found(&report->findings, "host-root", "user_ns",
              "run as a plain user, or as root with CAP_SETUID, CAP_SETGID and a free host id",
              "%.*s", (int)strcspn(err.message, ":"), err.message);
}

static void observe(struct doctor_report *report)
{
    struct probe probe;

    probe_observe(&probe);
    memcpy(report->kernel, probe.kernel, sizeof(report->kernel));
    report->capabilities = caps_describe();
    probe_explain(&probe, &report->findings);
    choose_mode(probe.has_proc, report);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static bool denials_hold(struct doctor_report *report)
{
    bool hold = true;

    for (size_t i = 0; i < report->denials_len; i++) {
        const struct doctor_denial *denial = &report->denials[i];
        if (denial->held)
            continue;
        hold = false;
        found(&report->findings, "denial", denial->name,
              "don't run untrusted code here, and report this with `hutch doctor --json`",
              "in a box, %s was not refused", denial->what);
    }
    if (report->denials_len >= DENIALS_MIN)
        return hold;
    found(&report->findings, "denials", "box",
          "let the doctor listen on 127.0.0.1 and write to /tmp",
          "only %zu denials could be tried, too few to tell", report->denials_len);
    return false;
}

static void only_warn(struct findings *findings)
{
    for (size_t i = 0; i < findings->len; i++)
        findings->items[i].severity = FINDING_WARNING;
}

/* Layers that the box went without, for a cause that nothing observed has named. */
static void warn_of_missing(struct doctor_report *report)
{
    for (enum layer layer = 0; layer < LAYER_COUNT; layer++) {
        const char *cause = report->receipt.layers[layer].cause, *name = layer_name(layer);
        bool is_cgroups = layer >= LAYER_CGROUP;
        if (cause[0] == '\0' || findings_have_layer(&report->findings, name) ||
            (is_cgroups && findings_have_layer(&report->findings, layer_name(LAYER_CGROUP))))
            continue;
        found(&report->findings, "missing-layer", name, "see what stands in the cause", "%s",
              cause);
    }
}

static void decide(struct doctor_report *report)
{
    if (report->box_ran) {
        warn_of_missing(report);
        only_warn(&report->findings);
        report->can_run = denials_hold(report);
    } else if (findings_count(&report->findings, FINDING_BLOCKER) == 0) {
        found(&report->findings, "box", "box",
              "see the cause; `hutch run -v -- true` shows it again", "%s", report->error);
    }
}

int doctor_run(const struct doctor_program *program, struct doctor_report *report,
               struct hutch_error *err)
{
    int r;

    *report = (struct doctor_report){0};
    observe(report);
    r = doctor_attempt(program, report, err);
    if (r == 0)
        r = doctor_try_languages(report->box_ran, &report->findings, err);
    if (r == 0)
        decide(report);
    return r;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void put_text(struct buf *buf, const char *key, const char *text)
{
    json_put_key(buf, key);
    if (text == NULL)
        buf_puts(buf, "null");
    else
        (void)json_put_string(buf, text, strlen(text));
}

static void put_layers(struct buf *buf, const struct receipt *receipt)
{
    json_put_key(buf, "layers");
    buf_puts(buf, "{");
    for (enum layer layer = 0; layer < LAYER_COUNT; layer++) {
        const char *how = receipt->layers[layer].how;
        put_text(buf, layer_name(layer), how != NULL ? how : "off");
    }
    buf_puts(buf, "}");
}

static void put_denials(struct buf *buf, const struct doctor_report *report)
{
    json_put_key(buf, "denials");
    buf_puts(buf, "[");
    for (size_t i = 0; i < report->denials_len; i++) {
        buf_puts(buf, i > 0 ? ",{" : "{");
        put_text(buf, "name", report->denials[i].name);
        put_text(buf, "what", report->denials[i].what);
        json_put_key(buf, "held");
        buf_puts(buf, report->denials[i].held ? "true}" : "false}");
    }
    buf_puts(buf, "]");
}

static void put_findings(struct buf *buf, const char *key, const struct findings *findings,
                         enum finding_severity severity)
{
    bool first = true;

    json_put_key(buf, key);
    buf_puts(buf, "[");
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->severity != severity)
            continue;
        buf_puts(buf, first ? "{" : ",{");
        first = false;
        put_text(buf, "id", finding->id);
        put_text(buf, "layer", finding->layer);
        put_text(buf, "severity", severity == FINDING_BLOCKER ? "blocker" : "warning");
        put_text(buf, "cause", finding->cause);
        put_text(buf, "remedy", finding->remedy);
        buf_puts(buf, "}");
    }
    buf_puts(buf, "]");
}

void doctor_put_json(struct buf *buf, const struct doctor_report *report)
{
    buf_printf(buf, "{\"can_run\":%s", report->can_run ? "true" : "false");
    put_text(buf, "version", hutch_version());
    put_text(buf, "kernel", report->kernel);
    put_text(buf, "mode", report->mode);
    put_text(buf, "capabilities", report->capabilities);
    put_text(buf, "error", report->error[0] != '\0' ? report->error : NULL);
    put_layers(buf, &report->receipt);
    put_denials(buf, report);
    put_findings(buf, "blockers", &report->findings, FINDING_BLOCKER);
    put_findings(buf, "warnings", &report->findings, FINDING_WARNING);
    buf_puts(buf, "}");
}
