"""The exec runner as a box starts it: one request in, one result document out."""

import json
import os
import shutil
import tempfile
import unittest

import runner
from runner import execute


class Values(unittest.TestCase):
    def test_the_body_of_a_function(self):
        result = execute("return args['x'] + 1", '{"x":41}')
        self.assertEqual(result.text, '{"ok":true,"value":42}\n')
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_no_return_is_null(self):
        for code in ("", "pass", "return", "x = 1", "# nothing", "'a docstring'"):
            with self.subTest(code):
                self.assertEqual(execute(code).raw, "null")

    def test_integers_digit_for_digit_both_ways(self):
        big = [2**53 + 1, 2**64, -(2**200)]
        self.assertEqual(execute("return args", '{"n":%s}' % json.dumps(big)).value["n"], big)
        self.assertEqual(execute("return [2**53+1, 2**64, -(2**200)]").raw,
                         "[9007199254740993,18446744073709551616,%d]" % -(2**200))
        digits = "9" * 10000
        self.assertEqual(execute("return args['n']", '{"n":%s}' % digits).raw, digits)

    def test_floats_as_python_writes_them(self):
        self.assertEqual(execute("return [0.1, 1e300, -0.0, 100.0]").raw, "[0.1,1e+300,-0.0,100.0]")

    def test_text_is_ascii_on_the_way(self):
        result = execute("return args['t'] + '\\ud800'", '{"t":"\\u00e9\\ud83d\\ude00\\udfff"}')
        self.assertEqual(result.raw, '"\\u00e9\\ud83d\\ude00\\udfff\\ud800"')

    def test_what_has_no_json_form(self):
        head = "return value is not JSON-serializable: "
        for code, reason in (
            ("return {'a': [1, 2, 3, float('nan')]}",
             "Out of range float values are not JSON compliant: nan at $.a[3]"),
            ("return {1: 2, '1': 3}", 'two keys become "1" at $'),
            ("x = []; x.append(x); return x", "Circular reference detected at $[0]"),
            ("return {1}", "Object of type set is not JSON serializable at $"),
            ("return [object()]", "Object of type object is not JSON serializable at $[0]"),
            ("yield 1", "Object of type generator is not JSON serializable at $"),
        ):
            with self.subTest(code):
                self.assertEqual(execute(code).error, ("value", head + reason))

    def test_a_value_that_is_too_large(self):
        kind, text = execute("return 'a' * (16 << 20)").error
        self.assertEqual(kind, "value")
        self.assertIn("too large", text)
        result = execute("return 'a' * ((16 << 20) - 66)")
        self.assertLessEqual(len(result.text), 16 << 20)
        self.assertEqual(len(result.value), (16 << 20) - 66)

    def test_args_that_no_float_holds(self):
        kind, text = execute("return args", '{"x":1e999}').error
        self.assertEqual((kind, text), ("args", "args: the number 1e999 is out of range"))

    def test_large_code_and_args(self):
        result = execute("#" * 3_000_000 + "\nreturn len(args['a'])",
                         '{"a":"%s"}' % ("x" * 1_000_000))
        self.assertEqual(result.value, 1_000_000)

    def test_the_encoder_has_room_whatever_limit_the_code_set(self):
        code = "sys.setrecursionlimit(60)\nx = []\nfor _ in range(400): x = [x]\nreturn x"
        self.assertEqual(execute(code, allowed=["sys"]).raw, "[" * 401 + "]" * 401)


class Failures(unittest.TestCase):
    def test_exceptions_read_as_in_a_traceback(self):
        for code, text in (
            ("raise ValueError('text')", "ValueError: text"),
            ("raise ValueError", "ValueError"),
            ("return {}['k']", "KeyError: 'k'"),
            ("return 1 / 0", "ZeroDivisionError: division by zero"),
            ("def f(): return f()\nf()", "RecursionError: maximum recursion depth exceeded"),
            ("return bytes(1 << 60)", "MemoryError"),
            ("return OverflowError", "NameError: name 'OverflowError' is not defined"),
            ("raise Exception('\\ud800\\n')", "Exception: \ud800\n"),
        ):
            with self.subTest(code):
                self.assertEqual(execute(code).error, ("exception", text))

    def test_exceptions_that_are_not_errors(self):
        for code, text in (
            ("sys.exit(3)", "SystemExit: 3"),
            ("sys.exit()", "SystemExit"),
            ("sys.exit('bye')", "SystemExit: bye"),
        ):
            with self.subTest(code):
                self.assertEqual(execute(code, allowed=["sys"]).error, ("exception", text))
        for name in ("KeyboardInterrupt", "GeneratorExit", "BaseException"):
            with self.subTest(name):
                self.assertEqual(execute("raise %s('x')" % name, check="none").error,
                                 ("exception", name + ": x"))

    def test_a_long_text_is_cut(self):
        kind, text = execute("raise ValueError('\U0001f600' * 10**6)").error
        self.assertEqual(kind, "exception")
        self.assertTrue(text.endswith("... (cut)"))
        self.assertLess(len(text), 70_000)

    def test_a_text_that_raises(self):
        code = "class E(Exception):\n  def __str__(self): return 1/0\nraise E()"
        self.assertEqual(execute(code, check="none").error[0], "exception")

    def test_lines_are_the_callers(self):
        code = '\n\nx = """\n"""\nraise ValueError(sys._getframe().f_lineno)'
        self.assertEqual(execute(code, allowed=["sys"], check="none").error[1], "ValueError: 5")


