/* test_python.c - what Python code expects of the place it runs in. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(python, .timeout = 280);

Test(python, known_ways_around_the_check_are_refused_or_find_nothing)
{
    static const char *const codes[] = {
        "g = (x for x in [1])\nreturn str(g.gi_frame.f_back.f_globals)",
        "def f():\n    yield g.gi_frame.f_back\ng = f()\nreturn str(next(g))",
        "return '{0.__class__.__init__.__globals__}'.format(args)",
        "return '{x.__class__}'.format_map({'x': 1})",
        "return f'{args.__class__}'",
        "return ().__cl\\u0061ss__",
        "return ()._\\uff3fclass_\\uff3f",
        "return \\uff45val('1')",
        "match args:\n    case list(__class__=c):\n        return str(c)\nmatch args:\n    case "
        "dict("
        "__class__=c):\n        return str(c)\n",
        "@eval\ndef f(): pass\nreturn 1",
        "def f(x=open): return x\nreturn str(f())",
        "return str((y := getattr)(args, 'keys'))",
        "x = [c for c in ().__class__.__base__.__subclasses__()]\nreturn len(x)",
        "try:\n    1/0\nexcept Exception as e:\n    return str(e.__traceback__.tb_frame.f_back)",
        "return str(print.__self__)",
        "class A: pass\nreturn 1",
        "return args['x'].__reduce__()",
        "import sys\nreturn 1",
        "return __builtins__['eval']('1')",
        "lambda: (yield)\nasync def f(): pass\nreturn str(f().cr_frame)",
        "return getattr",
        "del print\nreturn vars()",
        "return type(1)",
        "return d['__class__']",
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        _cleanup_answer_ struct answer a = exec_body(codes[i], NULL);
        cr_expect(answer_is(&a, "reason", "invalid"), "not refused: %s\n%s", codes[i],
                  answer_show(&a));
    }
}

Test(python, ordinary_code_is_not_refused)
{
    static const char *const codes[] = {
        "def f(**k): return k\nreturn f(type=2)",
        "return {'type': 1}['type']",
        "return '{0}-{a}'.format(1, a=2)",
        "return sorted([3, 1, 2], key=lambda v: -v)",
        "def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)\nreturn fib(10)",
        "try:\n    raise KeyError('k')\nexcept KeyError as err:\n    return str(err)",
        "match args:\n    case {}: return 'dict'",
        "return [x async for x in y] if False else 1",
        "total = 0\nfor i in range(10):\n    total += i\nreturn total",
        "return isinstance(True, int) and callable(len)",
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        _cleanup_answer_ struct answer a = exec_body(codes[i], NULL);
        cr_expect(!answer_is(&a, "reason", "invalid") || strstr(codes[i], "async"),
                  "refused: %s\n%s", codes[i], answer_show(&a));
    }
}

Test(python, unchecked_code_finds_nothing_of_the_host)
{
    struct spawn base = {.env = LIST("PATH=/usr/bin:/bin", "SECRET=canary-in-the-environment"),
                         .input = "{\"check\":\"none\",\"code\":\"import os\\nreturn "
                                  "[sorted(os.listdir('/')), dict(os.environ)]\"}"};
    base.input_len = strlen(base.input);
    _cleanup_answer_ struct answer a = hutch_with(&base, LIST("exec", "-"));
    expect_clean(&a);
    expect(&a, !strstr(a.o.out, "canary"));
    static const char *const absent[] = {"home", "root", "boot", "sys", "mnt", "srv", "media"};
    for (size_t i = 0; i < answer_len(&a, "output.0"); i++)
        for (size_t k = 0; k < sizeof absent / sizeof absent[0]; k++)
            expect(&a, !answer_is(&a, text_format("output.0.%zu", i), absent[k]));
}

Test(python, ctypes_system_works_and_harms_nothing)
{
    _cleanup_answer_ struct answer a =
        run_py("import ctypes\nctypes.CDLL(None).system(b'id -u')", NULL);
    expect_stdout(&a, "1000\n");
}

Test(python, a_crash_is_signal_11_without_a_core_and_the_next_run_is_clean)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *before = names_now(dir.path);
    struct spawn base = {.cwd = dir.path};
    _cleanup_answer_ struct answer a =
        hutch_with(&base, LIST("run", "--json", "--", "/usr/bin/python3", "-c",
                               "import ctypes; ctypes.string_at(0)"));
    expect_reason(&a, "signal");
    expect(&a, answer_int(&a, "signal") == 11 && answer_len(&a, "files") == 0);
    cr_assert_str_eq(names_now(dir.path), before);
    _cleanup_answer_ struct answer b = run_py("print('clean')", NULL);
    expect_stdout(&b, "clean\n");
}

Test(python, user_home_and_temporary_files_are_there)
{
    _cleanup_answer_ struct answer a =
        run_py("import getpass, os, tempfile, pwd, grp, socket, locale\n"
               "assert getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name\n"
               "assert os.path.expanduser('~') == '/tmp', os.path.expanduser('~')\n"
               "grp.getgrgid(os.getgid())\n"
               "with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
               "with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w')\n"
               "socket.gethostbyname('localhost'); socket.gethostname()\n"
               "os.makedirs(os.path.expanduser('~/.cache/matplotlib'))\n"
               "open(os.path.expanduser('~/.cache/matplotlib/fontlist.json'), 'w').write('{}')\n"
               "print(os.getuid(), os.getgid(), os.getcwd(), 'é')\n",
               NULL);
    expect_stdout(&a, "1000 1000 /work é\n");
}

Test(python, matplotlib_draws_where_it_is_installed)
{
    _cleanup_answer_ struct answer a = run_py("try: import matplotlib\n"
                                              "except ImportError: print('not installed')\n"
                                              "else:\n"
                                              "    matplotlib.use('Agg')\n"
                                              "    import matplotlib.pyplot as p\n"
                                              "    p.plot([1, 2]); p.savefig('a.png')\n"
                                              "    print(open('a.png', 'rb').read(4))\n",
                                              LIST("--memory", "1G", "--timeout", "120"));
    expect_clean(&a);
    expect(&a,
           answer_is(&a, "stdout", "not installed\n") || answer_find(&a, "files", "a.png") >= 0);
}

Test(python, proc_is_readable_and_shows_the_box_only)
{
    _cleanup_answer_ struct answer a =
        run_py("import os\n"
               "for f in '/proc/stat', '/proc/meminfo', '/proc/self/maps', '/proc/cpuinfo':\n"
               "    assert len(open(f).read()) > 100, f\n"
               "assert os.listdir('/proc/self/fd')\n"
               "pids = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())\n"
               "print(len(pids) <= 3, pids[0], os.getpid() < 10)\n",
               NULL);
    expect_stdout(&a, "True 1 True\n");
}

Test(python, the_standard_library_works_again_and_again)
{
    static const char CODE[] =
        "import json, ssl, zoneinfo, asyncio, uuid, threading, sqlite3, hashlib, subprocess\n"
        "ssl.create_default_context()\n"
        "zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "async def f(): await asyncio.sleep(0); return 3\n"
        "assert asyncio.run(f()) == 3\n"
        "uuid.uuid1(); uuid.uuid4()\n"
        "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
        "c = sqlite3.connect('db'); c.execute('create table t(x)'); c.execute('insert into t "
        "values(1)')\n"
        "c.commit(); assert c.execute('select x from t').fetchall() == [(1,)]; c.close()\n"
        "print(json.dumps({'sha': hashlib.sha256(b'x').hexdigest()[:4]}))\n";
    int runs = slow() > 1 ? 5 : 25;
    for (int i = 0; i < runs; i++) {
        _cleanup_answer_ struct answer a = run_py(CODE, NULL);
        expect_stdout(&a, "{\"sha\": \"2d71\"}\n");
    }
}

Test(python, subprocess_and_multiprocessing_in_each_way)
{
    static const char CODE[] =
        "import multiprocessing as mp, subprocess, sys, os\n"
        "def square(q, x):\n"
        "    q.put(x * x)\n"
        "if __name__ == '__main__':\n"
        "    for way in 'fork', 'spawn', 'forkserver':\n"
        "        c = mp.get_context(way)\n"
        "        q = c.Queue()\n"
        "        p = c.Process(target=square, args=(q, 7)); p.start()\n"
        "        print(way, q.get(timeout=50)); p.join()\n"
        "    with mp.get_context('spawn').Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
        "    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout, "
        "end='')\n"
        "    print(subprocess.check_output([sys.executable, '-c', 'print(1)']))\n";
    _cleanup_answer_ struct answer a = run_py(CODE, LIST("--timeout", "100"));
    expect_stdout(&a, "fork 49\nspawn 49\nforkserver 49\n[1, 2]\nsub\nb'1\\n'\n");
}

Test(python, numpy_works_in_scripts)
{
    _cleanup_answer_ struct answer a = run_py(
        "import numpy as np\n"
        "a = np.random.rand(50, 50)\n"
        "np.save('a.npy', a); assert (np.load('a.npy') == a).all()\n"
        "print(np.allclose(np.linalg.inv(a) @ a, np.eye(50)), np.fft.fft([1, 0]).real.tolist())\n",
        LIST("--timeout", "60"));
    expect_stdout(&a, "True [1.0, 1.0]\n");
}

Test(python, exit_and_quit_and_sys_path_are_as_in_any_script)
{
    _cleanup_answer_ struct answer a = run_py("import sys\nprint(sys.path[0])\nexit(4)", NULL);
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 4 && answer_is(&a, "stdout", "/work\n"));
    _cleanup_answer_ struct answer b = run_py("quit()", NULL);
    expect_clean(&b);
    _cleanup_answer_ struct answer c = run_py("import sys\nsys.exit('message')", NULL);
    expect(&c, answer_int(&c, "exit_code") == 1 && answer_is(&c, "stderr", "message\n"));
    _cleanup_answer_ struct answer d =
        run_py("print(__name__, __file__)\nraise RuntimeError('boom')", NULL);
    expect(&d, answer_is(&d, "stdout", "__main__ /work/main.py\n"));
    expect(&d, strstr(answer_text(&d, "stderr"), "RuntimeError: boom"));
    expect(&d, strstr(answer_text(&d, "stderr"), "File \"/work/main.py\", line 2"));
}

Test(python, input_modules_are_importable)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *module = file_new(dir.path, "helper.py", "VALUE = 'from helper'\n", 0644);
    _cleanup_answer_ struct answer a =
        run_py("import helper\nprint(helper.VALUE)", LIST("--file", module));
    expect_stdout(&a, "from helper\n");
    expect(&a, answer_len(&a, "files") == 0); /* no __pycache__ */
}

