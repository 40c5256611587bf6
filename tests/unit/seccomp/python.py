"""Run under the python profile, in an empty directory."""
import asyncio
import concurrent.futures
import ctypes
import fcntl
import glob
import mmap
import multiprocessing
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import uuid
import zipfile
import zoneinfo
from multiprocessing import shared_memory

if __name__ == "__main__":
    sys.path.append("/usr/lib/python3/dist-packages")
    import numpy


def square(x):
    return x * x


def put_answer(queue):
    queue.put(42)


def put_numbers(value, array):
    with value.get_lock():
        value.value += 1
    array[1] = 2.5


def refused(call):
    try:
        call()
    except OSError as error:
        return error.errno == 1
    return False


def processes():
    ran = subprocess.run(["sh", "-c", "echo a; ls -l / | cat; exit 3"], capture_output=True)
    assert ran.returncode == 3 and ran.stdout.startswith(b"a\n")
    cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert cat.communicate(b"x" * 200000)[0] == b"x" * 200000
    sleeper = subprocess.Popen(["sleep", "100"], start_new_session=True)
    os.killpg(os.getpgid(sleeper.pid), signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0
    assert ctypes.CDLL(None).system(b"exit 5") == 5 << 8
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def multiprocesses():
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=put_answer, args=(queue,))
        process.start()
        assert queue.get(timeout=60) == 42
        process.join()
        with context.Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, range(4))) == [0, 1, 4, 9]
    memory = shared_memory.SharedMemory(create=True, size=100)
    memory.buf[0] = 1
    memory.close()
    memory.unlink()
    value, array = multiprocessing.Value("i", 1), multiprocessing.Array("d", 3)
    child = multiprocessing.Process(target=put_numbers, args=(value, array))
    child.start()
    child.join()
    assert value.value == 2 and array[:] == [0.0, 2.5, 0.0]
    with multiprocessing.Manager() as manager:
        manager.dict()[1] = 2


async def asyncs():
    def answer(_, writer):
        writer.write(b"x")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"x"
    writer.close()
    await asyncio.start_unix_server(answer, "./socket")
    reader, writer = await asyncio.open_unix_connection("./socket")
    assert await reader.read() == b"x"
    writer.close()
    child = await asyncio.create_subprocess_exec("echo", "a", stdout=asyncio.subprocess.PIPE)
    assert (await child.communicate())[0] == b"a\n"
    assert await asyncio.to_thread(square, 4) == 16
    loop = asyncio.get_running_loop()
    seen = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await seen.wait()
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, ("127.0.0.1", 0)
    )
    transport.close()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        assert error.errno != 1, "refused by the filter"
        return False
    return True


def sockets():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        if family == socket.AF_INET6 and not has_ipv6():
            continue
        server = socket.create_server((address, 0), family=family)
        client = socket.create_connection(server.getsockname()[:2])
        accepted, _ = server.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(5)
        accepted.sendall(b"q" * 10)
        assert client.recv(20) == b"q" * 10 and client.getpeername()
        client.shutdown(socket.SHUT_RDWR)
        datagram = socket.socket(family, socket.SOCK_DGRAM)
        datagram.bind((address, 0))
        datagram.sendto(b"z", datagram.getsockname())
        assert datagram.recvfrom(10)[0] == b"z"
    left, right = socket.socketpair()
    socket.send_fds(left, [b"x"], [0])
    assert len(socket.recv_fds(right, 10, 1)[1]) == 1
    assert socket.getaddrinfo("127.0.0.1", 80)


def files():
    pathlib.Path("a").write_text("x" * 100000)
    shutil.copy2("a", "b")
    os.mkdir("d")
    shutil.copytree("d", "e")
    shutil.move("e", "f")
    shutil.rmtree("f")
    os.symlink("a", "l")
    os.link("a", "h")
    os.chmod("a", 0o640)
    os.chmod("d", 0o1777)
    os.close(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600))
    assert refused(lambda: os.chmod("a", 0o4755))
    assert refused(lambda: os.open("s", os.O_CREAT | os.O_WRONLY, 0o2755))
    os.utime("a", (10**9, 10**9))
    os.mkfifo("p")
    os.access("a", os.R_OK)
    assert os.readlink("l") == "a" and shutil.disk_usage(".").total > 0
    with tempfile.TemporaryDirectory() as path, tempfile.NamedTemporaryFile() as named:
        named.write(b"x")
        named.flush()
        with mmap.mmap(named.fileno(), 1) as mapped:
            mapped.flush()
        shutil.make_archive(path + "/z", "gztar", ".", "d")
        tarfile.open(path + "/z.tar.gz").extractall(path)
        zipfile.ZipFile(path + "/z.zip", "w").write("a")
    with open("b", "r+b") as source, open("c", "w+b") as target:
        assert os.copy_file_range(source.fileno(), target.fileno(), 10) == 10
        os.ftruncate(target.fileno(), 5)
        os.fsync(target.fileno())
        fcntl.lockf(target, fcntl.LOCK_EX)
    assert glob.glob("*")
    base = sqlite3.connect("base")
    base.execute("pragma journal_mode=wal")
    base.execute("create table t(x)")
    with base:
        base.execute("insert into t values(1)")
    other = sqlite3.connect("base")
    assert other.execute("select x from t").fetchall() == [(1,)]
    other.close()
    base.close()
    numpy.save("n", numpy.ones(3))
    assert numpy.load("n.npy", mmap_mode="r").sum() == 3
    numpy.memmap("m", mode="w+", shape=(10,)).flush()


def the_rest():
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start()
    thread.join()
    read, write = os.pipe()
    os.set_blocking(read, False)
    poll = select.poll()
    poll.register(read)
    poll.poll(1)
    epoll = select.epoll()
    epoll.register(read)
    epoll.poll(0.01)
    select.select([read], [], [], 0.01)
    os.dup2(write, os.dup(write))
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.02)
    signal.alarm(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.kill(os.getpid(), signal.SIGUSR2)
    assert signal.sigwait([signal.SIGUSR2]) == signal.SIGUSR2
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 500), hard))
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (PermissionError, ValueError):
        pass
    else:
        raise AssertionError("the core limit was set")
    ssl.create_default_context()
    zoneinfo.ZoneInfo("Asia/Tokyo")
    assert uuid.uuid1() and uuid.getnode() and uuid.uuid4()
    numpy.dot(numpy.ones((300, 300)), numpy.ones((300, 300)))


if __name__ == "__main__":
    processes()
    multiprocesses()
    asyncio.run(asyncs())
    sockets()
    files()
    the_rest()
    print("all ok")
