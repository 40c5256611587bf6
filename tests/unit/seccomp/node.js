// Run under the node profile, in an empty directory.
'use strict';
const { Worker, isMainThread, parentPort } = require('worker_threads');
const assert = require('assert');
const child = require('child_process');
const fs = require('fs');

if (process.argv[2] === 'child') {
  process.send('hello');
} else if (!isMainThread) {
  parentPort.postMessage(fs.readdirSync('/').length > 0);
} else {
  main().then(() => { console.log('all ok'); process.exit(0); },
    (error) => { console.error(error); process.exit(1); });
}

function files() {
  fs.writeFileSync('a', 'x'.repeat(1e5));
  fs.copyFileSync('a', 'b');
  fs.cpSync('a', 'c');
  fs.mkdirSync('p/q', { recursive: true });
  fs.renameSync('b', 'p/q/b');
  fs.symlinkSync('a', 'l');
  fs.linkSync('a', 'h');
  fs.chmodSync('a', 0o600);
  fs.utimesSync('a', 1, 1);
  fs.truncateSync('a', 10);
  fs.appendFileSync('a', 'q');
  assert.equal(fs.readlinkSync('l'), 'a');
  assert.ok(fs.realpathSync('l') && fs.statfsSync('.') && fs.lstatSync('l').isSymbolicLink());
  fs.unlinkSync('h');
  fs.rmSync('p', { recursive: true });
  const fd = fs.openSync('a', 'r+');
  fs.writevSync(fd, [Buffer.from('a'), Buffer.from('b')], 0);
  fs.readvSync(fd, [Buffer.alloc(2)], 0);
  fs.fsyncSync(fd);
  fs.fdatasyncSync(fd);
  fs.closeSync(fd);
}

async function streams() {
  await new Promise((done) => fs.createReadStream('a').pipe(fs.createWriteStream('z'))
    .on('finish', done));
  await fs.promises.copyFile('z', 'y');
  for await (const entry of await fs.promises.opendir('.')) assert.ok(entry.name);
  fs.watchFile('a', () => {});
  fs.unwatchFile('a');
}

async function engines() {
  const worker = new Worker(__filename);
  assert.equal(await new Promise((done, fail) => worker.on('message', done).on('error', fail)),
    true);
  const code = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3,
    2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
  assert.equal((await WebAssembly.instantiate(code)).instance.exports.add(2, 3), 5);
  new WebAssembly.Memory({ initial: 10, maximum: 1000 }).grow(10);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0, 5);
  const crypto = require('crypto');
  crypto.generateKeyPairSync('ed25519');
  await new Promise((done) => crypto.pbkdf2('a', 'b', 1000, 10, 'sha256', done));
  await new Promise((done) => require('zlib').gzip('abc', done));
}

async function children() {
  assert.equal(child.execSync('echo hi; ls /usr | head -1').toString().slice(0, 3), 'hi\n');
  assert.equal(child.spawnSync('cat', { input: 'abc' }).stdout.toString(), 'abc');
  const forked = child.fork(__filename, ['child']);
  assert.equal(await new Promise((done) => forked.on('message', done)), 'hello');
  forked.disconnect();
  const sleeper = child.spawn('sleep', ['100'], { detached: true });
  process.kill(-sleeper.pid);
  assert.equal(await new Promise((done) => sleeper.on('exit', (_, signal) => done(signal))),
    'SIGTERM');
}

async function sockets() {
  const http = require('http'), net = require('net'), dgram = require('dgram');
  const server = http.createServer((_, answer) => answer.end('ok'));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  assert.equal(await (await fetch(`http://127.0.0.1:${server.address().port}`)).text(), 'ok');
  const unix = net.createServer((socket) => socket.end('x'));
  await new Promise((done) => unix.listen('./socket', done));
  await new Promise((done) => net.connect('./socket').on('data', () => {}).on('end', done));
  const udp = dgram.createSocket('udp4');
  await new Promise((done) => udp.bind(0, '127.0.0.1', done));
  await new Promise((done) => {
    udp.on('message', done);
    udp.send('x', udp.address().port, '127.0.0.1');
  });
}

async function main() {
  files();
  await streams();
  await engines();
  await children();
  await sockets();
  const os = require('os');
  assert.ok(os.cpus() && os.userInfo() && os.hostname() && os.freemem() && process.cpuUsage());
  process.title = 'title';
}
