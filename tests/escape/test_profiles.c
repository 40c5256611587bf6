/*
 * test_profiles.c - the `tool` profile of exec: no new program, no new process, no socket. The
 * attempts are Python (ctypes, unchecked), run the same way outside first.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(tool, .timeout = 120);

/* Defines try_(name, function): 'OK' or the errno's name, into `out`. */
#define PRELUDE                                                                                    \
    "import ctypes, errno, os, socket\n"                                                           \
    "libc = ctypes.CDLL(None, use_errno=True)\n"                                                   \
    "out = {}\n"                                                                                   \
    "def try_(name, f):\n"                                                                         \
    "    try: r = f()\n"                                                                           \
    "    except OSError as e: out[name] = errno.errorcode[e.errno]; return\n"                      \
    "    if isinstance(r, int) and r < 0: r = errno.errorcode[ctypes.get_errno()]\n"               \
    "    else: r = 'OK'\n"                                                                         \
    "    out[name] = r\n"                                                                          \
    "def call(*a):\n"                                                                              \
    "    ctypes.set_errno(0)\n"                                                                    \
    "    return libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])\n"

#define ATTEMPTS                                                                                   \
    "def fork():\n"                                                                                \
    "    p = os.fork()\n"                                                                          \
    "    if p == 0: os._exit(0)\n"                                                                 \
    "    os.waitpid(p, 0)\n"                                                                       \
    "def vfork_like():\n"                                                                          \
    "    p = call(56, 17, 0, 0, 0, 0)\n"                                                           \
    "    if p == 0: os._exit(0)\n"                                                                 \
    "    return p\n"                                                                               \
    "try_('fork', fork)\n"                                                                         \
    "try_('clone', vfork_like)\n"                                                                  \
    "try_('spawn', lambda: os.waitpid(os.posix_spawn('/usr/bin/env', ['true'], {}), 0)[1] and "    \
    "-1)\n"                                                                                        \
    "try_('tcp', lambda: socket.socket(socket.AF_INET))\n"                                         \
    "try_('unix', lambda: socket.socketpair()[0])\n"                                               \
    "try_('execve_probe', lambda: call(59, b'/no/such/program', None, None))\n"                    \
    "try_('execveat_probe', lambda: call(322, -100, b'/no/such/program', None, None, 0))\n"        \
    "try_('ptrace', lambda: call(101, 0x4200, 0, 0, 0))\n"                                         \
    "try_('keyctl', lambda: call(250, 0, -2, 1))\n"                                                \
    "try_('unshare', lambda: call(272, 0x10000000))\n"                                             \
    "try_('io_uring', lambda: call(425, 1, None))\n"                                               \
    "try_('kill_group', lambda: call(62, 0, 0))\n"

static struct answer outside(const char *code)
{
    struct spawn spec = {.argv = LIST("/usr/bin/python3")};
    return hutch_with(
        &spec,
        LIST("-I", "-c", text_format("%s\nimport json\nprint(json.dumps({'output': out}))", code)));
}

static struct answer inside(const char *code)
{
    struct answer a = exec_body(text_format("%s\nreturn out", code), "\"check\":\"none\"");
    expect_clean(&a);
    return a;
}

Test(tool, no_new_process_no_new_program_no_socket)
{
    static const char *const must_work_outside[] = {"fork", "clone", "spawn", "tcp", "unix"};
    static const char *const denied[] = {"fork",   "clone",        "spawn",          "tcp",
                                         "unix",   "execve_probe", "execveat_probe", "ptrace",
                                         "keyctl", "unshare",      "io_uring"};
    _cleanup_answer_ struct answer control = outside(PRELUDE ATTEMPTS);
    for (size_t i = 0; i < sizeof must_work_outside / sizeof must_work_outside[0]; i++)
        expect(&control, answer_is(&control, text_format("output.%s", must_work_outside[i]), "OK"));
    expect(&control, answer_is(&control, "output.execve_probe", "ENOENT"));
    expect(&control, answer_is(&control, "output.execveat_probe", "ENOENT"));
    _cleanup_answer_ struct answer box = inside(PRELUDE ATTEMPTS);
    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
        const char *path = text_format("output.%s", denied[i]);
        const char *result = answer_text(&box, path);
        cr_expect(strcmp(result, "EPERM") == 0 || strcmp(result, "ENOSYS") == 0, "%s: %s",
                  denied[i], result);
    }
}

