import sys, marshal, _io
path = "/run/hutch/python/@NAME@."
try:
    code = _io.FileIO(path + sys.implementation.cache_tag + ".pyc").readall()
    code = marshal.loads(memoryview(code)[16:])
except OSError:
    code = compile(_io.FileIO(path + "py").readall(), path + "py", "exec")
names = {"__name__": "hutch", "__builtins__": __builtins__.__dict__.copy()}
exec(code, names)
names["main"](globals())
