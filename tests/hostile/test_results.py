# SPDX-License-Identifier: Apache-2.0
"""Result folders of strangers: every value of their files is replaced, and no command is misled."""

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from tests.in_process import Done, tare
from tests.once import once

import tare as package
from tare.errors import InputError
from tare.report.result.verdicts import read_verdicts
from tare.samples import read_result
from tare.samples.manifest import read_manifest

PLAN = """
name = "hostile"
budget = "3%"
blocks = 1
smoke = true
seed = 1
[service]
command = "PYTHON -I -m http.server --bind {address} {port}"
ready = { http = "/" }
[load]
duration = "100ms"
warmup = "0s"
[[conditions]]
name = "one"
[[conditions]]
name = "two"
layers = [{ type = "env", variables = { A = "1" } }]
""".replace("PYTHON", sys.executable)
# What a short experiment does not have.
MORE: dict[str, dict[str, Any]] = {
    "manifest.json": {
        "limits": [
            {
                "environment": "host",
                "span": "request",
                "statistic": "p50",
                "undetected_ns": 300.0,
                "shares": {"0": 0.1, "50000": 1.0},
                "date": "2026-11-21",
            }
        ],
    },
    "verdicts.json": {
        "controls": [
            {
                "environment": "host",
                "runs": 6,
                "metric": "p50",
                "relative": 0.01,
                "p_adjusted": 0.5,
                "alarm": False,
            }
        ],
    },
}
COMPARED: dict[str, Any] = {
    "effect_sizes": {
        "cliffs_delta": 0.1,
        "vargha_delaney": 0.5,
        "hodges_lehmann": 0.01,
        "low": -0.1,
        "high": 0.1,
        "level": 0.95,
    },
    "shape": {
        "ks_p": 0.5,
        "ad_p": 0.5,
        "p_adjusted": 0.5,
        "shift": [{"q": 0.5, "relative": 0.01, "low": -0.1, "high": 0.1, "threshold": 0.03}],
        "pages": [{"requests": 10, "baseline": 0.1, "condition": 0.2}],
        "apart": [{"statistic": "ks", "within": 0.1, "between": 0.2}],
    },
    "warm_up_cuts": [
        {"name": "half", "verdict": "unchanged", "relative": 0.01, "low": -0.1, "high": 0.1}
    ],
}
VALUES: dict[str, Any] = {
    "nan": float("nan"),
    "infinite": float("-inf"),
    "negative": -1,
    "large": 1e308,
    "beyond 64 bits": 10**30,
    "empty": "",
    "parent": "../../x",
    "absolute": "/etc",
    "null": None,
    "list": [],
    "table": {},
    "long": "x" * 100_000,
    "equals": "a=b",
    "escape": "\x1b[31m",
    "surrogate": "\udcff",
}
COMMANDS = {
    "compare": ("compare", "result"),
    "report": ("report", "result"),
    "resume": ("run", "plan.toml", "--resume", "result"),
}
DRY_RUN = ("run", "plan.toml", "--dry-run")
STRUCTURE = {
    "alpha", "baseline", "block", "blocks", "budget", "condition", "control", "design",
    "environment", "experiment", "format", "metric", "name", "primary", "run", "seed", "span",
    "valid", "verdict",
}  # fmt: skip
"""Keys of values that decide what is read, compared or carried out."""
HELD = ("machine", "placement")
"""What has to be the same for an experiment to be resumed."""
TARE = str(Path(package.__file__).parent)
Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def finished() -> Path:
    """A folder with a plan and its finished result, in which every kind of value occurs."""
    return once("finished", finish, __name__)


def finish(folder: Path) -> None:
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN)
    with chdir(folder):
        done = tare("run", "plan.toml", "--out", "result")
    assert done.returncode == 0, done.stderr
    for name, more in MORE.items():
        content = json.loads((folder / "result" / name).read_text()) | more
        if "comparisons" in content:
            content["comparisons"][0] |= COMPARED
        (folder / "result" / name).write_text(json.dumps(content))


@pytest.fixture
def box(finished: Path, tmp_path: Path) -> Path:
    """A folder for copies of it, two below one in which nothing else may change."""
    box = tmp_path / "a" / "b"
    box.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", box):
        (folder / "x").mkdir()
        (folder / "x" / "kept").write_text("years")
    shutil.copy(finished / "plan.toml", box)
    restore(finished, box)
    return box


def restore(finished: Path, box: Path) -> None:
    shutil.rmtree(box / "result", ignore_errors=True)
    shutil.copytree(finished / "result", box / "result")


def read(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def write(path: Path, changed: Any) -> None:
    path.write_text(tomli_w.dumps(changed) if path.suffix == ".toml" else json.dumps(changed))


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Of every table, list and value in it; of a list's elements the first stands for all."""
    inner: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = list(enumerate(value))[:1]
    for key, part in inner:
        yield (*at, key)
        yield from places(part, (*at, key))


def replaced(value: Any, at: Place, new: object) -> Any:
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], new)
    return copy


