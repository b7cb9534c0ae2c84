# SPDX-License-Identifier: Apache-2.0
"""Requests that failed without a duration stop a pipeline, as those with one do."""

from pathlib import Path

from tests.compare.command_test import tare


def folder(path: Path, rows: list[str]) -> str:
    path.mkdir()
    for run in range(6):
        (path / f"{run}.csv").write_text("\n".join(["at,took,ok", *rows, ""]))
    return str(path)


def test_failures_without_a_duration_make_runs_invalid(tmp_path: Path) -> None:
    good = [f"{1_700_000_000 + second},{5 + second % 3},true" for second in range(20)]
    failed = [f"{1_700_000_100 + second},,false" for second in range(20)]
    old = folder(tmp_path / "old", good)
    options = ("--columns", "start=at,duration=took,ok=ok", "--unit", "ms", "--fail-on", "invalid")
    assert tare(old, folder(tmp_path / "same", good), *options).returncode == 0
    for name, rows in (("half", good + failed), ("all", failed)):
        done = tare(old, folder(tmp_path / name, rows), *options)
        assert done.returncode == 3, done.stderr
        assert "--fail-on invalid: 'new' against 'old' is invalid" in done.stderr