class Refusals(unittest.TestCase):
    def assertInvalid(self, code, *findings, **options):
        result = execute(code, **options)
        self.assertEqual(result.document, {
            "ok": False, "kind": "invalid", "error": "; ".join(findings),
            "findings": list(findings),
        })

    def test_all_findings_together(self):
        self.assertInvalid(
            "import os\nreturn eval('1')",
            "line 1: import 'os' not in allowed_imports (empty) (Import)",
            "line 2: call to forbidden name 'eval' (Call)",
        )

    def test_nothing_runs_before_the_check_is_through(self):
        self.assertEqual(execute("print(1)\nreturn eval").stdout, "")

    def test_syntax_errors(self):
        for code, line in (("return (1", 1), ("x = 1\nif x\n", 2), ("break", 1), ("await x", 1),
                           ("\n\nnonlocal x", 3), ("def f(a, a): pass", 1), ("from m import *", 1),
                           ("\tx = 1\n        y = 2", 1), ("return '\ud800'", 1)):
            with self.subTest(code):
                kind, text = execute(code, allowed=["m"]).error
                self.assertEqual(kind, "invalid")
                self.assertTrue(text.startswith("line %d: syntax error: " % line), text)
                self.assertTrue(text.endswith(" (SyntaxError)"), text)

    def test_a_syntax_error_beside_other_findings(self):
        findings = execute("x = eval\nbreak").document["findings"]
        self.assertEqual(len(findings), 2)
        self.assertEqual(findings[0], "line 1: reference to forbidden name 'eval' (Name)")
        self.assertIn("line 2: syntax error: ", findings[1])

    def test_source_that_is_too_deep(self):
        for code in ("x = " + "(" * 5000 + ")" * 5000, "x = 1" + "+1" * 50000,
                     "x = a" + ".b" * 50000, "if x: pass\n" + "elif x: pass\n" * 20000):
            result = execute(code)
            if result.text:  # else the interpreter crashed, which the box reports
                self.assertEqual(result.error[0], "invalid")
            else:
                self.assertLess(result.returncode, 0)

    def test_many_findings_are_bounded(self):
        result = execute("\n".join(["eval(%s)" % ("x" * 50)] * 5000))
        self.assertEqual(len(result.document["findings"]), 200)
        self.assertLess(len(result.text), 1 << 20)

    def test_validate_runs_nothing(self):
        result = execute("print(1)\nreturn 2", mode="validate")
        self.assertEqual((result.raw, result.stdout), ("null", ""))
        self.assertEqual(execute("return eval", mode="validate").error[0], "invalid")
        self.assertEqual(execute("break", mode="validate").error[0], "invalid")


