# SPDX-License-Identifier: Apache-2.0
"""curl: a page, an error of the server, a connection refused."""

from pathlib import Path

from tests.hook.hooked import hooked, plain
from tests.hook.programs.ways import RULES, free_port, need, same
from tests.hook.programs.web import PAGE, web


def test_curl(readable: Path) -> None:
    need("curl")
    port = free_port()
    with web(readable, port):
        url = f"http://127.0.0.1:{port}"
        assert same(["curl", "-sS", f"{url}/page"], readable).out == PAGE
        assert same(["curl", "-sSf", f"{url}/absent"], readable).code == 22
    # Nothing is sent or received. Its message says how many milliseconds it took.
    refused = ["curl", "-s", f"http://127.0.0.1:{port}"]
    expected = plain(refused, readable)
    assert expected.code == 7
    assert hooked(refused, readable, RULES).behaviour == expected
