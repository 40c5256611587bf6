"""Scripts below the runner: they must not be able to tell it from python itself."""

import os
import tempfile
import unittest

import runner
from runner import Script, run_script


class Same(unittest.TestCase):
    """Exit status, output and errors are those of `python SCRIPT`."""

    def assertSame(self, code, *args, status=None, **env):
        with Script(code) as script:
            mine, native = script.run(*args, **env), script.native(*args, **env)
        self.assertEqual(mine, native)
        if status is not None:
            self.assertEqual(mine[0], status)
        return mine

    def test_exit_statuses(self):
        for code, status in (
            ("", 0),
            ("import sys; sys.exit(3)", 3),
            ("import sys; sys.exit()", 0),
            ("import sys; sys.exit('bye')", 1),
            ("import sys; sys.exit(-1)", 255),
            ("exit(4)", 4),
            ("quit()", 0),
            ("raise SystemExit(5)", 5),
            ("raise ValueError('x')", 1),
            ("raise KeyboardInterrupt", -2),
            ("import os; os._exit(6)", 6),
            ("import os; os.kill(os.getpid(), 11)", -11),
            ("import os; os.abort()", -6),
            ("import signal; signal.raise_signal(signal.SIGINT)", -2),
            ("import signal; signal.raise_signal(signal.SIGTERM)", -15),
            ("import atexit, os; atexit.register(os._exit, 7)", 7),
            ("import threading; threading.Thread(target=print, args=(1,)).start()", 0),
            ("import sys; sys.stdout.close()", 0),
        ):
            with self.subTest(code):
                self.assertSame(code, status=status)

    def test_tracebacks(self):
        for code in (
            "1/0",
            "\n\ndef f(x):\n    return 1 / x\n\nf(0)",
            "try:\n    1/0\nexcept Exception:\n    raise ValueError('x')",
            "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('x') from e",
            "raise ValueError('x') from None",
            "import json\njson.loads('{')",
            "assert 1 == 2, 'no'",
            "import nosuchmodule",
            "import traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()",
            "import sys\n"
            "sys.excepthook = lambda *a: print(a[0], a[2].tb_lineno, a[2].tb_next)\n1/0",
            "import sys\ndef hook(*a): 1/0\nsys.excepthook = lambda *a: print(len(a))\nhook()",
            "import threading\n"
            "t = threading.Thread(target=lambda: 1/0, name='t')\nt.start()\nt.join()",
            "import atexit, sys\n"
            "atexit.register(lambda: print(sys.last_value, sys.last_traceback.tb_lineno))\n1/0",
            "class E(Exception):\n    def __str__(self): return 1/0\nraise E",
            "exec('1/0')",
            "eval('1 +')",
        ):
            with self.subTest(code):
                _, _, stderr = self.assertSame(code)
                self.assertNotIn("hutch/", stderr)

    def test_what_the_compiler_says(self):
        for code in (
            "x = (",
            "x = 1\n  y = 2",
            "return 1",
            "print 'x'",
            "def f(:\n  pass",
            "x = '''abc",
            "if 1:\n\tx = 1\n        y = 2",
            "x = 1\nx is 1",
            "print('\\d', '\\w')",
            "assert (1, 'x')",
            "nonlocal x",
            "x = 1\nx is 1\nx = (",
            "f(**{'a': 1}, *b)",
        ):
            with self.subTest(code):
                self.assertSame(code)

    def test_encodings(self):
        for code in (
            "print('\u00e9')".encode(),
            b"\xef\xbb\xbf" + "print('\u00e9')".encode(),
            b"# -*- coding: latin-1 -*-\nprint('\xe9')",
            b"#!/usr/bin/python3\n# vim: set fileencoding=cp1252 :\nprint('\x80')\n1/0",
            b"x = 1\r\ny = '''a\r\nb'''\r\nprint(repr(y))",
            b"print(1)\x0c\nprint(2)\\\n\n",
            b"print(1) # no end of line",
        ):
            with self.subTest(code):
                self.assertSame(code)

    def test_source_that_is_no_text(self):
        # The words differ a little: python reads the file a line at a time.
        for code in (b"# coding: nosuchcodec\n", b"# coding: utf-16\n", b"x = '\xe9'\n"):
            with self.subTest(code):
                status, stdout, stderr = run_script(code)
                self.assertEqual((status, stdout), (1, ""))
                self.assertIn("SyntaxError: ", stderr)
                self.assertNotIn("Traceback", stderr)

    def test_surroundings(self):
        for code in (
            "import sys; print(sys.argv)",
            "print(__name__, __file__, __doc__, __package__, __spec__, __builtins__)",
            "'doc'\nprint(__doc__)",
            "print(sorted(n for n in globals() if n != '__annotations__'))",
            "x: int = 1\nprint(__annotations__)" if runner.VERSION < (3, 14) else "",
            "print(type(__loader__).__name__, __loader__.name, __loader__.path)",
            "import sys; print(sys.modules['__main__'].__dict__ is globals())",
            "import __main__; print(__main__.__file__)",
            "import os; print(os.getcwd() == os.path.dirname(__file__))",
            "import sys; print(sys.path[0] == __file__.rpartition('/')[0])",
            "import sys; print(sys.gettrace(), sys.excepthook is sys.__excepthook__)",
            "import warnings; print(warnings.filters)",
            "import warnings; warnings.warn('x')",
            "import warnings\ndef f(): warnings.warn('x', DeprecationWarning, stacklevel=2)\nf()",
            "import sys; print(sys.flags.isolated, sys.prefix, sys.exec_prefix)",
            "import sys; print(sys.stdin.read(), sys.stdin.encoding, sys.stdout.encoding)",
            "print(repr(exit), repr(quit))",
            "print(help)",
            "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))",
            "import sys; print(sys.getrecursionlimit())",
            "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
            "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nprint(A(1))",
            "def f(n):\n  try: return f(n + 1)\n  except RecursionError: return n\n"
            "print(f(0) > 900)",
        ):
            with self.subTest(code):
                self.assertSame(code, "a", "--b", "c d")

    def test_environment_variables_of_python(self):
        self.assertSame("assert False", PYTHONOPTIMIZE="1", status=0)
        self.assertSame("import sys; print(sys.path[0])", PYTHONPATH="/nowhere")
        self.assertSame("import warnings; warnings.warn('x')", PYTHONWARNINGS="error", status=1)
        self.assertSame("x = 1\nx is 1", PYTHONWARNINGS="error")
        self.assertSame("print(1)", PYTHONDEVMODE="1", status=0)
        if runner.VERSION >= (3, 11):
            self.assertSame("import sys; print(__file__ in sys.path)", PYTHONSAFEPATH="1")

    def test_a_module_beside_the_script(self):
        with Script("import beside\nprint(beside.x)") as script:
            with open(script.folder + "/beside.py", "w") as file:
                file.write("x = 7\n")
            self.assertEqual(script.run(), (0, "7\n", ""))


