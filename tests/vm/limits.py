#!/usr/bin/python3
"""tests/vm/limits.py [PATTERN...]: limits that hold, from outside of the box.

Runs in the virtual machine, as the caller and in the place of the cgroup tree that
HUTCH_VM_SETTING names (tools/vm/run). Each test looks at what the kernel says about the box as
well as at what hutch says, because a receipt is only worth something if it can be wrong here.
The last line is the total. HUTCH_VM_SOAK=RUNS,KILLS sets how long the soak is.
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HUTCH = os.environ["HUTCH"]
SETTING = os.environ["HUTCH_VM_SETTING"]
# What hutch says where it has no cgroup.
CAUSES = {"none": "Delegate=yes", "readonly": "Read-only file system"}
CAUSE = CAUSES.get(SETTING)
HAS_CGROUP = CAUSE is None
RUNS, KILLS = (int(n) for n in os.environ.get("HUTCH_VM_SOAK", "100,20").split(","))
MIB = 1 << 20
# How much longer anything may take under software emulation than on a plain machine.
SLOW = 10
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Failed(Exception):
    pass


def check(true, *seen):
    if not true:
        raise Failed(" ".join(str(s) for s in seen))


def start(*arguments, code=None, suffix=".py", stdin=subprocess.DEVNULL, **how):
    command = [HUTCH, "run", "--json", "--timeout", "60", *arguments]
    if code is not None:
        with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False) as file:
            file.write(code)
        command.append(file.name)
    process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, **how)
    process.code_file = command[-1] if code is not None else None
    return process


def finish(process):
    out, error = process.communicate(timeout=300)
    if process.code_file:
        os.unlink(process.code_file)
    try:
        result = json.loads(out)
    except ValueError as bad:
        raise Failed(f"no result: {bad}, stderr {error!r}, status {process.returncode}") from bad
    result["status"] = process.returncode
    return result


def run(*arguments, code=None, suffix=".py"):
    return finish(start(*arguments, code=code, suffix=suffix))


def reason_is(result, reason):
    check(result["reason"] == reason, f"reason {result['reason']}, not {reason}:", result)


def clean(result):
    reason_is(result, "exit")
    check(result["exit_code"] == 0 and result["stderr"] == "", result)


# ---- what is there on the machine ---------------------------------------------------------------

def cgroups():
    """Directories of ours anywhere in the tree."""
    found = []
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, n) for n in names
                  if re.fullmatch(r"hutch\.slice|hutch-host|hutch-\d+-[0-9a-f]{16}(\.scope)?", n)]
    return found


def inits():
    """Processes of boxes: init and what runs below it."""
    found = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="utf-8") as file:
                if file.read().startswith("hutch-init"):
                    found.append(path)
        except OSError:
            pass
    return found


def left_over():
    return {
        "cgroups": cgroups(),
        "processes": inits(),
        "mounts": len(open("/proc/self/mounts", encoding="utf-8").readlines()),
        "files": sorted(os.listdir("/tmp")) + sorted(os.listdir(".")),
    }


def expect_nothing_left(before):
    """systemd removes an empty scope a moment later, so this waits; the bound is what counts."""
    end = time.monotonic() + 3 * SLOW
    while left_over() != before and time.monotonic() < end:
        time.sleep(0.1)
    now = left_over()
    for kind, had in before.items():
        check(now[kind] == had, f"{kind}: {had} before, {now[kind]} now")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def cgroup_of(pid):
    line = [l for l in text(f"/proc/{pid}/cgroup").split("\n") if l.startswith("0::")][0]
    return "/sys/fs/cgroup" + line[3:].rstrip("/")


def box_process(name):
    """Waits for a box's process with this command name; its pid on the host."""
    for _ in range(600 * SLOW):
        for path in glob.glob("/proc/[0-9]*/comm"):
            try:
                if text(path) == name:
                    return int(path.split("/")[2])
            except OSError:
                pass
        time.sleep(0.01)
    raise Failed(f"no process {name}")


# ---- what the receipt says is what the kernel has -------------------------------------------------

