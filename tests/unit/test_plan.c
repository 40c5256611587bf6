/*
 * test_plan.c - the plan: golden files of what `hutch plan` prints, and what holds for every block.
 *
 * tests/unit/golden/NAME.json is the plan of one request on the host of support/sample.c, one
 * operation a line. HUTCH_UPDATE_GOLDEN=1 writes the files anew; `git diff` then shows what a
 * change means for a box. Left out are the steps, which are the same for all and have a file of
 * their own, and the runner's files, whose sizes follow the build host's Python.
 */
#include "plan/plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/json.h"
#include "kernel/step/step.h"
#include "plan/builder.h"
#include "plan/payload.h"
#include "plan/steps.h"
#include "support/host.h"
#include "support/sample.h"
#include "support/spawn.h"

static struct hutch_error err;

/* ---- the text of a plan ---- */

static char *plan_text_of(const struct hutch_request *request, const struct buf *block)
{
    struct buf json = BUF(0);
    struct json_slice value;
    cr_assert_eq(plan_json(request, block->data, block->len, &json, &err), 0, "%s", err.message);
    cr_assert_eq(json_parse(json.data, json.len, 16, HUTCH_STAGE_PLAN, &value, &err), 0, "%s",
                 err.message);
    return buf_take(&json, NULL);
}

/* Cuts from `from` to the end of the next `to` ("": `from` alone); returns what was cut (never
 * freed). */
static const char *cut_out(char *text, const char *from, const char *to)
{
    char *start = strstr(text, from), *end = start ? strstr(start, to) : NULL;
    cr_assert_not_null(end, "no %s in %s", from, text);
    end += *to ? strlen(to) : strlen(from);
    const char *part = strndup(start, (size_t)(end - start));
    memmove(start, end, strlen(end) + 1);
    return part;
}

static void cut_runner(char *text, const struct hutch_request *request)
{
    size_t len;
    const struct runner_file *files = payload_files(request, &len);
    for (size_t i = 0; i < len; i++)
        cut_out(text, text_format("{\"op\":\"file\",\"path\":\"run/hutch/%s\"", files[i].path),
                "},");
    if (len > 0) {
        struct buf start = BUF(0);
        cr_assert_eq(
            json_put_string(&start, payload_start(request), strlen(payload_start(request))), 0);
        buf_puts(&start, ",");
        const char *whole = buf_take(&start, NULL);
        /* It is the last argument where the code is in the request. */
        if (!strstr(text, whole))
            whole = text_format(",%.*s", (int)strlen(whole) - 1, whole);
        cut_out(text, whole, "");
    }
}

/* One element a line down to the third level; what lies deeper stays on its line. */
static const char *with_lines(const char *text)
{
    struct buf out = BUF(0);
    bool in_string = false;
    int depth = 0;
    for (const char *c = text; *c; c++) {
        bool closes = !in_string && (*c == '}' || *c == ']'),
             opens = !in_string && (*c == '{' || *c == '[');
        bool empty = out.len > 0 && strchr("[{", out.data[out.len - 1]);
        if (closes && depth <= 3 && !empty)
            buf_printf(&out, "\n%*s", 2 * (depth - 1), "");
        depth += opens - closes;
        buf_put(&out, c, 1);
        if (((opens && !strchr("]}", c[1])) || (!in_string && *c == ',')) && depth <= 3)
            buf_printf(&out, "\n%*s", 2 * depth, "");
        if (in_string && *c == '\\')
            buf_put(&out, ++c, 1);
        else if (*c == '"')
            in_string = !in_string;
    }
    buf_puts(&out, "\n");
    return buf_take(&out, NULL);
}

static const char *first_difference(const char *a, const char *b)
{
    size_t same = 0, line = 0;
    for (; a[same] && a[same] == b[same]; same++)
        if (a[same] == '\n')
            line = same + 1;
    return text_format("want: %.*s\n got: %.*s", (int)strcspn(a + line, "\n"), a + line,
                       (int)strcspn(b + line, "\n"), b + line);
}

