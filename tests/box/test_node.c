/* test_node.c - what JavaScript code expects of the place it runs in. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/command.h"

TestSuite(node, .timeout = 200);

Test(node, files_and_copies)
{
    _cleanup_answer_ struct answer a = run_js(
        "const fs = require('fs');\n"
        "fs.writeFileSync('a.txt', 'text'); fs.copyFileSync('a.txt', 'b.txt');\n"
        "fs.mkdirSync('d/e', {recursive: true}); fs.renameSync('b.txt', 'd/e/c.txt');\n"
        "fs.promises.readFile('d/e/c.txt', 'utf8').then(t => console.log(t, fs.readdirSync('.')));",
        NULL);
    expect_stdout(&a, "text [ 'a.txt', 'd', 'main.js' ]\n");
    cr_assert_str_eq(answer_file(&a, "d/e/c.txt", NULL), "text");
}

Test(node, webassembly_and_worker_threads)
{
    _cleanup_answer_ struct answer a = run_js(
        "const {Worker, isMainThread, parentPort} = require('worker_threads');\n"
        "if (isMainThread) {\n"
        "  const bytes = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,"
        "7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);\n"
        "  WebAssembly.instantiate(bytes).then(m => {\n"
        "    console.log(m.instance.exports.add(40, 2));\n"
        "    new Worker(__filename).on('message', m => { console.log(m); process.exit(0); });\n"
        "  });\n"
        "} else parentPort.postMessage('from a worker');",
        NULL);
    expect_stdout(&a, "42\nfrom a worker\n");
}

Test(node, child_processes_timers_and_crypto)
{
    _cleanup_answer_ struct answer a =
        run_js("const {execFileSync} = require('child_process');\n"
               "console.log(execFileSync('echo', ['child']).toString().trim());\n"
               "console.log(require('crypto').createHash('sha256').update('x').digest('hex').slice("
               "0, 4));\n"
               "setTimeout(() => console.log('later', require('os').userInfo().uid), 10);",
               NULL);
    expect_stdout(&a, "child\n2d71\nlater 1000\n");
}

Test(node, loopback_and_nothing_else)
{
    _cleanup_answer_ struct answer a =
        run_js("const net = require('net');\n"
               "const s = net.createServer(c => c.end('hello')).listen(0, '127.0.0.1', () => {\n"
               "  net.connect(s.address().port, '127.0.0.1').on('data', d => {\n"
               "    console.log(d.toString()); s.close();\n"
               "    net.connect(53, '192.0.2.1').on('error', e => console.log(e.code));\n"
               "  });\n"
               "});",
               NULL);
    expect_stdout(&a, "hello\nENETUNREACH\n");
}

Test(node, exceptions_and_exit_codes)
{
    _cleanup_answer_ struct answer a =
        run_js("console.error('before'); throw new Error('boom')", NULL);
    expect_reason(&a, "exit");
    expect(&a, answer_int(&a, "exit_code") == 1 && strstr(answer_text(&a, "stderr"), "boom"));
    _cleanup_answer_ struct answer b = run_js("process.exit(42)", NULL);
    expect(&b, answer_int(&b, "exit_code") == 42);
}

Test(node, eating_memory_is_memory)
{
    _cleanup_answer_ struct answer a =
        run_js("const keep = [];\nwhile (true) keep.push(Buffer.alloc(1 << 20, 1));",
               LIST("--memory", "200M", "--timeout", "60"));
    expect_reason(&a, "memory");
}
