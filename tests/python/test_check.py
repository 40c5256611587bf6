"""The static check: what is refused, with which words; and what stays allowed."""

import unittest

import runner
from check import ONLY_AST, find_issues, issue_texts, may_import

NAMES = (
    "eval exec compile __import__ open globals locals vars input breakpoint getattr setattr"
    " delattr hasattr type dir super __build_class__"
).split()

ATTRIBUTES = (
    "__class__ __bases__ __subclasses__ __mro__ __globals__ __builtins__ __import__ __loader__"
    " __spec__ __code__ __closure__ __getattribute__ __reduce__ __reduce_ex__ __dict__"
    " __init_subclass__ __init__ __new__"
).split()

WALKS = (
    "gi_frame cr_frame ag_frame f_back f_globals f_locals f_builtins tb_frame gi_code cr_code"
    " co_code __traceback__ __self__ __func__ __wrapped__"
).split()


def check(code, *allowed):
    return issue_texts(find_issues(compile(code, "<tool>", "exec", ONLY_AST, True), allowed))


class Reasons(unittest.TestCase):
    """The exact texts that callers see."""

    def assertFinds(self, code, *texts, allowed=()):
        self.assertEqual(check(code, *allowed), list(texts), code)

    def test_imports_with_an_empty_allowlist(self):
        self.assertFinds(
            "import os", "line 1: import 'os' not in allowed_imports (empty) (Import)"
        )
        self.assertFinds(
            "from os import path",
            "line 1: from 'os' import ... not in allowed_imports (empty) (ImportFrom)",
        )

    def test_imports_name_the_sorted_allowlist(self):
        self.assertFinds(
            "import os",
            "line 1: import 'os' not in allowed_imports (json, math) (Import)",
            allowed=("math", "json"),
        )
        self.assertFinds(
            "from os.path import join",
            "line 1: from 'os.path' import ... not in allowed_imports (json, math) (ImportFrom)",
            allowed=("math", "json"),
        )

    def test_each_import_of_a_statement(self):
        self.assertFinds(
            "import json, os, sys.x",
            "line 1: import 'os' not in allowed_imports (json) (Import)",
            "line 1: import 'sys.x' not in allowed_imports (json) (Import)",
            allowed=("json",),
        )

    def test_relative_imports(self):
        self.assertFinds(
            "from . import x",
            "line 1: from '.' import ... not in allowed_imports (x) (ImportFrom)",
            allowed=("x",),
        )

    def test_every_name_called_and_mentioned(self):
        for name in NAMES:
            with self.subTest(name):
                self.assertFinds(
                    "%s(1)" % name, "line 1: call to forbidden name '%s' (Call)" % name
                )
                self.assertFinds(
                    "f = %s" % name, "line 1: reference to forbidden name '%s' (Name)" % name
                )

    def test_every_attribute_and_subscript(self):
        for name in ATTRIBUTES + WALKS:
            with self.subTest(name):
                self.assertFinds(
                    "x.%s" % name,
                    "line 1: access to forbidden attribute '%s' (Attribute)" % name,
                )
                self.assertFinds(
                    "x['%s']" % name,
                    "line 1: subscript access to forbidden attribute '%s' (Subscript)" % name,
                )

    def test_everything_at_once_in_the_order_of_lines(self):
        self.assertFinds(
            "a = eval\nwhile x.__class__:\n    import os\n    open('f')\nb = d['__dict__']",
            "line 1: reference to forbidden name 'eval' (Name)",
            "line 2: access to forbidden attribute '__class__' (Attribute)",
            "line 3: import 'os' not in allowed_imports (empty) (Import)",
            "line 4: call to forbidden name 'open' (Call)",
            "line 5: subscript access to forbidden attribute '__dict__' (Subscript)",
        )

    def test_class_statements(self):
        self.assertFinds(
            "class A(eval): pass",
            "line 1: class statement is not allowed (ClassDef)",
            "line 1: reference to forbidden name 'eval' (Name)",
        )