static void compare_golden(const char *name, const char *text)
{
    const char *dir = HUTCH_SOURCE "/tests/unit/golden", *file = text_format("%s.json", name),
               *pretty = with_lines(text);
    const char *update = getenv("HUTCH_UPDATE_GOLDEN");
    if (update && strcmp(update, "1") == 0)
        file_new(dir, file, pretty, 0644);
    const char *golden = file_text(path_in(dir, file));
    cr_assert_not_null(golden, "no %s/%s: HUTCH_UPDATE_GOLDEN=1 makes it", dir, file);
    cr_assert(strcmp(golden, pretty) == 0,
              "%s/%s says otherwise (HUTCH_UPDATE_GOLDEN=1 writes it anew):\n%s", dir, file,
              first_difference(golden, pretty));
}

/* ---- what holds for every block ---- */

static const char *op_place(const struct buf *block, const struct plan_op *op)
{
    return text_format("%s%s", (op->flags & PLAN_IN_DATA) ? "data:" : "", block->data + op->path);
}

static bool is_made_before(const struct buf *block, const struct plan_op *ops, uint32_t count,
                           const char *place, uint32_t kind)
{
    for (uint32_t i = 0; i < count; i++)
        if ((ops[i].kind == kind || (kind == 0 && ops[i].kind <= PLAN_OP_SYMLINK)) &&
            strcmp(op_place(block, &ops[i]), place) == 0)
            return true;
    return false;
}

/* Every path is made once, and below directories that were made before; the data tmpfs has its
 * three directories from the start. */
static void check_tree(const struct buf *block)
{
    const struct plan_header *h = (const void *)block->data;
    const struct plan_op *ops = (const void *)(block->data + h->ops.offset);
    for (uint32_t i = 0; i < h->ops.count; i++) {
        if (ops[i].kind > PLAN_OP_SYMLINK)
            continue;
        const char *place = op_place(block, &ops[i]), *slash = strrchr(place, '/');
        cr_assert(!is_made_before(block, ops, i, place, 0), "%s is made twice", place);
        if (!slash)
            continue;
        const char *parent = text_format("%.*s", (int)(slash - place), place);
        cr_assert(is_made_before(block, ops, i, parent, PLAN_OP_DIR) ||
                      strcmp(parent, "data:work") == 0 || strcmp(parent, "data:tmp") == 0,
                  "%s has no parent", place);
    }
}

static void golden(const char *name, const struct hutch_request *request, enum plan_purpose purpose,
                   const struct facts *facts)
{
    _cleanup_buf_ struct buf block = sample_plan(request, purpose, facts);
    _cleanup_buf_ struct buf again = sample_plan(request, purpose, facts);
    cr_assert(block.len == again.len && memcmp(block.data, again.data, block.len) == 0,
              "the same input gave another block");
    check_tree(&block);
    _cleanup_free_ char *text = plan_text_of(request, &block);
    cut_out(text, "\"steps\":", "],");
    cut_runner(text, request);
    compare_golden(name, text);
}

/* ---- golden files ---- */

Test(plan, golden_run_python)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_RUN, "python", "print(1)\n");
    const struct facts facts = sample_facts();
    cr_assert_eq(hutch_request_add_arg(request, "a b", &err), 0);
    sample_file(request, "in.csv", 0644);
    sample_file(request, "bin/tool", 0755);
    sample_set(request, "env", "HOME=/elsewhere");
    sample_set(request, "env", "K=v=w \"\n\xc3\xa9");
    golden("run_python", request, PLAN_RUN, &facts);
}

Test(plan, golden_run_javascript)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_RUN, "javascript", "1\n");
    struct facts facts = sample_root_facts();
    golden("run_javascript", request, PLAN_RUN, &facts);
}

Test(plan, golden_run_bash)
{
    _cleanup_request_ struct hutch_request *request = sample_code(HUTCH_VERB_RUN, "bash", "echo\n");
    struct facts facts = sample_root_facts();
    facts.cgroup_memory = false; /* pids and cpu alone */
    cr_assert_eq(hutch_request_add_arg(request, "-x", &err), 0);
    golden("run_bash", request, PLAN_RUN, &facts);
}