class Surroundings(unittest.TestCase):
    PRESENT = (
        "abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float"
        " format frozenset hash hex id int isinstance issubclass iter len list map max min next"
        " object oct ord pow print range repr reversed round set slice sorted str sum tuple zip"
        " Exception ValueError TypeError KeyError IndexError RuntimeError StopIteration"
        " ArithmeticError AssertionError AttributeError ZeroDivisionError True False None"
    ).split()
    ABSENT = "memoryview bytearray help exit quit OSError property BaseException".split()

    def test_the_curated_builtins(self):
        self.assertEqual(execute("return len([%s])" % ", ".join(self.PRESENT)).value,
                         len(self.PRESENT))
        for name in self.ABSENT:
            with self.subTest(name):
                self.assertEqual(execute("return " + name).error,
                                 ("exception", "NameError: name '%s' is not defined" % name))

    def test_no_check_means_all_builtins_and_imports(self):
        code = "import json, os\nclass A: x = eval('1')\nreturn [A.x, open(os.devnull).read()]"
        self.assertEqual(execute(code, check="none").value, [1, ""])

    def test_no_check_takes_future_imports(self):
        code = "from __future__ import annotations\ndef f(x: nothing): pass\nreturn 1"
        self.assertEqual(execute(code, check="none").value, 1)

    def test_allowed_imports_are_bound_before_the_body(self):
        code = "return [json.loads('1'), os.sep, math.floor(1.5)]"
        self.assertEqual(execute(code, allowed=["json", "os.path", "math"]).value, [1, "/", 1])
        code = "import json as j\nfrom math import floor\nreturn j.loads('1') + floor(1.5)"
        self.assertEqual(execute(code, allowed=["json", "math"]).value, 2)

    def test_an_allowed_import_that_is_not_there(self):
        for name in ("nosuchmodule", "json.nosuchmodule", "", ".", "a b"):
            with self.subTest(name):
                kind, text = execute("return 1", allowed=[name]).error
                self.assertEqual(kind, "import")
                self.assertTrue(text.startswith("allowed import '%s' not available" % name), text)
        self.assertEqual(execute("return 1", allowed=["nosuchmodule"]).error[1],
                         "allowed import 'nosuchmodule' not available")

    def test_other_imports_are_blocked_when_it_runs(self):
        code = "json.codecs.builtins.exec('import os')"  # which the check can't see
        self.assertEqual(execute(code, allowed=["json", "math"]).error, (
            "exception", "ImportError: import of 'os' blocked by sandbox; allowed: json, math"))
        code = code.replace("import os", "from . import x")
        self.assertEqual(execute(code, allowed=["json"]).error, (
            "exception", "ImportError: import of '' blocked by sandbox; allowed: json"))

    def test_imports_by_c_code_on_the_bodys_behalf_work(self):
        code = "return datetime.datetime.strptime('2020-02-03', '%Y-%m-%d').day"
        self.assertEqual(execute(code, allowed=["datetime"]).value, 3)
        self.assertEqual(execute("return time.strptime('2020', '%Y')[0]", allowed=["time"]).value,
                         2020)

    def test_globals_closures_and_recursion(self):
        code = (
            "global count\ncount = 0\ndef fib(n):\n  global count\n  count += 1\n"
            "  return n if n < 2 else fib(n-1) + fib(n-2)\n"
            "return [fib(10), count, [fib(i) for i in range(3)]]"
        )
        self.assertEqual(execute(code).value, [55, 177, [0, 1, 1]])

    def test_main_is_the_modules_name(self):
        self.assertEqual(execute("return __name__").value, "__main__")

    def test_numpy(self):
        code = "a = numpy.arange(6).reshape(2, 3)\nreturn (a @ a.T).tolist()"
        self.assertEqual(execute(code, allowed=["numpy"]).value, [[5, 14], [14, 50]])
        kind, text = execute("return numpy.arange(3)", allowed=["numpy"]).error
        self.assertEqual(kind, "value")
        self.assertIn("ndarray", text)
        self.assertEqual(execute("return numpy.float64(1.5)", allowed=["numpy"]).raw, "1.5")


class Channels(unittest.TestCase):
    """The result is a channel of its own, whatever the code does to its surroundings."""

    def test_stdout_is_only_data(self):
        fake = '{"ok":true,"value":1}\n'
        result = execute("print(%r, end='')\nraise ValueError('x')" % fake)
        self.assertEqual(result.error, ("exception", "ValueError: x"))
        self.assertEqual(result.stdout, fake)

    def test_output_is_written_at_once(self):
        code = "print('a', end='')\nprint('b', file=sys.stderr, end='')\nos.kill(os.getpid(), 9)"
        result = execute(code, allowed=["sys", "os"])
        self.assertEqual((result.text, result.stdout, result.stderr), ("", "a", "b"))
        self.assertEqual(result.returncode, -9)

    def test_an_exit_leaves_no_document(self):
        result = execute("os._exit(0)", allowed=["os"])
        self.assertEqual((result.text, result.returncode), ("", 0))

    def test_input_is_at_its_end(self):
        self.assertEqual(execute("return sys.stdin.read()", allowed=["sys"]).value, "")
        self.assertEqual(execute("input()", check="none").error,
                         ("exception", "EOFError: EOF when reading a line"))

    def test_the_result_pipe_is_not_inherited(self):
        code = (
            "import subprocess\n"
            "p = subprocess.run(['/bin/ls', '/proc/self/fd'], stdout=-1, close_fds=False)\n"
            "return [int(fd) for fd in p.stdout.split()]"
        )
        self.assertEqual(execute(code, check="none").value, [0, 1, 2, 3])  # 3: the folder itself

    def test_a_forked_child_has_no_say(self):
        code = (
            "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
            "return 'parent' if pid else 'child'"
        )
        self.assertEqual(execute(code, check="none").value, "parent")

    def test_threads_are_not_waited_for(self):
        code = (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
            "import atexit\natexit.register(print, 'never')\nreturn 1"
        )
        result = execute(code, check="none")
        self.assertEqual((result.value, result.stdout), (1, ""))

    def test_sabotage(self):
        for code in (
            "import sys\nsys.stdout = sys.stderr = None",
            "import sys\nsys.stdout.close()\nsys.stderr.close()",
            "import sys\nsys.stdout = sys.__stdout__ = 5",
            "import sys\nsys.stdout.detach()",
            "import os, posix\nfor n in ('write', '_exit', 'dup', 'getpid'):\n"
            "  setattr(os, n, None); setattr(posix, n, None)",
            "import builtins\nfor n in list(vars(builtins)):\n"
            "  if n not in ('setattr', 'list', 'vars', 'builtins'): setattr(builtins, n, None)",
            "import sys\nsys.modules.clear()",
            "import sys\nsys.setrecursionlimit(50)",
            "import json, _json\n_json.make_encoder = _json.encode_basestring_ascii = None",
            "import sys\nsys.path[:] = sys.meta_path[:] = []",
            "import gc\nfor o in gc.get_objects():\n"
            "  if type(o) is dict and o.get('__name__') == '__main__' and 'path' in o: o.clear()",
            "import os\nos.close(0); os.close(1); os.close(2)",
        ):
            with self.subTest(code):
                result = execute(code + "\nreturn [1, {'a': 2.5}]", check="none")
                self.assertEqual(result.text, '{"ok":true,"value":[1,{"a":2.5}]}\n', result.stderr)

    def test_a_value_with_hostile_methods(self):
        for body in ("raise SystemExit", "1/0", "return 5", "return [(1, 2, 3)]"):
            code = "class D(dict):\n  def items(self): %s\nreturn [D(a=1)]" % body
            with self.subTest(body):
                kind, text = execute(code, check="none").error
                self.assertEqual(kind, "value")
                self.assertTrue(text.startswith("return value is not JSON-serializable: "))

    def test_frames_in_every_descriptor(self):
        # Whatever it writes is data that is not a document, or one that the host reads as such.
        code = (
            "for fd in range(3, 64):\n  try: os.write(fd, b'{\"ok\":true,\"value\":7}\\n')\n"
            "  except Exception: pass\nos._exit(0)"
        )
        result = execute(code, allowed=["os"])
        self.assertIn(result.text, ("", '{"ok":true,"value":7}\n'))