class Packages(unittest.TestCase):
    def test_numpy(self):
        self.assertEqual(run_script("import numpy\nprint(numpy.arange(3).sum())"), (0, "3\n", ""))

    def test_a_virtual_environments_packages(self):
        for system in ("true", "false"):
            with self.subTest(system), tempfile.TemporaryDirectory() as venv:
                packages = "%s/lib/python%d.%d/site-packages" % ((venv,) + runner.VERSION)
                os.makedirs(packages)
                os.mkdir(venv + "/bin")
                os.symlink(runner.PYTHON, venv + "/bin/python")
                with open(venv + "/pyvenv.cfg", "w") as file:
                    file.write("home = %s\n" % os.path.dirname(os.path.realpath(runner.PYTHON)))
                    file.write("Include-System-Site-Packages = %s\n" % system)
                with open(packages + "/onlyhere.py", "w") as file:
                    file.write("x = 7\n")
                code = (
                    "import onlyhere, sys\n"
                    "print(onlyhere.x, sys.prefix, sys.base_prefix != sys.prefix,"
                    " any('/dist-packages' in p or p.startswith(sys.base_prefix + '/lib') and"
                    " p.endswith('/site-packages') for p in sys.path))"
                )
                self.assertEqual(
                    run_script(code, python=venv + "/bin/python"),
                    (0, "7 %s True %s\n" % (venv, system.title()), ""),
                )

    def test_without_a_pyc_the_source_is_used(self):
        with tempfile.TemporaryDirectory() as home:
            with open(runner.HOME + "run.py") as source, open(home + "/run.py", "w") as copy:
                copy.write(source.read())
            self.assertEqual(run_script("print(1)", home=home + "/"), (0, "1\n", ""))


class Children(unittest.TestCase):
    CODE = (
        "import multiprocessing, builtins, sys\n"
        "def work(x):\n"
        "    return x * 2, hasattr(builtins, 'exit'), sys.path[0]\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:\n"
        "        assert pool.map(work, [1, 2]) == [(x, True, sys.path[0]) for x in (2, 4)]\n"
        "    print('ok')\n"
    )

    def test_multiprocessing(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                self.assertEqual(run_script(self.CODE, method), (0, "ok\n", ""))

    def test_packages(self):
        code = self.CODE.replace("return x * 2", "import numpy; return int(numpy.int64(x) * 2)")
        self.assertEqual(run_script(code, "spawn"), (0, "ok\n", ""))

    def test_an_exit_status_of_a_child(self):
        code = (
            "import multiprocessing\ndef work(): exit(5)\nif __name__ == '__main__':\n"
            "    p = multiprocessing.get_context('spawn').Process(target=work)\n"
            "    p.start(); p.join(); print(p.exitcode)"
        )
        self.assertEqual(run_script(code), (0, "5\n", ""))

    def test_the_hook_leaves_nothing_behind(self):
        code = (
            "import sys\nfirst = len(sys.meta_path)\nimport subprocess\n"
            "print(first - len(sys.meta_path), '-S' in subprocess._args_from_interpreter_flags())\n"
            "print('exec_module' in vars(subprocess.__spec__.loader))\n"
            "import importlib; importlib.reload(subprocess); print(subprocess.__name__)"
        )
        self.assertEqual(run_script(code), (0, "1 False\nFalse\nsubprocess\n", ""))


if __name__ == "__main__":
    unittest.main()
