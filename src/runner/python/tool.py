"""Runs the body of a tool: reads the request, checks the code, calls it with the args, and writes
one result document (docs/protocol.md).

What is needed after the code has run is bound before it runs, so that code which replaces
sys.stdout, os or builtins still gets its result out. Nothing of the code is waited for."""

import builtins
import gc
import posix
import sys
from _io import FileIO, TextIOWrapper

from check import ONLY_AST, find_issues, issue_texts, may_import, syntax_issue
from paths import add_site_packages
from values import ValueRefused, decode, encode, quote

MAX_VALUE = (16 << 20) - 64  # the document is at most 16 MiB
MAX_ERROR = 64 << 10  # characters; the document of a failure is at most 2 MiB
MAX_FINDING, MAX_FINDINGS = 256, 200
RECURSION = 2000  # the encoder's depth and ours, whatever limit the code has set

CURATED = (
    "abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float"
    " format frozenset hash hex id int isinstance issubclass iter len list map max min next object"
    " oct ord pow print range repr reversed round set slice sorted str sum tuple zip Exception"
    " ValueError TypeError KeyError IndexError RuntimeError StopIteration ArithmeticError"
    " AssertionError AttributeError ZeroDivisionError True False None"
).split()


class Failed(Exception):
    """Ends the run with a result document of this kind."""

    def __init__(self, kind, text, findings=()):
        self.kind, self.text, self.findings = kind, text, findings


def describe(error):
    """An exception as the last line of a traceback has it. Its methods may be hostile."""
    try:
        name = type(error).__name__
        text = str(error)
        return "%s: %s" % (name, text) if text else str(name)
    except BaseException:
        return "exception whose text can't be had"


def read_request(path):
    with FileIO(path) as file:
        text = file.readall().decode("utf-8")
    try:
        return decode(text)
    except ValueRefused as error:
        raise Failed("args", "args: %s" % error) from None


def unbuffer(name, descriptor):
    """Makes a standard stream write at once: what was printed before a kill is not lost."""
    stream = getattr(sys, name)
    if stream is None or isinstance(stream.buffer, FileIO):
        return
    raw = FileIO(descriptor, "w", closefd=False)
    raw.name = stream.name
    stream = TextIOWrapper(raw, stream.encoding, stream.errors, "\n", write_through=True)
    stream.mode = "w"
    setattr(sys, name, stream)
    setattr(sys, "__%s__" % name, stream)


def wrap(tree):
    """The tree of a module that defines the body as the function `main`. The body keeps its line
    numbers, which it would not if it were put into a function as text."""
    module = compile("def main(args): pass", "<tool>", "exec", ONLY_AST, True)
    body = tree.body
    while body and getattr(body[0], "module", None) == "__future__":
        module.body.insert(-1, body.pop(0))  # it may only stand before everything else
    if body:
        module.body[-1].body = body
    return module


def compile_body(code, strict, allowed):
    """The code of the module that defines the body as `main`; Failed with all that is wrong."""
    issues, program = [], None
    gc.disable()  # a big tree is nothing but live objects: collecting takes most of the time
    try:
        code = code[1:] if code.startswith("\ufeff") else code
        tree = compile(code, "<tool>", "exec", ONLY_AST, True)
        if strict:
            issues = find_issues(tree, allowed)
        program = compile(wrap(tree), "<tool>", "exec", 0, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        issues.append(syntax_issue(error))
    gc.enable()
    if issues:
        findings = issue_texts(issues)
        raise Failed("invalid", "; ".join(findings), findings)
    return program


def guarded_import(allowed):
    """An __import__ that honours the allowlist. C code that imports on the caller's behalf
    (datetime's strptime, say) passes a list where the import statement passes a tuple or None;
    the check leaves the code itself no way to call this function."""
    real = builtins.__import__
    listing = ", ".join(sorted(allowed)) or "none"

    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        if type(fromlist) is not list and (level or not may_import(name, allowed)):
            text = "import of '%s' blocked by sandbox; allowed: %s" % (name, listing)
            raise ImportError(text, name=name)
        return real(name, globals, locals, fromlist, level)

    return __import__


def bind_imports(names, allowed):
    for module in allowed:
        top = module.partition(".")[0]
        try:
            names[top] = __import__(module)
        except ModuleNotFoundError as error:
            missing = error.name in (module, top)
            reason = "" if missing else ": " + describe(error)
            raise Failed("import", "allowed import '%s' not available%s" % (module, reason))
        except BaseException as error:
            reason = describe(error)
            raise Failed("import", "allowed import '%s' not available: %s" % (module, reason))


def namespace(strict, allowed):
    """What the body finds as its globals."""
    names = {"__name__": "__main__", "__builtins__": builtins}
    if strict:
        names["__builtins__"] = curated = {name: getattr(builtins, name) for name in CURATED}
        curated["__import__"] = guarded_import(frozenset(allowed))
    return names


def run(request):
    """The value that the body returns."""
    strict = request["check"] != "none"
    allowed = request["allowed_imports"]
    program = compile_body(request["code"], strict, allowed)
    if request["mode"] == "validate":
        return None
    if allowed or not strict:
        add_site_packages()
    names = namespace(strict, allowed)
    exec(program, names)
    function = names.pop("main")
    bind_imports(names, allowed)
    try:
        return function(request["args"])
    except BaseException as error:
        raise Failed("exception", describe(error)) from None


def document(path):
    """The result as text."""
    limit = sys.setrecursionlimit
    try:
        value = run(read_request(path))
    except Failed as failed:
        return failure(failed.kind, failed.text, failed.findings)
    try:
        limit(RECURSION)
        text = encode(value)
    except ValueRefused as reason:
        return failure("value", "return value is not JSON-serializable: %s" % reason)
    except BaseException as reason:  # from hostile methods of the value
        return failure("value", "return value is not JSON-serializable: " + describe(reason))
    if len(text) > MAX_VALUE:
        reason = "return value is too large: %d bytes of JSON, at most %d" % (len(text), MAX_VALUE)
        return failure("value", reason)
    return '{"ok":true,"value":%s}\n' % text


def failure(kind, error, findings=()):
    if len(error) > MAX_ERROR:
        error = error[:MAX_ERROR] + "... (cut)"
    text = '{"ok":false,"kind":"%s","error":%s' % (kind, quote(error))
    if findings:
        texts = [quote(one[:MAX_FINDING]) for one in findings[:MAX_FINDINGS]]
        text += ',"findings":[%s]' % ",".join(texts)
    return text + "}\n"


def main(_, path="/run/hutch/request.json", descriptor="3"):
    # Bound now: the code may replace any of these where they are found.
    write, leave, getpid, flush = posix.write, posix._exit, posix.getpid, TextIOWrapper.flush
    path, descriptor = (sys.argv[1:] or [path, descriptor])[:2]
    result, own = posix.dup(int(descriptor)), getpid()
    posix.close(int(descriptor))
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    unbuffer("stdout", 1)
    unbuffer("stderr", 2)
    streams = [sys.stdout, sys.stderr]
    sys.argv[:] = [""]

    text = document(path)
    for stream in streams + [sys.stdout, sys.stderr]:
        try:
            flush(stream)
        except BaseException:
            pass  # closed, detached or replaced by the code
    data = memoryview(text.encode("ascii"))
    while data and getpid() == own:  # a forked child that comes back here has no say
        data = data[write(result, data) :]
    leave(0)


if __name__ == "__main__":
    main(globals())
