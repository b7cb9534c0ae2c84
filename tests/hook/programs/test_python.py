# SPDX-License-Identifier: Apache-2.0
"""Python: asyncio, subprocesses, a pool of processes."""

import sys
from pathlib import Path

from tests.hook.programs.ways import same

PYTHON = """
import asyncio, hashlib, os, subprocess, sys, threading, concurrent.futures

async def answer(reader, writer):
    line = await reader.readline()
    writer.write(line.upper() * 1000)
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async def ask(text):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(text + b"\\n")
        got = await reader.read()
        writer.close()
        return hashlib.sha256(got).hexdigest()
    print(*await asyncio.gather(*(ask(b"number %d" % i) for i in range(50))), sep="\\n")
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print(await process.communicate(b"through a pipe"))

asyncio.run(main())
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True))
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(*pool.map(abs, range(-5, 5)))
sys.exit(5)
"""


def test_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PYTHON)
    assert same([sys.executable, "program.py"], tmp_path).code == 5