def outside(box: Path) -> dict[Path, bytes]:
    """All files but those of the result."""
    files = [path for path in box.parents[1].rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if box / "result" not in path.parents}


def run(box: Path, command: str) -> Done:
    """Carries a command out, which may fail in one line, and changes nothing else."""
    before = outside(box)
    with chdir(box):
        done = tare(*COMMANDS.get(command, DRY_RUN))
    assert done.returncode in (0, 1, 2, 3), done.stderr
    # Other lines tell of progress.
    complaints = [line for line in done.stderr.splitlines() if line.startswith("tare: ")]
    assert len(complaints) == (done.returncode != 0), done.stderr
    assert "Traceback" not in done.stderr
    assert not {"\x1b", "\udcff"} & {*done.stdout, *done.stderr}
    assert outside(box) == before
    return done


def any_command(*of: object) -> str:
    """Always the same for the same thing."""
    return [*COMMANDS][_number(*of) % len(COMMANDS)]


def _number(*of: object) -> int:
    return crc32(repr(of).encode())


def is_refused(folder: Path, name: str) -> bool:
    """Whether who reads a file refuses it, in one short line."""
    try:
        (read_manifest if name == "manifest.json" else read_verdicts)(folder)
    except InputError as error:
        text = str(error)
    else:
        return False
    assert "\n" not in text
    assert len(text) < 1_000
    return True


@pytest.mark.exhaustive
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["manifest.json", "verdicts.json"])
def test_every_value_may_be_another(name: str, value: str, finished: Path, box: Path) -> None:
    """Each is refused or accepted by itself; descriptions that are accepted, then all at once."""
    path = box / "result" / name
    whole = together = read(path)
    for at in reversed([*places(whole)]):  # tables after what is in them
        changed = replaced(whole, at, VALUES[value])
        write(path, changed)
        if is_refused(box / "result", name):
            continue
        if at[-1] in STRUCTURE:
            # A command takes half a second: of the values of one place, every other one is tried.
            if _number(value, at) % 2:
                restore(finished, box)
                write(path, changed)
                command = any_command(at, value) if name == "manifest.json" else "report"
                # The report has a command of its own.
                with patch("tare.report.write") if command == "resume" else nullcontext():
                    run(box, command)
        else:
            together = replaced(together, at, VALUES[value])
    for command in COMMANDS if name == "manifest.json" else ("report",):
        held = {key: whole[key] for key in HELD} if command == "resume" else {}
        restore(finished, box)
        write(path, together | held)
        run(box, command)


@pytest.mark.exhaustive
@pytest.mark.parametrize("value", sorted({*VALUES} - {"null", "surrogate"}))
def test_every_value_of_a_plan_may_be_another(value: str, finished: Path, box: Path) -> None:
    whole = read(box / "plan.toml")
    for at in places(whole):
        for file, command in (("plan.toml", "dry run"), ("result/plan.toml", "resume")):
            write(box / file, replaced(whole, at, VALUES[value]))
            run(box, command)
            shutil.copy(finished / file, box / file)


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["manifest.json", "verdicts.json", "plan.toml"])
def test_deep_and_large_files_are_refused(name: str, command: str, box: Path) -> None:
    path = box / "result" / name
    read_by = {"manifest.json": {*COMMANDS}, "verdicts.json": {"report"}, "plan.toml": {"resume"}}
    expected = 2 if command in read_by[name] else 0
    for text in (
        "[" * 100_000,
        f"a = {'[' * 100_000}",
        f"{'.'.join(['a'] * 100_000)} = 1",
        '{"a":' * 500 + "1" + "}" * 500,
    ):
        path.write_text(text)
        assert run(box, command).returncode == expected
    with path.open("wb") as file:
        file.truncate(1 << 30)
    assert run(box, command).returncode == expected
    path.unlink()
    os.mkfifo(path)
    assert run(box, command).returncode == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "verdicts.json",
        "plan.toml",
        "report.html",
        "supervisor.log",
        "logs",
        "logs/block=1",
        "logs/block=1/one.log",
        "work",
        "samples",
        "samples/condition=one",
        "samples/condition=one/block=1",
        "machine",
        "costs",
        "histograms",
    ],
)
def test_links_that_lead_outside_change_nothing_there(name: str, command: str, box: Path) -> None:
    """The first run is to be carried out once more, and all verdicts are new."""
    result, target = box / "result", box / "target"
    manifest = read(result / "manifest.json")
    write(result / "manifest.json", manifest | {"runs": manifest["runs"][1:]})
    path = result / name
    if path.exists():
        path.rename(target)
    elif "." in name:
        target.write_text("years")
    else:
        target.mkdir()
    path.symlink_to(target)
    if name == "plan.toml":
        target.write_text(f"{target.read_text()}# secret")
    run(box, command)
    report = result / "report.html"
    assert "# secret" not in report.read_text()


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


COLUMNS = {
    "samples": ("duration_ns", "start_ns", "intended_ns", "slice", "ok", "span", "seq"),
    "machine": ("slice", "duration_ns", "subject", "metric", "value"),
}


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
