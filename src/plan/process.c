/* process.c - what the program is started with: arguments, environment, limits, rights. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "plan/builder.h"
#include "plan/payload.h"

#define RUN_DIR "/run/hutch"
#define CODE_ELSEWHERE RUN_DIR "/code"

const char *plan_code_dir(const struct hutch_request *request)
{
    return plan_work_is_bound(request) ? CODE_ELSEWHERE : "/work";
}

static void code_path(const struct builder *b, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", plan_code_dir(b->request),
                   language_info(b->request->language)->code_file);
}

/* ---- files that the program finds ------------------------------------------------------------ */

static void add_runner_files(struct builder *b)
{
    size_t len = 0;
    const struct runner_file *files = payload_files(b->request, &len);

    for (size_t i = 0; i < len; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), RUN_DIR "/%s", files[i].path);
        builder_file(b, path, 0644, 0, files[i].data, files[i].len);
    }
}

static int add_exec_request(struct builder *b, struct hutch_error *err)
{
    _cleanup_buf_ struct buf json = BUF(PLAN_MAX_BYTES);
    int r = payload_request_json(b->request, b->purpose == PLAN_VALIDATE, &json, err);

    if (r < 0)
        return r;
    builder_file(b, RUN_DIR "/request.json", 0644, 0, json.data, json.len);
    return 0;
}

static void add_code(struct builder *b)
{
    char path[128];
    bool elsewhere = plan_work_is_bound(b->request);

    code_path(b, path, sizeof(path));
    builder_file(b, elsewhere ? path : path + 1, 0644, elsewhere ? 0 : PLAN_IN_DATA,
                 b->request->code, b->request->code_len);
}

static void add_input_files(struct builder *b)
{
    for (size_t i = 0; i < b->request->files_len; i++) {
        const struct input_file *file = &b->request->files[i];
        char path[FACTS_PATH_MAX + 8];
        (void)snprintf(path, sizeof(path), "work/%s", file->name);
        builder_file(b, path, file->executable ? 0755 : 0644, PLAN_IN_DATA, file->data, file->len);
    }
}

int plan_add_payload(struct builder *b, struct hutch_error *err)
{
    add_runner_files(b);
    if (b->purpose != PLAN_RUN)
        return add_exec_request(b, err);
    if (b->request->code != NULL)
        add_code(b);
    add_input_files(b);
    return 0;
}

/* ---- arguments and environment --------------------------------------------------------------- */

static void add_list(struct builder *b, const struct text_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        builder_argv(b, list->items[i]);
}

static void add_python(struct builder *b, const char *code)
{
    builder_argv(b, b->facts->interpreter);
    if (b->purpose != PLAN_RUN)
        builder_argv(b, "-I");
    builder_argv(b, "-S"); /* site costs a third of the start; the runner does its part */
    builder_argv(b, "-c");
    builder_argv(b, payload_start(b->request));
    if (b->purpose == PLAN_RUN)
        builder_argv(b, code);
}

static void add_argv(struct builder *b)
{
    char code[128];

    if (b->purpose == PLAN_RUN && b->request->language == LANGUAGE_NONE) {
        b->header.program = builder_text(b, b->request->command.items[0]);
        add_list(b, &b->request->command);
        return;
    }
    b->header.program = builder_text(b, b->facts->interpreter);
    code_path(b, code, sizeof(code));
    if (b->request->language == LANGUAGE_PYTHON || b->purpose != PLAN_RUN) {
        add_python(b, code);
    } else {
        builder_argv(b, b->facts->interpreter);
        builder_argv(b, code);
    }
    add_list(b, &b->request->args);
}

static unsigned cpus_shown(const struct builder *b)
{
    uint64_t quota = (b->request->limits.cpus_milli + 999) / 1000;

    return quota < b->facts->cpus ? (unsigned)quota : b->facts->cpus;
}

