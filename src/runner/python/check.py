"""The static check of a tool's body: what it may not import, mention or reach for.

It is the first fence, not the wall: the wall is the box that it runs in. It works on the syntax
tree, without recursion, and reports everything that it finds. Names in the tree are in NFKC form
already (the parser does that); strings are not, so they are normalised here."""

from _ast import AST

ONLY_AST = 0x400  # compile()'s flag for: no code, the tree

REFUSED_CALLS = frozenset(
    "eval exec compile __import__ open globals locals vars input breakpoint getattr setattr"
    " delattr hasattr type dir super __build_class__".split()
)

REFUSED_ATTRIBUTES = frozenset(
    "__class__ __bases__ __subclasses__ __mro__ __globals__ __builtins__ __import__ __loader__"
    " __spec__ __code__ __closure__ __getattribute__ __reduce__ __reduce_ex__ __dict__"
    " __init_subclass__ __init__ __new__"
    # Other ways to the same places: through frames and code objects, through an exception, from
    # a method to its object, and the special methods behind refused functions.
    " gi_frame cr_frame ag_frame gi_code cr_code ag_code f_back f_globals f_locals f_builtins"
    " f_code f_trace tb_frame co_code co_consts __traceback__ __self__ __func__ __wrapped__"
    " __base__ __objclass__ __getattr__ __setattr__ __delattr__ __dir__ __build_class__".split()
)

# A plain name can't be one of the special attributes either: __builtins__ is one.
REFUSED_NAMES = REFUSED_CALLS | frozenset(
    name for name in REFUSED_ATTRIBUTES if name.startswith("__")
)

# Fields that hold a variable's name, or names, as text.
NAME_FIELDS = {
    "FunctionDef": "name",
    "AsyncFunctionDef": "name",
    "ClassDef": "name",
    "arg": "arg",
    "ExceptHandler": "name",
    "Global": "names",
    "Nonlocal": "names",
    "MatchAs": "name",
    "MatchStar": "name",
    "MatchMapping": "rest",
    "TypeVar": "name",
    "ParamSpec": "name",
    "TypeVarTuple": "name",
}

# The same for attributes' names.
ATTRIBUTE_FIELDS = {"Attribute": "attr", "keyword": "arg", "MatchClass": "kwd_attrs"}

# Fields without anything below them to look at.
LEAF_FIELDS = frozenset("ctx op ops id attr names kwd_attrs conversion level kind".split())


def _texts(value):
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _field_reader(field, see):
    def read(node):
        for text in _texts(getattr(node, field)):
            see(node, text)

    return read


def _normal(text):
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFKC", text)


def _constant_text(node, depth=32):
    """The text of an expression that is a string in the source, if only put together; or None."""
    kind = type(node).__name__
    if kind == "Constant":
        return node.value if isinstance(node.value, str) else None
    if not depth:
        return None
    if kind == "NamedExpr":
        return _constant_text(node.value, depth - 1)
    if kind == "BinOp" and type(node.op).__name__ == "Add":
        parts = [_constant_text(part, depth - 1) for part in (node.left, node.right)]
    elif kind == "JoinedStr":
        parts = [_constant_text(part, depth - 1) for part in node.values]
    else:
        return None
    return None if None in parts else "".join(parts)


def _format_names(text):
    """The attributes and keys that text would look up if it were used as a format string."""
    from _string import formatter_field_name_split, formatter_parser

    waiting = [text]
    while waiting:
        try:
            for _, field, spec, _ in formatter_parser(waiting.pop()):
                if field:
                    for _, name in formatter_field_name_split(field)[1]:
                        if isinstance(name, str):
                            yield _normal(name)
                if spec and "{" in spec:
                    waiting.append(spec)
        except ValueError:
            pass  # not a format string from here on: str.format would stop here as well


def _is_special(name):
    return name in REFUSED_ATTRIBUTES or (name.startswith("__") and name.endswith("__"))


def may_import(name, allowed):
    """True if the allowlist has the module, its top-level package, or a package it is below."""
    if name.partition(".")[0] in allowed or name in allowed:
        return True
    return any("." in one and name.startswith(one + ".") for one in allowed)


