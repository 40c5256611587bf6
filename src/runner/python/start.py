import sys, marshal, _io
path = "/run/hutch/python/@NAME@."
try:
    with _io.FileIO(path + sys.implementation.cache_tag + ".pyc") as file:
        code = marshal.loads(memoryview(file.readall())[16:])
except OSError:
    with _io.FileIO(path + "py") as file:
        code = compile(file.readall(), file.name, "exec")
names = {"__name__": "hutch", "__builtins__": __builtins__.__dict__.copy()}
exec(code, names)
names["main"](globals())
