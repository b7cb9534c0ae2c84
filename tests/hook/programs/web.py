# SPDX-License-Identifier: Apache-2.0
"""An nginx and what it serves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hook.programs.ways import Wrap, need, serving

PAGE = "".join(f"line {number} of the page\n" for number in range(20_000))


@contextmanager
def web(folder: Path, port: int, wrap: Wrap = lambda command: command) -> Iterator[None]:
    """An nginx, its master and its workers, that serves `folder`, and a page in it."""
    need("nginx")
    folder.joinpath("page").write_text(PAGE)
    # Workers drop to another user; the memory that they inherited is still theirs.
    user = "user nobody nogroup;" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    folder.joinpath("nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; worker_processes 2; {user} error_log stderr;"
        f"events {{}} http {{ access_log off; sendfile off; {temporary}"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}"
    )
    with serving(wrap(["nginx", "-p", folder, "-c", "nginx.conf", "-e", "stderr"]), port):
        yield