/* The numeric libraries start a thread for each CPU of the machine unless they are told. */
static const char *const THREAD_VARIABLES[] = {
    "OMP_NUM_THREADS",     "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS",    "PYTHON_CPU_COUNT",
};
static const struct {
    const char *name, *value;
} VARIABLES[] = {
    {"PATH", "/usr/local/bin:/usr/bin:/bin"},
    {"HOME", "/tmp"},
    {"USER", "hutch"},
    {"LOGNAME", "hutch"},
    {"LANG", "C.UTF-8"},
    {"TMPDIR", "/tmp"},
    {"PYTHONUNBUFFERED", "1"},        /* what was printed is there when a limit ends the run */
    {"PYTHONDONTWRITEBYTECODE", "1"}, /* or __pycache__ would be a produced file */
};

static bool is_set(const struct hutch_request *request, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < request->env.len; i++)
        if (strncmp(request->env.items[i], name, len) == 0 && request->env.items[i][len] == '=')
            return true;
    return false;
}

static void add_env(struct builder *b)
{
    char count[16];

    (void)snprintf(count, sizeof(count), "%u", cpus_shown(b));
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++)
        if (!is_set(b->request, VARIABLES[i].name))
            builder_env(b, VARIABLES[i].name, VARIABLES[i].value);
    for (size_t i = 0; i < ARRAY_LEN(THREAD_VARIABLES); i++)
        if (!is_set(b->request, THREAD_VARIABLES[i]))
            builder_env(b, THREAD_VARIABLES[i], count);
    /* A script beside a bind at /work still finds the modules that lie there. */
    if (b->request->code != NULL && plan_work_is_bound(b->request) &&
        !is_set(b->request, "PYTHONPATH"))
        builder_env(b, "PYTHONPATH", "/work");
    for (size_t i = 0; i < b->request->env.len; i++)
        builder_env_text(b, b->request->env.items[i]);
}