@test
def receipt_agrees_with_the_kernel():
    """The box's own directory, read from outside while a program with a rare name runs in it."""
    before = left_over()
    box = start("--memory", "96M", "--pids", "20", "--cpus", "0.5", "--", "/bin/sh", "-c",
                "cp /bin/sleep /work/hutchprobe && exec /work/hutchprobe 60")
    pid = box_process("hutchprobe")
    where = cgroup_of(pid)
    ours = re.fullmatch(r"hutch-\d+-[0-9a-f]{16}", os.path.basename(where)) is not None
    seen = {}
    if ours:
        for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max"):
            seen[name] = text(f"{where}/{name}")
    os.kill(pid, signal.SIGKILL)
    result = finish(box)
    layers = result["receipt"]["layers"]
    check(ours == HAS_CGROUP, where)
    if HAS_CGROUP:
        check(seen == {"memory.max": str(96 * MIB), "memory.swap.max": "0",
                       "memory.oom.group": "1", "pids.max": "21", "cpu.max": "50000 100000"}, seen)
        check([layers[l] for l in ("cgroup", "memory", "pids", "cpu")] ==
              ["on", "cgroup", "cgroup", "cgroup"], layers)
        check(result["usage"]["source"] == "cgroup" and not result["receipt"]["missing"], result)
    else:
        check(layers["cgroup"] == "off" and layers["memory"] == "watchdog", layers)
        check(result["usage"]["source"] == "sampled", result["usage"])
        missing = {m["layer"]: m["cause"] for m in result["receipt"]["missing"]}
        check(set(missing) >= {"cgroup", "memory", "pids", "cpu"}, missing)
        check(CAUSE in missing["memory"], missing)
    expect_nothing_left(before)


@test
def place_is_the_one_that_the_setting_gives():
    if not HAS_CGROUP:
        return
    box = start("--", "/bin/sh", "-c", "cp /bin/sleep /work/hutchplace && exec /work/hutchplace 60")
    pid = box_process("hutchplace")
    above = os.path.dirname(cgroup_of(pid))
    own = cgroup_of("self")
    os.kill(pid, signal.SIGKILL)
    finish(box)
    if SETTING == "root":
        check(above == "/sys/fs/cgroup/hutch.slice", above)
    elif SETTING == "session":
        check(re.search(r"/user@\d+\.service/.*/hutch-\d+-[0-9a-f]{16}\.scope$", above), above)
    else:
        # We were moved aside, and are back.
        check(own == above + "/hutch-host" or own == above, own, above)
        check(cgroup_of("self") == above, cgroup_of("self"), above)


@test
def box_sees_none_of_it():
    result = run("--", "/bin/cat", "/proc/self/cgroup")
    clean(result)
    check(result["stdout"] == "0::/\n", result["stdout"])


@test
def requiring_memory():
    for layer in ("memory", "pids", "cpu", "cgroup"):
        result = run("--require", layer, "--", "/bin/true")
        if HAS_CGROUP:
            clean(result)
        else:
            reason_is(result, "setup")
            check(result["status"] == 125 and layer in result["error"], result)
            check(CAUSE in result["error"], result["error"])
    result = run("--require", "all", "--", "/bin/true")
    check((result["reason"] == "exit") == HAS_CGROUP, result)


@test
def partial_delegation_is_told():
    """Only in the setting of that name, and nothing else is run there."""
    if SETTING != "partial":
        return
    result = run("--memory", "64M", "--", "/bin/true")
    clean(result)
    layers = result["receipt"]["layers"]
    check([layers[l] for l in ("cgroup", "memory", "pids")] == ["on", "cgroup", "cgroup"], layers)
    check(layers["cpu"] != "cgroup", layers)
    missing = {m["layer"]: m["cause"] for m in result["receipt"]["missing"]}
    check(list(missing) == ["cpu"] and "user@.service" in missing["cpu"], missing)
    result = run("--require", "cpu", "--", "/bin/true")
    reason_is(result, "setup")
    check("user@.service" in result["error"], result["error"])


@test
def allowing_a_layer_to_be_missing_changes_nothing_that_is_there():
    plain = run("--", "/bin/true")["receipt"]
    check((plain["layers"]["memory"] == "cgroup") == HAS_CGROUP, plain)
    for layer in ("net_ns", "cgroup", "memory", "pids", "cpu"):
        result = run("--allow-missing", layer, "--", "/bin/true")
        clean(result)
        check(result["receipt"] == plain, layer, result["receipt"], plain)
    refused = run("--allow-missing", "memory", "--require", "memory", "--", "/bin/true")
    reason_is(refused, "request")