class Checker:
    def __init__(self, allowed_imports):
        self.allowed = frozenset(allowed_imports)
        self.issues = []
        self.called = set()  # names that their call has reported already

    def add(self, node, reason, kind=None):
        column = getattr(node, "col_offset", 0)
        self.issues.append((node.lineno, column, kind or type(node).__name__, reason))

    def refuse_import(self, node, text):
        allowed = ", ".join(sorted(self.allowed)) or "empty"
        self.add(node, "%s not in allowed_imports (%s)" % (text, allowed))

    def name(self, node, name):
        if name in REFUSED_NAMES:
            self.add(node, "reference to forbidden name '%s'" % name)

    def attribute(self, node, name):
        if name in REFUSED_ATTRIBUTES:
            self.add(node, "access to forbidden attribute '%s'" % name)

    def subscript(self, node, key):
        text = _constant_text(key)
        if text is not None and _normal(text) in REFUSED_ATTRIBUTES:
            self.add(node, "subscript access to forbidden attribute '%s'" % _normal(text))

    # One method a node kind that needs more than its fields looked up.

    def see_Import(self, node):
        for alias in node.names:
            if not may_import(alias.name, self.allowed):
                self.refuse_import(node, "import '%s'" % alias.name)
        self.see_aliases(node)

    def see_ImportFrom(self, node):
        module = "." * (node.level or 0) + (node.module or "")
        if node.level or not may_import(module, self.allowed):
            self.refuse_import(node, "from '%s' import ..." % module)
        for part in module.split("."):
            self.attribute(node, part)
        self.see_aliases(node)

    def see_aliases(self, node):
        for alias in node.names:
            for part in alias.name.split("."):
                self.attribute(node, part)
            self.name(node, alias.asname)

    def see_Name(self, node):
        if node.id in REFUSED_NAMES and id(node) not in self.called:
            self.name(node, node.id)

    def see_Call(self, node):
        function = node.func
        if type(function).__name__ == "Name" and function.id in REFUSED_NAMES:
            self.called.add(id(function))
            self.add(node, "call to forbidden name '%s'" % function.id)

    def see_Subscript(self, node):
        self.subscript(node, node.slice)

    def see_MatchMapping(self, node):
        for key in node.keys:
            self.subscript(node, key)

    def see_ClassDef(self, node):
        self.add(node, "class statement is not allowed")

    def see_Constant(self, node):
        text = node.value
        if isinstance(text, str) and "{" in text and ("." in text or "[" in text):
            for name in _format_names(text):
                if _is_special(name):
                    self.add(node, "access to forbidden attribute '%s'" % name)

    def rule(self, kind):
        """What is done with nodes of one kind: functions to call, and fields to go down."""
        name = kind.__name__
        steps = []
        if hasattr(self, "see_" + name):
            steps.append(getattr(self, "see_" + name))
        for table, see in ((NAME_FIELDS, self.name), (ATTRIBUTE_FIELDS, self.attribute)):
            if name in table:
                steps.append(_field_reader(table[name], see))
        fields = getattr(kind, "_fields", ())  # lists of nodes may hold None
        return steps, [field for field in fields if field not in LEAF_FIELDS]

    def walk(self, tree):
        waiting, rules = [tree], {}
        while waiting:
            node = waiting.pop()
            kind = type(node)
            rule = rules.get(kind)
            if rule is None:
                rule = rules[kind] = self.rule(kind)
            steps, fields = rule
            for see in steps:
                see(node)
            for field in fields:
                value = getattr(node, field, None)
                if isinstance(value, list):
                    waiting.extend(value)
                elif isinstance(value, AST):
                    waiting.append(value)


def syntax_issue(error):
    """What a failed compile() says, as an issue. Source can also be too big or too deep."""
    line = getattr(error, "lineno", None) or 1
    reason = getattr(error, "msg", None) or str(error)
    if isinstance(error, (MemoryError, RecursionError)):
        reason = "source is nested too deeply, or too big"
    return (line, 0, "SyntaxError", "syntax error: %s" % reason)


def find_issues(tree, allowed_imports):
    """What is refused in a parsed body: a list of (line, column, node kind, reason)."""
    checker = Checker(allowed_imports)
    checker.walk(tree)
    return checker.issues


def issue_texts(issues):
    """The issues as one text each, by line."""
    return ["line %d: %s (%s)" % (line, reason, kind) for line, _, kind, reason in sorted(issues)]
