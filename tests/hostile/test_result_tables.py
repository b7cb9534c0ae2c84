# SPDX-License-Identifier: Apache-2.0
"""Result folders of strangers: tables with other values, and with very many runs."""

import sys
from contextlib import chdir
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hostile.results import COMMANDS, any_command, read, restore, run, write
from tests.in_process import tare

import tare as package
from tare.samples import read_result

TARE = str(Path(package.__file__).parent)
COLUMNS = {
    "samples": ("duration_ns", "start_ns", "intended_ns", "slice", "ok", "span", "seq"),
    "machine": ("slice", "duration_ns", "subject", "metric", "value"),
}


def repeat(result: Path, first: dict[str, Any], run: int, block: int) -> dict[str, Any]:
    """The entry of a valid run that is like another, but for its number and block; its samples are
    there."""
    samples = result / "samples" / f"condition={first['condition']}"
    table = pq.ParquetFile(samples / f"block=1/run={first['run']}/samples.parquet").read()
    for name, number in (("run", run), ("block", block)):
        place = table.schema.get_field_index(name)
        column = pa.repeat(pa.scalar(number, pa.int32()), table.num_rows)
        table = table.set_column(place, name, column)
    folder = samples / f"block={block}" / f"run={run}"
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "samples.parquet")
    return {**first, "run": run, "block": block}


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize(("kind", "runs"), [("lost", 198), ("valid", 24), ("both", 36)])
def test_many_runs_are_read_in_steps_that_grow_as_they_do(
    kind: str, runs: int, command: str, finished: Path, box: Path
) -> None:
    result = box / "result"
    whole = read(result / "manifest.json")
    run(box, command)  # imports what it needs
    repeated = whole["runs"]

    def calls(blocks: int) -> int:
        number = 0

        def count(frame: FrameType, *_: object) -> Any:
            """Calls of functions, and lines of Tare's own: a comprehension is one call."""
            nonlocal number
            number += 1
            return count if frame.f_code.co_filename.startswith(TARE) else None

        restore(finished, box)
        more: list[dict[str, Any]] = []
        for block in range(2, blocks + 2):
            is_lost = kind == "lost" or (kind == "both" and block % 2)
            for first in repeated:
                place = len(repeated) + len(more) + 1, block
                lost = {**first, "run": place[0], "block": block, "valid": False, "reason": "lost"}
                more.append(lost if is_lost else repeat(result, first, *place))
        write(result / "manifest.json", {**whole, "runs": [*repeated, *more]})
        with chdir(box):
            before = sys.gettrace()
            sys.settrace(count)
            try:
                done = tare(*COMMANDS[command])
            finally:
                sys.settrace(before)
        assert done.returncode == 0, done.stderr
        counted = len(repeated) + sum(run["valid"] for run in more)
        assert sum(run.valid for run in read_result(result).runs) == counted
        return number

    few, some, many = (calls(times * runs // len(repeated)) for times in (0, 1, 5))
    # Five times as many runs: 25 times as many steps if these grew as the square. Statistics of
    # more runs take other ways.
    assert 3 < (many - few) / (some - few) < 7


@pytest.mark.exhaustive
@pytest.mark.parametrize("values", ["absent", "text", -1, 2**62, None, float("nan")])
@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in COLUMNS for column in COLUMNS[table]]
)
def test_every_column_may_have_other_values(
    table: str, column: str, values: object, box: Path
) -> None:
    (file,) = (box / "result" / table / "condition=two").glob("*/*/*.parquet")
    rows = pq.ParquetFile(file).read()
    rows = rows.select([name for name in rows.column_names if name != column])
    if values != "absent":
        rows = rows.append_column(column, pa.array([values] * rows.num_rows))
    pq.write_table(rows, file)
    run(box, any_command(table, column, values) if values == 2**62 else "compare")