@test
def doctor_agrees():
    done = subprocess.run([HUTCH, "doctor", "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)
    report = json.loads(done.stdout)
    check(report["can_run"] and done.returncode == 0, done.stdout, done.stderr)
    check((report["layers"]["memory"] == "cgroup") == HAS_CGROUP, report)
    if not HAS_CGROUP:
        check(CAUSE in done.stdout, report)


# ---- memory ---------------------------------------------------------------------------------------

EAT = "keep = []\nwhile True: keep.append(b'x' * (1 << 20))\n"


def memory_verdict(result, limit):
    reason_is(result, "memory")
    usage = result["usage"]
    check(usage["memory_limit_bytes"] == limit, usage)
    bound = limit if HAS_CGROUP else limit * 3 // 2 + 64 * MIB
    check(limit * 8 // 10 <= usage["memory_peak_bytes"] <= bound, usage)
    check(result["exit_code"] is None and not result["timed_out"], result)


@test
def eating_memory_is_memory():
    memory_verdict(run("--memory", "64M", code=EAT), 64 * MIB)


@test
def case_20_a_child_that_eats_while_its_parent_exits_0():
    memory_verdict(run("--memory", "64M", code="import os\nif os.fork() == 0:\n"
                       "    keep = []\n    while True: keep.append(b'x' * (1 << 20))\n"
                       "os.wait()\nos._exit(0)\n"), 64 * MIB)


@test
def memory_that_hides_from_a_heap_is_counted():
    """Page tables, a written tmpfs, socket buffers."""
    files = "i = 0\nwhile True:\n    open(f'/work/{i}', 'wb').write(b'x' * (1 << 20)); i += 1\n"
    memory_verdict(run("--memory", "64M", "--disk", "512M", code=files), 64 * MIB)
    tables = ("import mmap\nm = mmap.mmap(-1, 1 << 45, flags=mmap.MAP_PRIVATE | "
              "mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n"
              "for at in range(0, 1 << 45, 1 << 21): m[at]\n")
    memory_verdict(run("--memory", "64M", code=tables), 64 * MIB)


@test
def case_21_other_ends_are_not_memory():
    code = ("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "time.sleep(1000)\n")
    result = run("--memory", "64M", "--timeout", "3", code=code)
    reason_is(result, "timeout")
    result = run("--memory", "64M", code="import os\nos.kill(os.getpid(), 9)\n")
    reason_is(result, "signal")
    check(result["signal"] == 9, result)
    result = run("--cpu-time", "3", code="while True: pass\n")
    reason_is(result, "cpu_time")
    check(2900 <= result["usage"]["cpu_ms"] <= 4500, result["usage"])


@test
def case_22_an_impossible_allocation_is_an_honest_error():
    result = run(code="try:\n    bytearray(1 << 46)\nexcept MemoryError:\n    print('MemoryError')\n")
    clean(result)
    check(result["stdout"] == "MemoryError\n", result)


@test
def case_23_webassembly_memory_is_counted_as_used():
    code = ("const m = new WebAssembly.Memory({initial: 16, maximum: 65536});"
            "new Uint8Array(m.buffer).fill(1); console.log(m.buffer.byteLength);")
    result = run("--memory", "256M", code=code, suffix=".js")
    clean(result)
    check(result["stdout"] == "1048576\n", result)


@test
def case_27_boxes_share_no_limit():
    code = "keep = b'x' * (40 << 20)\nprint(len(keep))\nimport time; time.sleep(2)\n"
    boxes = [start("--memory", "64M", code=code) for _ in range(3)]
    for result in [finish(box) for box in boxes]:
        clean(result)


@test
def case_29_never_silently_unlimited():
    result = run("--memory", "64M", code="keep = b'x' * (200 << 20)\n"
                 "import time; time.sleep(5)\nprint('kept it')\n")
    memory_verdict(result, 64 * MIB)
    check(result["receipt"]["layers"]["memory"] == ("cgroup" if HAS_CGROUP else "watchdog"), result)


@test
def memory_that_runs_out_above_the_box_is_told_apart():
    """Only root can put a limit on the slice above its boxes."""
    if SETTING != "root":
        return
    box = start("--memory", "512M", code="import time\ntime.sleep(3)\n" + EAT)
    slice_limit = "/sys/fs/cgroup/hutch.slice/memory.max"
    while not os.path.exists(slice_limit):
        time.sleep(0.01)
    with open(slice_limit, "w", encoding="ascii") as file:
        file.write("64M")
    result = finish(box)
    reason_is(result, "memory")
    check("its own limit was not reached" in result["error"], result["error"])
    check(0 < result["usage"]["memory_peak_bytes"] < 70 * MIB, result["usage"])


# ---- processes and CPUs ---------------------------------------------------------------------------

@test
def case_24_numpy_knows_its_quota():
    code = ("import numpy, os\na = numpy.arange(160000.0).reshape(400, 400)\n"
            "assert numpy.allclose((a @ numpy.eye(400)), a)\n"
            "print(len(os.sched_getaffinity(0)), os.environ['OPENBLAS_NUM_THREADS'],"
            " os.environ['OMP_NUM_THREADS'])\n")
    result = run("--cpus", "1", "--pids", "32", code=code)
    clean(result)
    check(result["stdout"].split()[1:] == ["1", "1"], result["stdout"])
    shown = run("--cpus", "0.5", code="import os\nprint(os.environ.get('PYTHON_CPU_COUNT') or "
                "len(os.sched_getaffinity(0)))\n")
    check(shown["stdout"] == "1\n", shown)


@test
def case_25_process_limits_are_per_box():
    code = ("import threading\nbarrier = threading.Barrier(51)\n"
            "for _ in range(50): threading.Thread(target=barrier.wait).start()\n"
            "barrier.wait()\nprint('fine')\n")
    boxes = [start("--pids", "64", code=code) for _ in range(8)]
    for result in [finish(box) for box in boxes]:
        clean(result)
        check(result["stdout"] == "fine\n", result)


@test
def refused_processes_are_counted():
    code = ("import os, time\nrefused = 0\nfor _ in range(40):\n    try:\n"
            "        if os.fork() == 0: time.sleep(1000)\n"
            "    except BlockingIOError: refused += 1\n"
            "print(refused, flush=True)\nos._exit(0)\n")
    result = run("--pids", "16", code=code)
    clean(result)
    refused = int(result["stdout"])
    check(refused == 25, refused)
    if HAS_CGROUP:
        check(result["usage"]["pids_denied"] == refused, result["usage"])
        check(result["usage"]["pids_peak"] == 16, result["usage"])


@test
def a_fraction_of_a_cpu_is_a_fraction():
    if not HAS_CGROUP:
        return
    result = run("--cpus", "0.25", "--timeout", "6", code="while True: pass\n")
    reason_is(result, "timeout")
    share = result["usage"]["cpu_ms"] / result["usage"]["wall_ms"]
    check(share < 0.35, share)


class Heartbeat(threading.Thread):
    """Starts a small program over and over: how responsive is the machine?"""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.worst, self.beats = threading.Event(), 0.0, 0

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            subprocess.run(["/bin/true"], check=True)
            self.worst = max(self.worst, time.monotonic() - began)
            self.beats += 1
            self.stop.wait(0.05)


def oom_kill_of(command):
    """When the kernel counted an OOM kill in the command's box; None where there is no cgroup."""
    counts = None
    while HAS_CGROUP and command.poll() is None:
        try:
            if counts is None:
                name = re.compile(rf".*/hutch-{command.pid}-[0-9a-f]{{16}}")
                found = [c for c in cgroups() if name.fullmatch(c)]
                counts = found and found[0] + "/memory.events" or None
            elif re.search(r"^oom_kill [1-9]", text(counts), re.MULTILINE):
                return time.monotonic()
        except OSError:
            counts = None
        time.sleep(0.003)
    return None


BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"


@test
def case_26_bombs_leave_the_machine_responsive():
    """A fork bomb and a memory bomb at once; both are gone soon after their limits."""
    before = left_over()
    heart = Heartbeat()
    heart.start()
    forks = start("--timeout", "8", "--pids", "64", code=BOMB)
    memory = start("--memory", "64M", "--timeout", "30", code=EAT)
    killed = oom_kill_of(memory)
    memory = finish(memory)
    took = time.monotonic() - killed if killed else 0
    check(killed or not HAS_CGROUP, "no memory kill was seen", memory)
    forks = finish(forks)
    heart.stop.set()
    heart.join()
    memory_verdict(memory, 64 * MIB)
    reason_is(forks, "timeout")
    # wall_ms: from the program's exec to the moment when nothing of the box was alive.
    late = forks["usage"]["wall_ms"] / 1000 - 8
    print(f"     gone {took:.2f} s after the memory kill, {late:.2f} s after the wall limit; slowest "
          f"of {heart.beats} heartbeats {heart.worst:.2f} s")
    # A second, and what an emulated machine on a busy host needs for the least of programs.
    check(max(took, late) < 1 + 2 * heart.worst, took, late, heart.worst)
    check(heart.beats >= 5 and heart.worst < 0.5 * SLOW, heart.beats, heart.worst)
    expect_nothing_left(before)


# ---- disk -----------------------------------------------------------------------------------------

@test
def every_writable_place_has_one_limit():
    code = ("import errno\nfor place in '/work', '/tmp', '/dev/shm':\n    try:\n"
            "        with open(place + '/fill', 'wb') as f:\n"
            "            while True: f.write(b'x' * 65536)\n"
            "    except OSError as e:\n        print(place, errno.errorcode[e.errno])\n")
    result = run("--disk", "8M", code=code)
    clean(result)
    check(result["stdout"] == "/work ENOSPC\n/tmp ENOSPC\n/dev/shm ENOSPC\n", result["stdout"])
    inodes = ("import errno\ntry:\n    for i in range(100000): open(f'/tmp/{i}', 'w').close()\n"
              "except OSError as e: print(i < 16384, errno.errorcode[e.errno])\n")
    result = run(code=inodes)
    clean(result)
    check(result["stdout"] == "True ENOSPC\n", result["stdout"])


# ---- nothing left ---------------------------------------------------------------------------------

# Every second run leaves a child that sleeps; memory kills are few and small because a slow guest
# takes a second for each.
SLEEPER = (("--", "/bin/sh", "-c", "sleep 1000 & exit 0"), "exit")
ENDS = [
    (("--", "/bin/true"), "exit"),
    SLEEPER,
    (("--", "/bin/sh", "-c", "setsid sleep 1000 & exit 3"), "exit"),
    (("--", "/bin/sh", "-c", "kill -SEGV $$"), "signal"),
    SLEEPER,
    (("--timeout", "0.3", "--", "/bin/sleep", "1000"), "timeout"),
    SLEEPER,
    (("--memory", "4M", "--", "/bin/sh", "-c", "head -c 16M /dev/zero | tail"), "memory"),
    (("--", "/bin/true"), "exit"),
    (("--pids", "8", "--", "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done"),
     "exit"),
]


@test
def case_28_many_runs_leave_nothing():
    before = left_over()
    for number in range(RUNS):
        arguments, reason = ENDS[number % len(ENDS)]
        reason_is(run(*arguments), reason)
    expect_nothing_left(before)


@test
def killed_at_any_moment_it_leaves_nothing_for_long():
    """SIGKILL to the command; what its box left is gone with the next run at the latest."""
    before = left_over()
    generator = random.Random(28)
    for _ in range(KILLS):
        box = start("--", "/bin/sh", "-c", "sleep 1000 & sleep 1000")
        time.sleep(generator.uniform(0, 0.05 * SLOW))
        box.kill()
        box.wait()
    clean(run("--", "/bin/true"))
    expect_nothing_left(before)


@test
def many_at_once_leave_nothing():
    before = left_over()
    for _ in range(2):
        boxes = [start("--", "/bin/true") for _ in range(16)]
        for box in boxes:
            clean(finish(box))
    expect_nothing_left(before)


def main():
    wanted = [t for t in TESTS
              if not sys.argv[1:] or any(p in t.__name__ for p in sys.argv[1:])]
    work = tempfile.mkdtemp(prefix="hutch-vm-")
    os.chdir(work)
    failed = 0
    for function in wanted:
        began = time.monotonic()
        try:
            function()
            verdict = "ok  "
        except (Failed, AssertionError, OSError, KeyError, ValueError,
                subprocess.SubprocessError) as why:
            verdict = "FAIL"
            failed += 1
            print(f"     {function.__name__}: {type(why).__name__}: {str(why)[:1500]}")
        print(f"{verdict} {function.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
    os.chdir("/")
    os.rmdir(work)
    print(f"{len(wanted) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