Test(plan, golden_run_command_with_every_limit)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "-c", "true"));
    const struct facts facts = sample_facts();
    sample_set(request, "timeout", "1.5");
    sample_set(request, "cpu-time", "2.5");
    sample_set(request, "memory", "100M");
    sample_set(request, "cpus", "1.5");
    sample_set(request, "pids", "7");
    sample_set(request, "disk", "1M");
    sample_set(request, "max-output", "0");
    sample_set(request, "require", "landlock");
    sample_set(request, "allow-missing", "net_ns");
    sample_set(request, "workdir", "/tmp");
    golden("run_command_limits", request, PLAN_RUN, &facts);
}

Test(plan, golden_exec)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return args");
    struct facts facts = sample_root_facts();
    facts.exec_by_fd = true;
    cr_assert_eq(hutch_request_set_args(request, "{\"n\": 1.0}", 10, &err), 0);
    golden("exec", request, PLAN_EXEC, &facts);
}

Test(plan, golden_validate)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return args");
    struct facts facts = sample_facts();
    facts.exec_by_fd = true;
    golden("validate", request, PLAN_VALIDATE, &facts);
}

Test(plan, golden_rootfs_of_the_callers)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("/bin/sh"));
    const struct facts facts = sample_facts();
    sample_set(request, "rootfs", "/srv/root");
    golden("rootfs_self", request, PLAN_RUN, &facts);
}

Test(plan, golden_rootfs_idmapped_and_writable)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("/bin/sh"));
    struct facts facts = sample_root_facts();
    facts.rootfs_host_index = 0;
    facts.host_sources = 1;
    sample_set(request, "rootfs", "/srv/root");
    sample_set(request, "writable-root", "1");
    golden("rootfs_root_writable", request, PLAN_RUN, &facts);
}

Test(plan, golden_writable_host_root)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("/bin/sh"));
    const struct facts facts = sample_facts();
    sample_set(request, "writable-root", "1");
    golden("writable_root", request, PLAN_RUN, &facts);
}

/* Below each place of the data tmpfs, below and onto what the root has anyway, below its links,
 * one below another. */
Test(plan, golden_binds)
{
    static const char *const TARGETS[] = {
        "/work/in/deep",  "/tmp/file",      "/var/tmp/x", "/etc/resolv.conf",
        "/etc/localtime", "/etc/ssl",       "/bin/extra", "/lib/x/y",
        "/data",          "/data/sub/file",
    };
    static struct facts_bind binds[ARRAY_LEN(TARGETS) + 2];
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    struct facts facts = sample_root_facts();
    for (size_t i = 0; i < ARRAY_LEN(TARGETS); i++) {
        bool is_file = strstr(TARGETS[i], "file") || strstr(TARGETS[i], "/etc/resolv.conf") ||
                       strstr(TARGETS[i], "localtime") || strstr(TARGETS[i], "extra");
        binds[i] = (struct facts_bind){.is_dir = !is_file, .host_index = -1};
        sample_set(request, "ro-bind", text_format("/srv/%zu:%s", i, TARGETS[i]));
    }
    binds[ARRAY_LEN(TARGETS)] = (struct facts_bind){.is_dir = true, .host_index = 0};
    binds[ARRAY_LEN(TARGETS) + 1] = (struct facts_bind){.is_dir = false, .host_index = 1};
    sample_set(request, "bind", "/srv/dir:/out/dir");
    sample_set(request, "bind", "/srv/file:/out/file");
    facts.binds = binds;
    facts.host_sources = 2;
    golden("binds", request, PLAN_RUN, &facts);
}

Test(plan, golden_bind_at_work)
{
    static struct facts_bind binds[] = {{.is_dir = true, .host_index = -1},
                                        {.is_dir = true, .host_index = -1},
                                        {.is_dir = false, .host_index = -1}};
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    struct facts facts = sample_facts();
    sample_set(request, "bind", "/srv/work:/work");
    sample_set(request, "ro-bind", "/srv/dir:/work/dir");
    sample_set(request, "ro-bind", "/srv/file:/work/file");
    facts.binds = binds;
    cr_assert(plan_work_is_bound(request));
    golden("bind_at_work", request, PLAN_RUN, &facts);
}

Test(plan, golden_python_prefixes)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_RUN, "python", "print(1)");
    struct facts facts = sample_facts();
    (void)snprintf(facts.interpreter, sizeof(facts.interpreter), "/tmp/venv/bin/python");
    (void)snprintf(facts.prefixes[0], sizeof(facts.prefixes[0]), "/tmp/venv");
    (void)snprintf(facts.prefixes[1], sizeof(facts.prefixes[1]), "/opt/python/3.12");
    golden("python_prefixes", request, PLAN_RUN, &facts);
}

