# SPDX-License-Identifier: Apache-2.0
"""What handlers have kept back or left out, and payloads that are long or no texts, in files of
other formats."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.log.conftest import TARE_LOG, dump, ran
from tests.log.test_export import is_babeltraced

LATIN = b"caf\xe9"
LOST = LATIN.decode(errors="replace")


def logged(folder: Path, program: str) -> Path:
    """The file of a program in Python."""
    script, file = folder / "program.py", folder / "events.log"
    script.write_text(f"from tare.log import Channel, Span\n{program}")
    assert ran(file, Path(sys.executable), script)["lost"] == 0
    return file


def exported(file: Path, to: str) -> tuple[Path, str]:
    """The result, and what is said."""
    out = file.with_suffix(f".{to}")
    command = [TARE_LOG, "export", str(file), "--to", to, "--out", str(out), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return out, done.stderr


def table(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(exported(file, "parquet")[0]).to_pylist()
    return rows


def test_times_that_fall_back_are_not_changed(tmp_path: Path) -> None:
    """A median stands behind what was logged after it, and so does the last event of a closed
    channel."""
    file = logged(
        tmp_path,
        """
last, middle = Channel("last", handler="first-last"), Channel("middle", handler="median", a=101)
every = Channel("every", policy="wait")
for number in range(2_000):
    for channel in (last, middle, every):
        if channel is not last or number < 10:
            channel.log(number)
last.close()
every.bytes(b"end")
""",
    )
    rows = dump(file)
    times = [row.time_ns for row in rows]
    assert sum(earlier > later for earlier, later in pairwise(times)) == 20
    is_babeltraced(exported(file, "ctf")[0], rows)


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [
        ("downsample", "downsample", "downsample"),
        ("buffered", "x-of-y", "x-of-y"),
        ("id", "buffered", "id"),
        ("id", "id", None),
        ("buffered", "fox-start", None),
    ],
)
def test_channels_that_are_not_whole_are_no_pair(
    begin: str, end: str, why: str | None, tmp_path: Path
) -> None:
    file = logged(
        tmp_path,
        f"""
begin, end = Channel("work>", handler={begin!r}), Channel("work<", handler={end!r})
for number in range(20):
    begin.log(number)
    if number % 3:
        end.log(number)
begin.close()
end.close()
""",
    )
    _, told = exported(file, "chrome")
    stats = [TARE_LOG, "stats", "--json", str(file)]
    done = subprocess.run(stats, check=True, capture_output=True, text=True)
    assert done.stderr == told
    spans = {span["span"]: span["count"] for span in json.loads(done.stdout)["spans"]}
    if why is None:
        assert (spans, told) == ({"work": 13}, "")
    else:
        line = f"tare-log: no spans of work> and work< ({why}): "
        assert spans == {}
        assert told.startswith(line)
        assert told.count("\n") == 1


def test_ends_have_their_own_payload_or_none(tmp_path: Path) -> None:
    file = logged(
        tmp_path,
        f"""
begin, end = Channel("work>"), Channel("work<")
begin.log(1), end.bytes(b"done")
begin.bytes({LATIN!r}), end.bytes({LATIN!r})
begin.log(2), end.log(3)
begin.log(4)
""",
    )
    columns = ["payload", "text", "text_bytes", "end_payload", "end_text", "end_text_bytes"]
    assert [[row[name] for name in columns] for row in table(file)] == [
        [1, None, None, None, "done", None],
        [None, LOST, LATIN, None, LOST, LATIN],
        [2, None, None, 3, None, None],
        [4, None, None, None, None, None],
    ]


def test_bytes_that_are_no_text_can_be_had_back(tmp_path: Path) -> None:
    file = logged(
        tmp_path, f"some = Channel('some')\nsome.bytes({LATIN!r}), some.bytes('ü'.encode())"
    )
    command = [TARE_LOG, "dump", str(file), "--format", "jsonl"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["payload"] for line in lines] == [LOST, "ü"]
    assert [line.get("payload_hex") for line in lines] == [LATIN.hex(), None]
    assert [(row["text"], row["text_bytes"]) for row in table(file)] == [(LOST, LATIN), ("ü", None)]


def test_long_texts_are_written_before_they_fill_memory(tmp_path: Path) -> None:
    count, length = 20_000, 4096
    file = logged(
        tmp_path,
        f"""
texts = Channel("texts", policy="wait")
for number in range({count}):
    texts.bytes(number.to_bytes({length}, "big").hex().encode())
""",
    )
    metadata = pq.read_metadata(exported(file, "parquet")[0])
    assert metadata.num_rows == count
    assert metadata.num_row_groups == -(-count * length // (1 << 25))
