"""What the tests of the runners share: a build of them, and ways to run code with it."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "src/runner/python")
PYTHON = os.environ.get("HUTCH_TEST_PYTHON", "/usr/bin/python3")
VERSION = tuple(
    int(part)
    for part in subprocess.run(
        [PYTHON, "-ISc", "import sys; print(*sys.version_info[:2])"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.split()
)

sys.dont_write_bytecode = True
sys.path.insert(0, SOURCE)

BUILD = tempfile.mkdtemp(prefix="hutch-runner-")
atexit.register(shutil.rmtree, BUILD)
subprocess.run(
    [ROOT + "/tools/embed", ROOT + "/src/runner", BUILD + "/runner_files.c"], check=True
)
HOME = BUILD + "/runner/python/"


def start(name, home=HOME):
    """The text that python gets with -c, for a runner that is elsewhere than in a box."""
    with open(SOURCE + "/start.py") as file:
        return file.read().replace("/run/hutch/python/", home).replace("@NAME@", name)


def environment(**more):
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    env.update(more)
    return env


class Result:
    """What came back from exec: `text` is all that was written to the result pipe."""

    def __init__(self, text, process):
        self.text = text
        self.returncode = process.returncode
        self.stdout = process.stdout.decode("utf-8", "replace")
        self.stderr = process.stderr.decode("utf-8", "replace")

    @property
    def document(self):
        assert self.text.endswith("\n") and self.text.count("\n") == 1, (self.text, self.stderr)
        return json.loads(self.text)

    @property
    def value(self):
        document = self.document
        assert document["ok"], document
        return document["value"]

    @property
    def raw(self):
        """The value's text."""
        head = '{"ok":true,"value":'
        assert self.text.startswith(head) and self.text.endswith("}\n"), self.text
        return self.text[len(head) : -2]

    @property
    def error(self):
        document = self.document
        assert not document["ok"], document
        return document["kind"], document["error"]


def execute(code, args="{}", allowed=(), check="strict", mode="exec", python=None, home=HOME):
    """Runs one request; `args` is JSON text."""
    request = '{"mode":%s,"check":%s,"allowed_imports":%s,"code":%s,"args":%s}' % (
        json.dumps(mode),
        json.dumps(check),
        json.dumps(list(allowed)),
        json.dumps(code),
        args,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/request.json"
        with open(path, "w") as file:
            file.write(request)
        return _spawn(path, python or PYTHON, home)


def _spawn(path, python, home):
    with tempfile.TemporaryFile() as result:
        fd = str(result.fileno())
        process = subprocess.run(
            [python, "-I", "-S", "-c", start("exec", home), path, fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[result.fileno()],
            env=environment(),
            timeout=60,
        )
        result.seek(0)
        return Result(result.read().decode("ascii"), process)


class Script:
    """A folder with main.py, as /work is."""

    def __init__(self, code):
        self.folder = tempfile.mkdtemp(prefix="hutch-script-")
        self.path = self.folder + "/main.py"
        with open(self.path, "wb") as file:
            file.write(code if isinstance(code, bytes) else code.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def _run(self, argv, env):
        process = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=environment(**env),
            timeout=60,
        )
        return (
            process.returncode,
            process.stdout.decode("utf-8", "replace"),
            process.stderr.decode("utf-8", "replace"),
        )

    def run(self, *args, python=None, home=HOME, **env):
        """Exit status, stdout and stderr below the runner."""
        argv = [python or PYTHON, "-S", "-c", start("run", home), self.path]
        return self._run(argv + list(args), env)

    def native(self, *args, **env):
        """The same when python is given the script."""
        return self._run([PYTHON, self.path] + list(args), env)


def run_script(code, *args, **options):
    with Script(code) as script:
        return script.run(*args, **options)