Test(plan, golden_steps)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    _cleanup_buf_ struct buf block = sample_plan(request, PLAN_RUN, &facts);
    char *text = plan_text_of(request, &block);
    const char *steps = cut_out(text, "\"steps\":", "]");
    compare_golden("steps", text_format("{%s}", steps));
}

/* ---- what the text doesn't show ---- */

static const struct plan_header *header_of(const struct buf *block)
{
    return (const void *)block->data;
}

Test(plan, limits_are_kept_by_the_cgroup_or_by_init)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts alone = sample_facts(), root = sample_root_facts();
    sample_set(request, "cpu-time", "3");
    sample_set(request, "memory", "64M");
    _cleanup_buf_ struct buf watched = sample_plan(request, PLAN_RUN, &alone);
    _cleanup_buf_ struct buf kept = sample_plan(request, PLAN_RUN, &root);
    cr_assert_eq(header_of(&watched)->memory_bytes, 64U << 20);
    cr_assert_eq(header_of(&watched)->cpu_time_ms, 3000);
    cr_assert_eq(header_of(&watched)->nice, 19);
    cr_assert_eq(header_of(&kept)->memory_bytes, 0);
    cr_assert_eq(header_of(&kept)->cpu_time_ms, 0);
    cr_assert_eq(header_of(&kept)->nice, 0);
    cr_assert_eq(header_of(&kept)->wall_ms, 30000);
}

Test(plan, cpus_are_taken_from_the_callers_own)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    sample_set(request, "cpus", "1.5");
    _cleanup_buf_ struct buf two = sample_plan(request, PLAN_RUN, &facts);
    const uint64_t *mask = (const void *)(two.data + header_of(&two)->affinity.offset);
    cr_assert_eq(header_of(&two)->affinity.count, PLAN_CPU_WORDS);
    cr_assert_eq(header_of(&two)->cpus, 2);
    cr_assert_eq(mask[0], 0x33);
    sample_set(request, "cpus", "64");
    _cleanup_buf_ struct buf all = sample_plan(request, PLAN_RUN, &facts);
    cr_assert_eq(header_of(&all)->affinity.count, 0, "more than there are: nothing to restrict");
    cr_assert_eq(header_of(&all)->cpus, 0);
}

Test(plan, flags_and_ids)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return 1");
    struct facts facts = sample_facts();
    facts.exec_by_fd = facts.keeps_groups = true;
    _cleanup_buf_ struct buf block = sample_plan(request, PLAN_EXEC, &facts);
    const struct plan_header *h = header_of(&block);
    cr_assert_eq(h->flags, PLAN_FLAG_RESULT_FD | PLAN_FLAG_EXEC_BY_FD);
    cr_assert(h->uid == 1000 && h->gid == 1000 && h->outside_uid == 1234 && h->outside_gid == 5678);
    cr_assert_eq(h->required, LAYER_DEFAULT_REQUIRED);
    facts.exec_by_fd = facts.keeps_groups = false;
    _cleanup_request_ struct hutch_request *run = sample_command(LIST("sh"));
    _cleanup_buf_ struct buf plain = sample_plan(run, PLAN_RUN, &facts);
    cr_assert_eq(header_of(&plain)->flags, 0);
}

Test(plan, a_missing_right_to_core_files_keeps_them_at_0)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    struct facts facts = sample_facts();
    for (int fixed = 0; fixed < 2; fixed++) {
        facts.core_fixed_at_zero = fixed;
        _cleanup_buf_ struct buf block = sample_plan(request, PLAN_RUN, &facts);
        const struct plan_rlimit *limits =
            (const void *)(block.data + header_of(&block)->rlimits.offset);
        cr_assert_eq(limits[0].resource, RLIMIT_CORE);
        cr_assert_eq(limits[0].value, fixed ? 0 : 1);
        cr_assert_eq(limits[0].exact, 1);
    }
}