#define EXEC_FD                                                                                    \
    "import fcntl\n"                                                                               \
    "fd = os.open('/usr/bin/env', os.O_RDONLY)\n"                                                  \
    "argv = (ctypes.c_char_p * 2)(b'env', None)\n"                                                 \
    "env = (ctypes.c_char_p * 1)(None)\n"                                                          \
    "try_('open_1023', lambda: os.fstat(1023))\n"                                                  \
    "try_('dup2', lambda: os.dup2(fd, 1023))\n"                                                    \
    "try_('dup3', lambda: call(292, fd, 1023, 0))\n"                                               \
    "try_('fcntl', lambda: fcntl.fcntl(fd, fcntl.F_DUPFD, 1023))\n"                                \
    "try_('raise', lambda: call(302, 0, 7, (ctypes.c_ulong * 2)(4096, 4096), None))\n"             \
    "try_('exec_1023', lambda: call(322, 1023, b'', argv, env, 0x1000))\n"                         \
    "try_('exec_1023_high', lambda: call(322, 1023 | 1 << 32, b'', argv, env, 0x1000))\n"          \
    "try_('exec_fd', lambda: call(322, fd, b'', argv, env, 0x1000))\n"                             \
    "for secret in range(64): call(322, fd, b'', argv, env, 0x1000, secret)\n"                     \
    "try_('still_here', lambda: 0)\n"

Test(tool, the_interpreters_fd_can_never_be_filled_again)
{
    static const char *const attempts[] = {"open_1023", "dup2",      "dup3",           "fcntl",
                                           "raise",     "exec_1023", "exec_1023_high", "exec_fd"};
    _cleanup_answer_ struct answer box = inside(PRELUDE EXEC_FD);
    expect(&box, answer_is(&box, "output.still_here", "OK"));
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        cr_expect(!answer_is(&box, text_format("output.%s", attempts[i]), "OK"), "%s\n%s",
                  attempts[i], answer_show(&box));
}

Test(tool, a_mapped_program_cannot_be_started_through_the_loader)
{
    _cleanup_answer_ struct answer box = inside(
        PRELUDE "loader = b'/lib64/ld-linux-x86-64.so.2'\n"
                "argv = (ctypes.c_char_p * 3)(loader, b'/usr/bin/env', None)\n"
                "env = (ctypes.c_char_p * 1)(None)\n"
                "try_('loader', lambda: call(59, loader, argv, env))\n"
                "try_('subprocess', lambda: __import__('subprocess').run(['true']).returncode)\n");
    expect(&box, !answer_is(&box, "output.loader", "OK"));
    expect(&box, !answer_is(&box, "output.subprocess", "OK"));
}

Test(tool, what_a_function_needs_works)
{
    _cleanup_answer_ struct answer a = exec_body(
        "import json, re, math, datetime, decimal, collections, itertools, random, hashlib\n"
        "open('/work/f', 'w').write('text'); open('/tmp/g', 'w').write('more')\n"
        "import os\n"
        "return [os.listdir('/work'), open('/work/f').read(), len(os.urandom(4)),"
        " hashlib.sha256(b'x').hexdigest()[:4], str(decimal.Decimal('0.1') * 3)]",
        "\"check\":\"none\"");
    expect_clean(&a);
    expect(&a, answer_is(&a, "output.1", "text") && answer_is(&a, "output.3", "2d71"));
}

Test(tool, python_scripts_keep_processes_and_sockets_but_no_raw_ones)
{
    _cleanup_answer_ struct answer a =
        run_py(PRELUDE ATTEMPTS "import json\nprint(json.dumps(out))", NULL);
    expect_clean(&a);
    const char *out = answer_text(&a, "stdout");
    expect(&a, strstr(out, "\"fork\": \"OK\"") && strstr(out, "\"spawn\": \"OK\"") &&
                   strstr(out, "\"tcp\": \"OK\""));
    expect(&a, !strstr(out, "\"ptrace\": \"OK\"") && !strstr(out, "\"keyctl\": \"OK\"") &&
                   !strstr(out, "\"unshare\": \"OK\""));
}
