"""Where installed packages are. Python runs without `site`, which takes a third of its start, so
the runner adds these directories itself. Files named *.pth are not read."""

import sys
from _io import FileIO
from posix import stat


def _venv():
    """The virtual environment's directory and its pyvenv.cfg in lower case, or two Nones."""
    folder = (sys.executable or "").rpartition("/")[0]
    for home in (folder, folder.rpartition("/")[0]):
        try:
            with FileIO(home + "/pyvenv.cfg") as file:
                return home, file.readall().decode("utf-8", "replace").lower()
        except OSError:
            pass
    return None, None


def _wants_system(config):
    for line in config.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "include-system-site-packages":
            return value.strip() == "true"
    return False


def _candidates():
    version = "python%d.%d" % sys.version_info[:2]
    venv, config = _venv()
    if venv is not None:
        yield "%s/lib/%s/site-packages" % (venv, version)
        sys.prefix = sys.exec_prefix = venv
        if not _wants_system(config):
            return
    base = sys.base_prefix
    if base == "/usr":  # Debian's two, in the order of its site module
        yield "/usr/local/lib/%s/dist-packages" % version
        yield "/usr/lib/python3/dist-packages"
    for lib in ("lib", "lib64"):
        yield "%s/%s/%s/site-packages" % (base, lib, version)


def add_site_packages():
    """Appends the directories that exist to sys.path, as `site` would."""
    for path in _candidates():
        try:
            stat(path)
        except OSError:
            continue
        if path not in sys.path:
            sys.path.append(path)