static const char *path_dirs(const struct buf *block)
{
    const uint32_t *dirs = (const void *)(block->data + header_of(block)->path_dirs.offset);
    const char *text = "";
    for (uint32_t i = 0; i < header_of(block)->path_dirs.count; i++)
        text = text_format("%s[%s]", text, block->data + dirs[i]);
    return text;
}

Test(plan, a_bare_name_is_looked_for_in_the_programs_own_path)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    _cleanup_buf_ struct buf block = sample_plan(request, PLAN_RUN, &facts);
    cr_assert_str_eq(path_dirs(&block), "[/usr/local/bin][/usr/bin][/bin]");
    sample_set(request, "env", "PATH=::/opt/b::/a b:");
    _cleanup_buf_ struct buf own = sample_plan(request, PLAN_RUN, &facts);
    cr_assert_str_eq(path_dirs(&own), "[/opt/b][/a b]");
    sample_set(request, "env", "PATH=");
    _cleanup_buf_ struct buf none = sample_plan(request, PLAN_RUN, &facts);
    cr_assert_str_eq(path_dirs(&none), "");
}

Test(plan, every_variable_is_there_once)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    sample_set(request, "cpus", "3");
    sample_set(request, "env", "OMP_NUM_THREADS=99");
    sample_set(request, "env", "LANG=");
    sample_set(request, "env", "LANGUAGE=de");
    _cleanup_buf_ struct buf block = sample_plan(request, PLAN_RUN, &facts);
    const uint64_t *slots = (const void *)(block.data + header_of(&block)->env.offset);
    const char *text = "";
    for (uint32_t i = 0; slots[i]; i++) {
        const char *variable = block.data + slots[i];
        for (uint32_t j = 0; j < i; j++)
            cr_assert(strncmp(variable, block.data + slots[j], strcspn(variable, "=") + 1) != 0,
                      "%s is there twice", variable);
        text = text_format("%s[%s]", text, variable);
    }
    cr_assert(strstr(text, "[OMP_NUM_THREADS=99]") && strstr(text, "[LANG=]"));
    cr_assert(strstr(text, "[OPENBLAS_NUM_THREADS=3]") && strstr(text, "[LANGUAGE=de]"));
}

Test(plan, bytes_that_are_not_utf8_leave_the_text_json)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh", "\xff\x80"));
    const struct facts facts = sample_facts();
    sample_set(request, "env", "K=\xc3");
    _cleanup_buf_ struct buf block = sample_plan(request, PLAN_RUN, &facts);
    _cleanup_free_ char *text = plan_text_of(request, &block);
    cr_assert_not_null(strstr(text, "K="));
    cr_assert_not_null(memmem(block.data, block.len, "K=\xc3", 4), "the box gets the bytes");
}

Test(plan, code_goes_elsewhere_when_work_is_bound)
{
    static struct facts_bind bind = {.is_dir = true, .host_index = -1};
    _cleanup_request_ struct hutch_request *request = sample_code(HUTCH_VERB_RUN, "bash", "echo");
    struct facts facts = sample_facts();
    struct buf block = BUF(0);
    cr_assert_str_eq(plan_code_dir(request), "/work");
    sample_set(request, "bind", "/srv/work:/work");
    facts.binds = &bind;
    cr_assert_str_eq(plan_code_dir(request), "/run/hutch/code");
    cr_assert_eq(plan_build(request, PLAN_RUN, &facts, &block, &err), 0, "%s", err.message);
    check_tree(&block);
    cr_assert_not_null(memmem(block.data, block.len, "run/hutch/code/main.sh", 23));
    cr_assert_null(memmem(block.data, block.len, "work/main.sh", 13));
    buf_free(&block);
    sample_file(request, "in", 0644);
    cr_assert_lt(request_check(request, &err), 0);
    cr_assert(err.stage == HUTCH_STAGE_REQUEST && strstr(err.message, "/work"));
    cr_assert_null(block.data);
}

