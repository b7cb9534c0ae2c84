# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tare.samples.formats import arrow
from tare.samples.formats.import_options import NOTHING
from tare.samples.sql.engine import connect

ROWS = 100_000


def test_file_that_its_owner_changes_while_it_is_read_is_read_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names end where numbers in the file say; truncated files that are mapped end their reader."""
    file = tmp_path / "samples.arrow"
    table = pa.table({"duration_ns": range(1, ROWS + 1), "span": ["one"] * ROWS})
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    first_read = arrow._read

    def changing(path: Path) -> tuple[pa.Table, bool]:
        read = first_read(path)
        size = path.stat().st_size
        with path.open("r+b") as same:
            same.seek(size // 2)
            same.write(b"\x7f" * (size - size // 2))
        os.truncate(path, size // 2)
        return read

    monkeypatch.setattr(arrow, "_read", changing)
    read_back = arrow.read(connect(), file, NOTHING).samples.to_pyarrow()
    assert sorted(read_back["duration_ns"].to_pylist()) == list(range(1, ROWS + 1))
    assert set(read_back["span"].to_pylist()) == {"one"}
