/*
 * test_watchdog.c - memory without a cgroup: what hides from the processes' numbers, what slows the
 * count, and what must go on working. The counts here are the programs' own, not the sampler's.
 * What only the watchdog does is asked for only where it is on; the rest holds with a cgroup, too.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/host.h"

TestSuite(watchdog, .timeout = 200);

/* How far above a limit of 64 MiB a box may ever get: half of it and 64 MiB. */
#define BOUND_MIB 160

static bool watchdog_counts(void)
{
    _cleanup_answer_ struct answer a = run_command(NULL, LIST("true"));
    expect_clean(&a);
    return answer_is(&a, "receipt.layers.memory", "watchdog");
}

/* One dot on stdout for each MiB that is written to. */
#define EAT_WITH_DOTS                                                                              \
    "keep = []\n"                                                                                  \
    "while True:\n"                                                                                \
    "    keep.append(b'x' * (1 << 20))\n"                                                          \
    "    os.write(1, b'.')\n"

/* maps(n) makes n memory maps of a page each; `written` first writes to every second one. */
#define MAPS                                                                                       \
    "import ctypes, os, sys, time\n"                                                               \
    "c = ctypes.CDLL(None)\n"                                                                      \
    "c.mmap.restype = ctypes.c_void_p\n"                                                           \
    "def maps(n, written=False):\n"                                                                \
    "    at = c.mmap(None, ctypes.c_size_t(n << 12), 3, 0x4022, -1, ctypes.c_long(0))\n"           \
    "    c.madvise(ctypes.c_void_p(at), ctypes.c_size_t(n << 12), 15)\n"                           \
    "    for page in range(at, at + (n << 12), 8192):\n"                                           \
    "        if written: ctypes.memset(page, 1, 1)\n"                                              \
    "        if c.mprotect(ctypes.c_void_p(page), 4096, 1): sys.exit('mprotect')\n"

/* ---- what no process's numbers show ---- */

#define FILL_CONNECTIONS(count)                                                                    \
    "import socket, time\n"                                                                        \
    "server, held, keep = socket.create_server(('127.0.0.1', 0)), 0, []\n"                         \
    "for _ in range(" count "):\n"                                                                 \
    "    one = socket.create_connection(server.getsockname())\n"                                   \
    "    two, _ = server.accept()\n"                                                               \
    "    for s in one, two:\n"                                                                     \
    "        s.setblocking(False)\n"                                                               \
    "        for _ in range(20):\n"                                                                \
    "            try:\n"                                                                           \
    "                while True: held += s.send(bytes(1 << 20))\n"                                 \
    "            except BlockingIOError: time.sleep(0.001)\n"                                      \
    "        keep.append(s)\n"

Test(watchdog, full_connections_hold_little)
{
    _cleanup_answer_ struct answer a =
        run_py(FILL_CONNECTIONS("15") "time.sleep(0.1)\nprint(held >> 20)\n",
               LIST("--memory", "128M", "--timeout", "60"));
    expect(&a, answer_is(&a, "reason", "exit") || !watchdog_counts());
    if (watchdog_counts())
        expect(&a, strtol(answer_text(&a, "stdout"), NULL, 10) <= 15);
}

Test(watchdog, many_maps_are_memory)
{
    const char *code = text_format(MAPS "maps(60000)\n"
                                        "for _ in range(19):\n"
                                        "    if os.fork() == 0: break\n"
                                        "time.sleep(%d)\n",
                                   (int)(5 * slow()));
    _cleanup_answer_ struct answer a = run_py(code, LIST("--memory", "64M", "--timeout", "150"));
    expect_reason(&a, "memory");
}

/* A map that was written to costs one link for each ancestor that lives. */
Test(watchdog, the_links_of_maps_to_their_ancestors_are_memory)
{
    _cleanup_answer_ struct answer a = run_py(MAPS "maps(4000, True)\n"
                                                   "for _ in range(39):\n"
                                                   "    if os.fork(): break\n"
                                                   "time.sleep(5)\n",
                                              LIST("--memory", "64M", "--timeout", "60"));
    if (watchdog_counts())
        expect_reason(&a, "memory");
}

Test(watchdog, a_process_that_can_not_be_looked_at_counts_with_all_maps_it_may_have)
{
    _cleanup_answer_ struct answer a =
        run_sh("cp /bin/sleep /work/sleep; chmod 111 /work/sleep\n"
               "for i in 1 2 3 4 5 6 7 8; do /work/sleep 5 & done; wait; echo fine\n",
               LIST("--memory", "64M", "--timeout", "60"));
    if (watchdog_counts())
        expect_reason(&a, "memory");
    else
        expect_stdout(&a, "fine\n");
}

/* ---- what makes counting slow ---- */

static long long dots(const struct answer *a)
{
    return answer_int(a, "stdout_bytes");
}

/* A busy machine can starve the sampler once; a way past the limit is one that works each time. */
static void expect_held(const char *code, long long (*held_mib)(const struct answer *a),
                        long long bound_mib)
{
    long long held = 0;
    for (int i = 0; i < 3; i++) {
        _cleanup_answer_ struct answer a = run_py(code, LIST("--memory", "64M", "--timeout", "60"));
        expect_reason(&a, "memory");
        held = held_mib(&a);
        if (held <= bound_mib)
            return;
    }
    cr_assert(false, "held %lld MiB, and more than %lld three times", held, bound_mib);
}

Test(watchdog, a_slow_count_is_no_way_past_the_limit)
{
    expect_held(MAPS "maps(60000)\n"
                     "for _ in range(10):\n"
                     "    if os.fork() == 0: time.sleep(60)\n" EAT_WITH_DOTS,
                dots, BOUND_MIB);
}

