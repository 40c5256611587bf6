"""Runs a script as python itself would have: as the real __main__, with its own tracebacks, exit
status and frames, on an interpreter that was started without `site`."""

import _warnings
import builtins
import sys
from _imp import _fix_co_filename
from _io import FileIO

from paths import add_site_packages


def add_exit():
    """`exit`, `quit` and `help`, as site adds them."""
    from _sitebuiltins import Quitter, _Helper

    builtins.quit = Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.exit = Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.help = _Helper()


def let_children_have_site():
    """multiprocessing starts its children with this interpreter's own flags, which it asks
    subprocess for; without -S they find packages, `exit` and `quit` in python's own way."""

    def find_spec(name, path=None, target=None):
        if name != "subprocess":
            return None
        sys.meta_path.remove(finder)
        spec = sys.modules["_frozen_importlib"]._find_spec(name, path)
        run_module = spec.loader.exec_module

        def exec_module(module):
            del spec.loader.exec_module
            run_module(module)
            flags = module._args_from_interpreter_flags
            module._args_from_interpreter_flags = lambda: [one for one in flags() if one != "-S"]

        spec.loader.exec_module = exec_module
        return spec

    finder = type(sys.implementation)(find_spec=find_spec)
    sys.meta_path.insert(0, finder)


def hide_runner():
    """Called when the script has failed: the traceback then starts at the script."""
    hook, start = sys.excepthook, sys._getframe(2)
    own = (main.__code__, execute.__code__, start.f_code)

    def excepthook(kind, error, trace):
        while trace is not None and trace.tb_frame.f_code in own:
            trace = trace.tb_next
        error.__traceback__ = sys.last_traceback = trace
        return hook(kind, error, trace)

    sys.excepthook = excepthook


def become(path, names):
    """Makes __main__ what it is for a script: nothing of the runner is left in it."""
    builtin, loader = names["__builtins__"], sys.modules["_frozen_importlib_external"]
    names.clear()
    names.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=loader.SourceFileLoader("__main__", path),
        __spec__=None,
        __builtins__=builtin,
        __file__=path,
        __cached__=None,
    )
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    if "linecache" in sys.modules:  # Python 3.13 puts the text of -c there
        sys.modules["linecache"].cache.pop("<string>", None)


def filters_changed():
    if hasattr(_warnings, "_filters_mutated"):
        _warnings._filters_mutated()
        return
    _warnings._acquire_lock()  # Python 3.14
    _warnings._filters_mutated_lock_held()
    _warnings._release_lock()


def execute(source, path, names):
    """exec(compile(source, path, "exec"), names) without compile(), whose first call sets up every
    type of the syntax tree (0.75 ms, a tenth of python's start). exec() of source text doesn't,
    but calls the file "<string>": the trace function corrects that as the first frame starts.
    What the compiler has to say must name the file, so then compile() is used after all."""
    started = False
    strict = ("error", None, SyntaxWarning, None, 0)

    def restore():
        sys.settrace(None)
        _warnings.filters.remove(strict)
        filters_changed()

    def trace(frame, event, argument):
        nonlocal started
        if frame.f_globals is names:  # else a codec that the source names is being imported
            started = True
            restore()
            _fix_co_filename(frame.f_code, path)

    _warnings.filters.insert(0, strict)
    filters_changed()
    sys.settrace(trace)
    try:
        exec(source, names)
        return
    except Exception:
        if started:
            raise
        restore()
    exec(compile(source, path, "exec", 0, True), names)


def main(names):
    """`names` is __main__'s namespace."""
    del sys.argv[0]
    path = sys.argv[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = path.rpartition("/")[0] or "/"
    add_site_packages()
    add_exit()
    let_children_have_site()
    become(path, names)
    try:
        with FileIO(path) as file:
            source = file.readall()
        execute(source, path, names)
    except BaseException:
        hide_runner()
        raise


if __name__ == "__main__":
    main(globals())
