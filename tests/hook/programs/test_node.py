# SPDX-License-Identifier: Apache-2.0
"""Node: HTTP server and client, a socket of the file system, children, workers."""

from pathlib import Path

from tests.hook.programs.ways import need, same

PROGRAM = """
const http = require("http"), net = require("net"), crypto = require("crypto");
const { once } = require("events");
const { execFile, fork } = require("child_process");
const { promisify } = require("util");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

const hash = (text) => crypto.createHash("sha256").update(text).digest("hex");

function serve() {
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    response.writeHead(request.url === "/absent" ? 404 : 200);
    response.write(request.method + " " + request.url + "\\n");
    response.end(body.toUpperCase().repeat(20));
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

function ask(port, path, body, agent) {
  return new Promise((done, failed) => {
    const options = { port, path, agent, host: "127.0.0.1", method: body ? "POST" : "GET" };
    const request = http.request(options, async (response) => {
      let text = "";
      for await (const part of response) text += part;
      done(path + " " + response.statusCode + " " + hash(text));
    });
    request.on("error", failed).end(body);
  });
}

async function main() {
  const server = await serve(), { port } = server.address();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const paths = [...Array(40).keys()].map((i) => "/page/" + i).concat("/absent");
  const body = (i) => i % 2 && "the body ".repeat(i * 500);
  const answers = paths.map((path, i) => ask(port, path, body(i), agent));
  console.log((await Promise.all(answers)).join("\\n"));
  agent.destroy();
  server.close();
  await once(server, "close");
  console.log(await ask(port, "/", "", undefined).catch((error) => error.code));

  const local = net.createServer((peer) => peer.pipe(peer)).listen("socket");
  await once(local, "listening");
  const peer = net.connect("socket");
  peer.end("there and back");
  for await (const part of peer) console.log(String(part));
  local.close();

  const run = promisify(execFile);
  console.log(await run("sh", ["-c", "echo out; echo err >&2"]));
  console.log((await run("sh", ["-c", "exit 4"]).catch((error) => error)).code);
  const child = fork(__filename, ["child"]);
  child.send({ number: 20 });
  console.log((await once(child, "message"))[0], await once(child, "exit"));

  const workers = [1, 2, 3].map((n) => new Worker(__filename, { workerData: n }));
  console.log(...(await Promise.all(workers.map(async (w) => (await once(w, "message"))[0]))));
  process.on("SIGUSR2", () => process.exit(7));
  process.kill(process.pid, "SIGUSR2");
  setTimeout(() => process.exit(1), 20000);
}

async function work() {
  const server = await serve();
  parentPort.postMessage(await ask(server.address().port, "/worker", "x".repeat(workerData)));
  server.close();
}

if (!isMainThread) work();
else if (process.argv[2] === "child")
  process.once("message", ({ number }) => {
    process.send({ number: number + 1 }, () => process.exit(3));
  });
else main();
"""


def test_node(tmp_path: Path) -> None:
    need("node")
    (tmp_path / "program.js").write_text(PROGRAM)
    behaviour = same(["node", "program.js"], tmp_path)
    assert behaviour.code == 7, behaviour.err
    assert "/absent 404" in behaviour.out
    assert "ECONNREFUSED" in behaviour.out
    assert "there and back\n" in behaviour.out
    assert "{ number: 21 } [ 3, null ]" in behaviour.out
