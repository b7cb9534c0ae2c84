# SPDX-License-Identifier: Apache-2.0
"""What reading JSON takes."""

import gzip
import json
from pathlib import Path

import pytest

from tare.samples.formats.json_file import SMALLEST, lines, stored, whole
from tare.samples.sql.engine import connect, count_rows


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("read", [lines, whole])
@pytest.mark.parametrize("size", [150, 2 * SMALLEST])
def test_room_is_made_for_the_file_not_for_the_largest_one(
    tmp_path: Path, read: object, size: int, packed: bool
) -> None:
    assert callable(read)
    text = json.dumps({"data": "x" * size}).encode()
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    backend = connect()
    # The engine took 7.9 GiB for a file of 150 bytes.
    backend.raw_sql("SET memory_limit = '100MB'")
    assert count_rows(stored(backend, read(backend, path), path)) == 1