/* Where a bare command name is looked for: the PATH that the program will have. */
static void add_path_dirs(struct builder *b)
{
    const char *path = VARIABLES[0].value;

    for (size_t i = 0; i < b->request->env.len; i++)
        if (strncmp(b->request->env.items[i], "PATH=", 5) == 0)
            path = b->request->env.items[i] + 5;
    while (*path != '\0') {
        char dir[FACTS_PATH_MAX];
        size_t len = strcspn(path, ":");
        if (len > 0 && len < sizeof(dir)) {
            memcpy(dir, path, len);
            dir[len] = '\0';
            builder_path_dir(b, dir);
        }
        path += len + (path[len] == ':');
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

#define OPEN_FILES 1024U
/* Where no cgroup counts socket buffers: 256 sockets can hold some 50 MiB. */
#define OPEN_FILES_WATCHED 256U
/* More than the tmpfs holds, so that a full disk is ENOSPC and not SIGXFSZ. */
#define FILE_SIZE_SPARE (1U << 20)

static void add_rlimits(struct builder *b)
{
    const struct limits *limits = &b->request->limits;
    bool watched = !b->facts->cgroup_memory;

    builder_rlimit(b, RLIMIT_CORE, b->facts->core_fixed_at_zero ? 0 : 1, true);
    if (!b->facts->exec_by_fd) /* else set to PLAN_EXEC_NOFILE behind the interpreter's fd */
        builder_rlimit(b, RLIMIT_NOFILE, watched ? OPEN_FILES_WATCHED : OPEN_FILES, false);
    builder_rlimit(b, RLIMIT_FSIZE, limits->disk_bytes + FILE_SIZE_SPARE, false);
    builder_rlimit(b, RLIMIT_MSGQUEUE, 0, false);
    builder_rlimit(b, RLIMIT_RTPRIO, 0, false);
    builder_rlimit(b, RLIMIT_MEMLOCK, 8U << 20, false);
    if (!b->facts->cgroup_pids) /* per user namespace, so per box; init's threads count too */
        builder_rlimit(b, RLIMIT_NPROC, limits->pids + (watched ? 2 : 1), false);
    if (limits->cpu_time_ms != 0) /* the last resort: whole seconds, each process on its own */
        builder_rlimit(b, RLIMIT_CPU, limits->cpu_time_ms / 1000 + 2, false);
}

static void add_schedule(struct builder *b)
{
    static const char ZEROS[8];

    if (cpus_shown(b) < b->facts->cpus) {
        buf_put(&b->block, ZEROS, (8 - b->block.len % 8) % 8);
        b->header.affinity.offset = builder_data(b, b->facts->cpu_mask, sizeof(b->facts->cpu_mask));
        b->header.affinity.count = FACTS_CPU_WORDS;
        b->header.cpus = cpus_shown(b);
    }
    if (!b->facts->cgroup_memory)
        b->header.nice = 19;
}

/* What may be written; all of the root may be read and executed. Not /proc: nothing there is the
 * program's to set. */
static const struct {
    const char *path;
    enum plan_access access;
} WRITABLE[] = {
    {"/work", PLAN_ACCESS_WRITE},       {"/tmp", PLAN_ACCESS_WRITE},
    {"/dev/shm", PLAN_ACCESS_WRITE},    {"/dev/pts", PLAN_ACCESS_DEVICES},
    {"/dev/null", PLAN_ACCESS_FILE},    {"/dev/zero", PLAN_ACCESS_FILE},
    {"/dev/full", PLAN_ACCESS_FILE},    {"/dev/random", PLAN_ACCESS_FILE},
    {"/dev/urandom", PLAN_ACCESS_FILE},
};

static void add_access(struct builder *b)
{
    builder_access(b, "/", b->request->writable_root ? PLAN_ACCESS_WRITE : PLAN_ACCESS_READ);
    for (size_t i = 0; i < ARRAY_LEN(WRITABLE); i++)
        builder_access(b, WRITABLE[i].path, WRITABLE[i].access);
    for (size_t i = 0; i < b->request->binds_len; i++)
        if (b->request->binds[i].writable)
            builder_access(b, b->request->binds[i].target,
                           b->facts->binds[i].is_dir ? PLAN_ACCESS_WRITE : PLAN_ACCESS_FILE);
}

static void add_numbers(struct builder *b)
{
    const struct limits *limits = &b->request->limits;
    struct plan_header *h = &b->header;

    h->mode = b->facts->mode;
    h->layers = b->facts->layers;
    h->required = b->request->require & ~b->request->allow_missing;
    h->host_sources = b->facts->host_sources;
    h->uid = h->gid = 1000;
    h->outside_uid = b->facts->euid;
    h->outside_gid = b->facts->egid;
    h->data_bytes = limits->disk_bytes;
    h->data_inodes = 16384;
    h->wall_ms = limits->timeout_ms;
    h->cpu_time_ms = b->facts->cgroup_cpu ? 0 : limits->cpu_time_ms;
    h->memory_bytes = b->facts->cgroup_memory ? 0 : limits->memory_bytes;
    h->skip_steps = b->facts->skip_steps;
    h->fault_call = b->facts->fault_call;
    h->flags |= (b->purpose != PLAN_RUN ? PLAN_FLAG_RESULT_FD : 0U) |
                (b->facts->exec_by_fd ? PLAN_FLAG_EXEC_BY_FD : 0U);
}

void plan_add_process(struct builder *b)
{
    add_numbers(b);
    b->header.hostname = builder_text(b, "hutch");
    b->header.workdir = builder_text(b, b->request->workdir);
    add_argv(b);
    add_env(b);
    add_path_dirs(b);
    add_rlimits(b);
    add_schedule(b);
    add_access(b);
}

int plan_build(const struct hutch_request *request, enum plan_purpose purpose,
               const struct facts *facts, struct buf *ret_block, struct hutch_error *err)
{
    _cleanup_builder_ struct builder b;
    int r;

    builder_init(&b, request, purpose, facts);
    plan_add_root(&b);
    if (b.sources.len / sizeof(struct plan_source) > PLAN_SOURCES_MAX)
        return error_request(err,
                             "%zu binds are too many for one box; bind directories that hold "
                             "several of them",
                             request->binds_len);
    r = plan_add_payload(&b, err);
    if (r < 0)
        return r;
    plan_add_process(&b);
    return builder_finish(&b, ret_block, err);
}
