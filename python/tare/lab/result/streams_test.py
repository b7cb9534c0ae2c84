# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pyarrow as pa

from tare.lab.result.streams import read_stream

ROWS = pa.table({"seq": range(2)})


def write_stream(path: Path, batches: int) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, ROWS.schema) as stream:
        for _ in range(batches):
            stream.write_table(pa.concat_tables([ROWS] * 1_000).combine_chunks())


def test_a_stream_that_was_cut_short_keeps_its_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "samples.arrow"
    write_stream(path, 3)
    whole = path.read_bytes()
    table = read_stream(path)
    assert table is not None
    assert table.num_rows == 6000
    path.write_bytes(whole[: len(whole) * 5 // 6])
    cut = read_stream(path)
    assert cut is not None
    assert cut.num_rows == 4000
    assert cut.equals(table.slice(0, 4000))
    path.write_bytes(b"")
    assert read_stream(path) is None
    assert read_stream(tmp_path / "none") is None