Test(plan, more_binds_than_init_takes_are_the_callers_error)
{
    static struct facts_bind binds[128];
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    struct facts facts = sample_facts();
    size_t built = 0;
    facts.binds = binds;
    for (size_t i = 0; i < ARRAY_LEN(binds); i++) {
        struct buf block = BUF(0);
        binds[i] = (struct facts_bind){.is_dir = true, .host_index = -1};
        sample_set(request, "ro-bind", text_format("/srv/%zu:/d/%zu", i, i));
        if (plan_build(request, PLAN_RUN, &facts, &block, &err) < 0)
            break;
        cr_assert_eq(plan_check(block.data, block.len), 0, "init refuses %zu binds", i + 1);
        buf_free(&block);
        built++;
    }
    cr_assert(built >= 64 && built < ARRAY_LEN(binds), "%zu binds", built);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert(strstr(err.message, "binds are too many"), "%s", err.message);
}

Test(plan, code_that_is_no_utf8_is_the_callers_error_for_exec)
{
    _cleanup_request_ struct hutch_request *request =
        sample_code(HUTCH_VERB_EXEC, "python", "return '\xff'");
    const struct facts facts = sample_facts();
    struct buf block = BUF(0);
    cr_assert_lt(plan_build(request, PLAN_EXEC, &facts, &block, &err), 0);
    cr_assert_eq(err.stage, HUTCH_STAGE_REQUEST);
    cr_assert_null(block.data);
}

/* ---- the builder ---- */

Test(plan, a_block_over_its_bound_is_an_error)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    _cleanup_builder_ struct builder b;
    struct buf block = BUF(0);
    builder_init(&b, request, PLAN_RUN, &facts);
    b.block.max = 4096;
    builder_file(&b, "big", 0644, 0, (const char[4096]){0}, 4096);
    cr_assert_eq(builder_finish(&b, &block, &err), -EFBIG);
    cr_assert(err.stage == HUTCH_STAGE_PLAN && strstr(err.message, "--ro-bind"));
    cr_assert_null(block.data);
}

static const char *ops_of(struct builder *b)
{
    const struct plan_op *ops = (const void *)b->ops.data;
    const char *text = "";
    for (size_t i = 0; i < b->ops.len / sizeof(*ops); i++)
        text = text_format("%s %s:%o", text, op_place(&b->block, &ops[i]), ops[i].mode);
    return text;
}

Test(plan, directories_are_made_once_with_their_parents)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    const struct facts facts = sample_facts();
    _cleanup_builder_ struct builder b;
    builder_init(&b, request, PLAN_RUN, &facts);
    builder_dir(&b, "/a/b", 0700, 0);
    builder_dir(&b, "a/b", 0755, 0);
    builder_dir(&b, "/", 0755, 0);
    builder_dir(&b, "a/b", 0711, PLAN_IN_DATA);
    builder_file(&b, "/a/b/c/f", 0600, 0, "", 0);
    builder_file(&b, "a/bc", 0644, 0, "", 0);
    builder_symlink(&b, "/l/x", "y");
    cr_assert_str_eq(ops_of(&b), " a:755 a/b:700 data:a:755 data:a/b:711 a/b/c:755 a/b/c/f:600"
                                 " a/bc:644 l:755 l/x:0");
    cr_assert(builder_has(&b, "/a/b") && builder_has(&b, "a/b/c/f") && builder_has(&b, "a/bc"));
    cr_assert(!builder_has(&b, "a/b/c/f/g") && !builder_has(&b, "c") && !builder_has(&b, "x"));
}

Test(plan, text_of_something_else_is_refused)
{
    _cleanup_request_ struct hutch_request *request = sample_command(LIST("sh"));
    struct plan_header header = {.magic = PLAN_MAGIC + 1};
    struct buf json = BUF(0);
    cr_assert_eq(plan_json(request, &header, sizeof(header), &json, &err), -EINVAL);
    header.magic = PLAN_MAGIC;
    cr_assert_eq(plan_json(request, &header, sizeof(header) - 1, &json, &err), -EINVAL);
    cr_assert_eq(json.len, 0);
}

Test(plan, every_step_has_a_name)
{
    for (unsigned i = 0; i < PLAN_STEP_COUNT; i++) {
        cr_assert_str_neq(plan_step_name(i), "unknown");
        for (unsigned j = 0; j < i; j++)
            cr_assert_str_neq(plan_step_name(i), plan_step_name(j));
    }
    cr_assert_str_eq(plan_step_name(PLAN_STEP_COUNT), "unknown");
    cr_assert_str_eq(plan_step_name(~0U), "unknown");
}
