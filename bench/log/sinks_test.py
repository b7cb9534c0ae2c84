# SPDX-License-Identifier: Apache-2.0
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench.log import sinks


@pytest.mark.parametrize("chunk", [5, 6, 7, 1 << 20])
def test_text_is_counted_once_wherever_a_chunk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(sinks, "CHUNK", chunk)
    (tmp_path / "a.dat").write_bytes(b"x.call(1)\n" * 9 + b".cal")
    (tmp_path / "b.txt").write_bytes(b".call(")
    with sinks.lines_with(b".call(", "*.dat")(sinks.Program(tmp_path, Path("java"))) as sink:
        assert sink.found(0) == 9


def test_records_that_were_never_written_are_not_counted(tmp_path: Path) -> None:
    records = np.zeros((5, 5), "<i8")
    records[:3] = [10, 1_700_000_000, 5, 7, 0]
    packed = pa.compress(records.tobytes(), "zstd", asbytes=True)
    block = struct.pack("<i", len(packed)) + packed
    (tmp_path / "in.zstd").write_bytes(block * 2)
    with sinks.compressed_blocks(sinks.Program(tmp_path, Path("java"))) as sink:
        assert sink.found(0) == 6
