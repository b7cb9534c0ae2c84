# SPDX-License-Identifier: Apache-2.0
"""Result folders of strangers: every value of their files is replaced, and no command is misled."""

import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.hostile.results import COMMANDS, any_command, number, read, restore, run, write

from tare.errors import InputError
from tare.report.result.verdicts import read_verdicts
from tare.samples.manifest import read_manifest

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
STRUCTURE = {
    "alpha", "baseline", "block", "blocks", "budget", "condition", "control", "design",
    "environment", "experiment", "format", "metric", "name", "primary", "run", "seed", "span",
    "valid", "verdict",
}  # fmt: skip
"""Keys of values that decide what is read, compared or carried out."""
HELD = ("machine", "placement")
"""What has to be the same for an experiment to be resumed."""
Place = tuple[str | int, ...]


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
            if number(value, at) % 2:
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
