# SPDX-License-Identifier: Apache-2.0
"""A body that the server compressed is passed through as it came."""

import gzip
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.load.conftest import Measure, free_ports, serving

TEXT = b"the same line again\n" * 500


@pytest.mark.parametrize("users", ["1", "3"])
def test_a_compressed_body_is_compared_and_counted_as_it_came(
    tmp_path: Path, measure: Measure, users: str
) -> None:
    folder = tmp_path / "nginx"
    folder.mkdir()
    (folder / "text").write_bytes(TEXT)
    ports = free_ports()
    servers = (
        f"server {{ listen 127.0.0.1:{port}; gzip on; gzip_types *; root .; }}" for port in ports
    )
    with contextmanager(serving)(folder, ports, *servers) as nginx:
        url = nginx.url() + "text"
        _check(url, tmp_path, measure, users)


def _check(url: str, tmp_path: Path, measure: Measure, users: str) -> None:
    header = {"Accept-Encoding": "gzip"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=header)) as answer:
        compressed = answer.read()
    assert gzip.decompress(compressed) == TEXT
    for name, body in (("compressed", compressed), ("plain", TEXT)):
        (tmp_path / name).write_bytes(body)

    common = ["--requests", "9", "--users", users, "--expect-body"]
    asked = ["--header", "Accept-Encoding: gzip"]
    got = measure(url, *asked, *common, str(tmp_path / "compressed"))
    assert got.summary["targets"][0]["errors_by_kind"] == {}
    assert all(len(compressed) < row["bytes"] < len(TEXT) for row in got.samples)
    plain = measure(url, *common, str(tmp_path / "plain"))
    assert plain.summary["targets"][0]["errors_by_kind"] == {}
