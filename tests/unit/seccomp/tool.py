"""Run under the tool profile: what exec's code may lean on, and that nothing else starts."""
import sys

sys.path.append("/usr/lib/python3/dist-packages")
import concurrent.futures
import datetime
import decimal
import hashlib
import json
import os
import random
import re
import secrets
import sqlite3
import ssl
import subprocess
import time
import uuid
import zoneinfo

import numpy


def refused(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return None


numpy.linalg.svd(numpy.random.rand(60, 60))
assert numpy.dot(numpy.ones((500, 500)), numpy.ones((500, 500))).sum() == 500**3
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(lambda x: x * x, range(5))) == [0, 1, 4, 9, 16]
time.sleep(0.01)
assert zoneinfo.ZoneInfo("Europe/Berlin").utcoffset(datetime.datetime(2020, 7, 1)).seconds == 7200
assert sqlite3.connect(":memory:").execute("select 6 * 7").fetchone() == (42,)
assert len(secrets.token_bytes(8)) == 8 and uuid.uuid4().version == 4
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
ssl.create_default_context()
json.loads(json.dumps({"a": [1, 2.5, None]}))
assert re.match("a+", "aaa") and decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
random.random()
assert os.listdir("/usr") and os.cpu_count() > 0 and len(os.sched_getaffinity(0)) > 0
with open("/etc/passwd", encoding="utf-8") as file:
    assert file.read()

assert refused(lambda: subprocess.run(["/bin/true"])) is not None
assert refused(os.fork) == 1
assert refused(lambda: os.execv("/bin/true", ["true"])) == 1
import socket

assert refused(socket.socket) == 1
assert refused(lambda: socket.socketpair()) == 1
print("all ok")