/* The parent's 40 MiB count once; children that write to them make them their own. */
Test(watchdog, pages_that_stop_being_shared_count)
{
    expect_held("import os, time\n"
                "shared = bytearray(b'x') * (40 << 20)\n"
                "for _ in range(20):\n"
                "    if os.fork() == 0: break\n"
                "else: time.sleep(60)\n"
                "time.sleep(0.3)\n"
                "for at in range(0, 40 << 20, 1 << 20):\n"
                "    shared[at:at + (1 << 20)] = b'y' * (1 << 20)\n"
                "    os.write(1, b'.')\n"
                "time.sleep(60)\n",
                dots, BOUND_MIB - 40);
}

static long long counted(const struct answer *a)
{
    size_t len = 0;
    long long total = 0, counts[32];
    const char *file = answer_file(a, "count", &len);
    expect(a, file && len == 4096);
    memcpy(counts, file, sizeof counts);
    for (size_t i = 0; i < 32; i++)
        total += counts[i];
    expect(a, total > 0);
    return total;
}

Test(watchdog, thirty_two_allocators_at_once_stay_within_the_bound)
{
    expect_held("import mmap, os, struct\n"
                "file = open('/work/count', 'w+b')\n"
                "file.truncate(4096)\n"
                "count = mmap.mmap(file.fileno(), 4096)\n"
                "for i in range(32):\n"
                "    if i < 31 and os.fork() == 0: break\n"
                "keep = []\n"
                "while True:\n"
                "    keep.append(b'x' * (1 << 20))\n"
                "    struct.pack_into('q', count, 8 * i, len(keep))\n",
                counted, BOUND_MIB);
}

/* ---- what must go on working ---- */

Test(watchdog, processes_that_share_what_their_parent_had_count_it_once)
{
    _cleanup_answer_ struct answer a = run_py("import os, time\n"
                                              "shared = bytearray(b'x') * (30 << 20)\n"
                                              "for _ in range(8):\n"
                                              "    if os.fork() == 0:\n"
                                              "        time.sleep(0.5)\n"
                                              "        os._exit(0)\n"
                                              "for _ in range(8): os.wait()\n"
                                              "print('fine')\n",
                                              LIST("--memory", "80M", "--timeout", "60"));
    expect_stdout(&a, "fine\n");
}

Test(watchdog, a_mapped_file_counts_once)
{
    _cleanup_answer_ struct answer a =
        run_py("import multiprocessing as mp, os, time\n"
               "from multiprocessing import shared_memory\n"
               "def look(name):\n"
               "    block = shared_memory.SharedMemory(name)\n"
               "    os.write(1, b'%d\\n' % sum(block.buf[::4096]))\n"
               "    time.sleep(0.3)\n"
               "    block.close()\n"
               "block = shared_memory.SharedMemory(create=True, size=40 << 20)\n"
               "block.buf[:] = b'\\1' * (20 << 20) + b'\\2' * (20 << 20)\n"
               "p = [mp.get_context('fork').Process(target=look, args=(block.name,))"
               " for _ in range(2)]\n"
               "for x in p: x.start()\n"
               "for x in p: x.join()\n"
               "block.close(); block.unlink()\n",
               LIST("--memory", "160M", "--disk", "64M", "--timeout", "60"));
    expect_stdout(&a, "15360\n15360\n");
    _cleanup_answer_ struct answer plain = run_py("import mmap, time\n"
                                                  "file = open('/dev/shm/x', 'w+b')\n"
                                                  "file.truncate(40 << 20)\n"
                                                  "m = mmap.mmap(file.fileno(), 40 << 20)\n"
                                                  "for at in range(0, 40 << 20, 4096): m[at] = 1\n"
                                                  "time.sleep(0.3)\n"
                                                  "print('fine')\n",
                                                  LIST("--memory", "64M", "--disk", "50M"));
    expect_stdout(&plain, "fine\n");
}

Test(watchdog, servers_on_the_loopback_work)
{
    _cleanup_answer_ struct answer a =
        run_py("import asyncio\n"
               "async def echo(reader, writer):\n"
               "    while data := await reader.read(1 << 16):\n"
               "        writer.write(data); await writer.drain()\n"
               "    writer.close()\n"
               "async def client(port):\n"
               "    reader, writer = await asyncio.open_connection('127.0.0.1', port)\n"
               "    async def send():\n"
               "        writer.write(bytes(1 << 20)); await writer.drain(); writer.write_eof()\n"
               "    task = asyncio.create_task(send())\n"
               "    got = 0\n"
               "    while data := await reader.read(1 << 16): got += len(data)\n"
               "    await task; writer.close()\n"
               "    return got\n"
               "async def main():\n"
               "    server = await asyncio.start_server(echo, '127.0.0.1', 0)\n"
               "    port = server.sockets[0].getsockname()[1]\n"
               "    print(sum(await asyncio.gather(*[client(port) for _ in range(40)])) >> 20)\n"
               "asyncio.run(main())\n",
               LIST("--memory", "256M", "--timeout", "100"));
    expect_stdout(&a, "40\n");
    _cleanup_answer_ struct answer node = run_js(
        "const http = require('http');\n"
        "const body = 'x'.repeat(300000);\n"
        "const server = http.createServer((q, r) => r.end(body)).listen(0, () => {\n"
        "  let left = 30, sum = 0;\n"
        "  for (let i = 0; i < 30; i++)\n"
        "    http.get({port: server.address().port, host: '127.0.0.1'}, r => {\n"
        "      r.on('data', d => sum += d.length);\n"
        "      r.on('end', () => { if (--left == 0) { console.log(sum); server.close(); } });\n"
        "    });\n"
        "});\n",
        LIST("--memory", "512M", "--timeout", "100"));
    expect_stdout(&node, "9000000\n");
}