Test(python, no_network_but_loopback)
{
    _cleanup_answer_ struct answer a =
        run_py("import socket, threading\n"
               "def talk(family, host):\n"
               "    s = socket.create_server((host, 0), family=family)\n"
               "    c = socket.create_connection(s.getsockname()[:2], timeout=10)\n"
               "    x, _ = s.accept(); x.sendall(b'hello'); print(c.recv(5))\n"
               "talk(socket.AF_INET, '127.0.0.1')\n"
               "try: talk(socket.AF_INET6, '::1')\n"
               "except OSError as e: print('no v6', e)\n"
               "for host in '192.0.2.1', '8.8.8.8':\n"
               "    try: socket.create_connection((host, 53), timeout=5); print('reached')\n"
               "    except OSError as e: print(e.errno)\n"
               "try: socket.getaddrinfo('example.com', 80); print('resolved')\n"
               "except socket.gaierror: print('unresolved')\n",
               NULL);
    expect_clean(&a);
    bool v6 = path_exists("/proc/net/if_inet6");
    expect(&a, strncmp(answer_text(&a, "stdout"), "b'hello'\n", 9) == 0);
    expect(&a, !v6 || strstr(answer_text(&a, "stdout"), "b'hello'\nb'hello'\n"));
    expect(&a, strstr(answer_text(&a, "stdout"), "101\n101\nunresolved\n")); /* ENETUNREACH */
}