class Escapes(unittest.TestCase):
    """Known ways round checks of this kind: refused, or harmless by what they reach."""

    def test_refused(self):
        for code in (
            "g = (x for x in [1])\nreturn g.gi_frame.f_back.f_globals",
            "return '{0.__class__}'.format(1)",
            "return \U0001d452val('1')",
            "return ().__cl\uff41ss__",
            "match 1:\n  case int(__class__=c): return c",
            "@eval\ndef f(): pass",
            "def f(x=open): return x",
            "return (e := eval)('1')",
            "try: 1/0\nexcept Exception as e: return e.__traceback__.tb_frame",
            "async def f(): pass\nreturn f().cr_frame",
            "return print.__self__.open",
            "return [].append.__self__",
            "return {}['__class__']",
            "return __builtins__['open']",
            "return f'{().__class__}'",
            "return lambda: ().__class__",
        ):
            with self.subTest(code):
                if "match" in code and runner.VERSION < (3, 10):
                    continue
                self.assertEqual(execute(code).error[0], "invalid")

    def test_harmless(self):
        code = "parts = ['{0.__cl', 'ass__}']\nreturn ''.join(parts).format(1)"
        self.assertEqual(execute(code).value, "<class 'int'>")


class Interpreters(unittest.TestCase):
    def test_without_a_pyc_the_source_is_used(self):
        with tempfile.TemporaryDirectory() as home:
            shutil.copy(runner.HOME + "exec.py", home)
            result = execute("return args['x'] + 1", '{"x":41}', home=home + "/")
            self.assertEqual(result.text, '{"ok":true,"value":42}\n')

    def test_a_virtual_environments_packages(self):
        with tempfile.TemporaryDirectory() as venv:
            packages = "%s/lib/python%d.%d/site-packages" % ((venv,) + runner.VERSION)
            os.makedirs(packages)
            os.mkdir(venv + "/bin")
            os.symlink(runner.PYTHON, venv + "/bin/python")
            with open(venv + "/pyvenv.cfg", "w") as file:
                file.write("home = %s\n" % os.path.dirname(os.path.realpath(runner.PYTHON)))
            with open(packages + "/onlyhere.py", "w") as file:
                file.write("x = 7\n")
            result = execute("return [onlyhere.x, sys.prefix]", allowed=["onlyhere", "sys"],
                             python=venv + "/bin/python")
            self.assertEqual(result.value, [7, venv])
            self.assertEqual(execute("return 1", allowed=["onlyhere"]).error[0], "import")

    def test_no_packages_are_imported_for_a_plain_body(self):
        code = "return [m for m in ('re', 'json', 'os', 'ast', 'unicodedata') if m in sys.modules]"
        self.assertEqual(execute(code, allowed=["sys"]).value, [])


if __name__ == "__main__":
    unittest.main()