class Refused(unittest.TestCase):
    """The same things by other ways."""

    def assertRefused(self, code, name, *allowed):
        found = check(code, *allowed)
        self.assertEqual(len(found), 1, (code, found))
        self.assertIn("'%s'" % name, found[0])

    def test_names_wherever_they_name_a_variable(self):
        for code in (
            "import json as open",
            "from json import x as open",
            "def open(): pass",
            "async def open(): pass",
            "def f(open): pass",
            "def f(*, open=1): pass",
            "def f(*open): pass",
            "def f(**open): pass",
            "lambda open: 1",
            "def f():\n  global open",
            "def f():\n  nonlocal open",
            "try: pass\nexcept E as open: pass",
            "for open in x: pass",
            "with x as open: pass",
            "(open := 1)",
            "del open",
            "[1 for open in x]",
            "open = 1",
            "open += 1",
            "open: int = 1",
        ):
            with self.subTest(code):
                self.assertRefused(code, "open", "json")

    def test_names_in_every_place_of_an_expression(self):
        for code in (
            "@eval\ndef f(): pass",
            "def f(x=eval): pass",
            "def f(*, x=eval): pass",
            "def f(x: eval): pass",
            "def f() -> eval: pass",
            "lambda x=eval: x",
            "f'{eval}'",
            "f'{1:{eval}}'",
            "[*eval]",
            "{**eval}",
            "{eval: 1}",
            "x[eval]",
            "x[1:eval]",
            "return eval",
            "yield eval",
            "await eval",
            "assert x, eval",
            "raise eval",
            "x if eval else y",
            "f(x=eval)",
            "f(*eval)",
            "eval.x",
            "map(eval, x)",
            "async def f():\n  async for x in eval: pass",
        ):
            with self.subTest(code):
                self.assertRefused(code, "eval")

    @unittest.skipIf(runner.sys.version_info < (3, 10), "match statements came with Python 3.10")
    def test_match_patterns(self):
        for pattern, name in (
            ("open", "open"),
            ("[open]", "open"),
            ("[*open]", "open"),
            ("{**open}", "open"),
            ("{'a': open}", "open"),
            ("str() as open", "open"),
            ("str() | open", "open"),
            ("list(__class__=c)", "__class__"),
            ("list(a=1, __class__=c)", "__class__"),
            ("{'__class__': c}", "__class__"),
            ("a.__class__", "__class__"),
            ("type()", "type"),
        ):
            with self.subTest(pattern):
                self.assertRefused("match x:\n  case %s: pass" % pattern, name)

    def test_attributes_by_other_ways(self):
        for code in (
            "f(__class__=1)",
            "from m import __class__",
            "from m import __class__ as c",
            "import m.__class__",
            "x.__class__ = 1",
            "del x.__class__",
            "x['__class__'] = 1",
            "x[f'__class__']",
            "x['__cla' 'ss__']",
            "x['__cla' + 'ss__']",
            "x[(y := '__class__')]",
            "x.y.z.__class__.a",
            "x.__class__()",
        ):
            with self.subTest(code):
                self.assertRefused(code, "__class__", "m")

    def test_special_names_as_variables(self):
        self.assertRefused("__builtins__", "__builtins__")
        self.assertRefused("__loader__.x", "__loader__")

    def test_format_fields_of_constants(self):
        for text in (
            "{0.__class__}",
            "{x.y.__class__}",
            "{.__class__}",
            "{0[__class__]}",
            "{0!r:{1.__class__}}",
            "a{{b}}{0.__class__:>10}",
            "{0.__class__} {",
        ):
            with self.subTest(text):
                self.assertRefused("x = %r" % text, "__class__")
                self.assertRefused("%r.format(x)" % text, "__class__")
        self.assertRefused("f'{{0.__class__}}'.format(x)", "__class__")
        self.assertRefused("'{0.__anything__}'", "__anything__")
        self.assertRefused("'{0.gi_frame}'", "gi_frame")

    def test_look_alike_identifiers(self):
        self.assertRefused("\U0001d452val", "eval")  # mathematical italic e
        self.assertRefused("x.__\uff43lass__", "__class__")  # fullwidth c
        self.assertRefused("x['__\uff43lass__']", "__class__")
        self.assertRefused("'{0.__\uff43lass__}'", "__class__")
        self.assertRefused("def f(\uff4fpen): pass", "open")
        self.assertRefused("import \uff4fs", "os")


class Allowed(unittest.TestCase):
    def test_what_only_looks_like_it(self):
        for code in (
            "re.compile('x')",
            "x.open()",
            "x.type",
            "f(type=1)",
            "d['type']",
            "d['eval']",
            "d = {'__class__': 1}",
            "x = '__class__'",
            "x = 'eval(1)'",
            "# eval",
            "__name__",
            "x.__doc__",
            "x.__len__()",
            "d['a.__class__']",
            "'{0.real}'.format(1)",
            "'{}'.format(x)",
            "'{0[a]}'.format(x)",
            "'{{0.__class__}}'",
            "x = '{ not a format . __class__'",
            "evaluate(1)",
            "def f(a, *b, c=1, **d): return a",
            "return [x async for x in y]",
            "@cache\ndef f(): pass",
            "global x",
        ):
            with self.subTest(code):
                self.assertEqual(check(code), [])

    def test_allowed_imports(self):
        for code in (
            "import json",
            "import json as j",
            "import json.decoder",
            "from json import loads as l",
            "from json.decoder import JSONDecoder",
            "import xml.etree.ElementTree as ET",
            "from xml.etree.ElementTree import parse",
            "from xml.etree import ElementTree",
        ):
            with self.subTest(code):
                self.assertEqual(check(code, "json", "xml.etree"), [])
        self.assertEqual(len(check("import xml", "xml.etree")), 1)
        self.assertEqual(len(check("import xml.etrees", "xml.etree")), 1)
        self.assertEqual(len(check("import jsonx", "json")), 1)

    def test_allowlists_are_of_modules(self):
        self.assertTrue(may_import("a.b.c", {"a"}))
        self.assertTrue(may_import("a.b.c", {"a.b"}))
        self.assertFalse(may_import("a", {"a.b"}))
        self.assertFalse(may_import("ab", {"a"}))
        self.assertFalse(may_import("", set()))


class Walk(unittest.TestCase):
    def test_does_not_recurse(self):
        # Deeper than Python's own recursion limit: a chain is one node below the other.
        code = "x = a" + ".b" * 900 + ".__class__" + ".c" * 900
        limit = runner.sys.getrecursionlimit()
        runner.sys.setrecursionlimit(20000)
        try:
            tree = compile(code, "<tool>", "exec", ONLY_AST, True)
        finally:
            runner.sys.setrecursionlimit(limit)
        self.assertEqual(len(find_issues(tree, ())), 1)


if __name__ == "__main__":
    unittest.main()
