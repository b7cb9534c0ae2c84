# SPDX-License-Identifier: Apache-2.0
"""`tare report` as a person calls it."""

import json
from pathlib import Path

from tests import in_process
from tests.in_process import Done
from tests.report.synthetic import Synthetic


def tare(*arguments: object) -> Done:
    return in_process.tare("report", *arguments)


def test_prints_where_the_report_is(tmp_path: Path) -> None:
    folder = Synthetic(requests=50, blocks=1, invalid=()).write(tmp_path / "result")
    done = tare(str(folder))
    assert (done.returncode, done.stdout) == (0, f"{folder / 'report.html'}\n"), done.stderr
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_prints_json(tmp_path: Path) -> None:
    folder = Synthetic(requests=50, blocks=1, invalid=()).write(tmp_path / "result")
    done = tare(str(folder), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert all(Path(printed[name]).exists() for name in ("html", "markdown", "json"))
    assert {comparison["condition"] for comparison in printed["comparisons"]} == {"hook", "twin"}
    assert json.loads((folder / "verdicts.json").read_text()).items() <= printed.items()


def test_verdicts_of_another_version_are_judged_again(tmp_path: Path) -> None:
    folder = Synthetic(requests=50, blocks=1, invalid=()).write(tmp_path / "result")
    assert tare(str(folder)).returncode == 0
    file = folder / "verdicts.json"
    ours = json.loads(file.read_text())
    file.write_text(json.dumps({"judged_by": "tare 0.0.1", "comparisons": [], "warnings": []}))
    done = tare(str(folder))
    told = "judged again, because the verdicts were from tare 0.0.1"
    assert (done.returncode, done.stderr) == (0, f"{folder}: {told}\n")
    assert json.loads(file.read_text()) == ours
    assert tare(str(folder)).stderr == ""


def test_old_verdicts_remain_if_requests_are_missing(tmp_path: Path) -> None:
    folder = Synthetic(requests=50, blocks=1, invalid=()).write(tmp_path / "result")
    assert tare(str(folder)).returncode == 0
    file = folder / "verdicts.json"
    old = json.loads(file.read_text()) | {"judged_by": "tare 0.0.1"}
    file.write_text(json.dumps(old))
    next((folder / "samples").rglob("*.parquet")).unlink()
    assert tare(str(folder)).returncode == 0
    assert json.loads(file.read_text()) == old
    page = (folder / "report.html").read_text()
    assert "the verdicts are from tare 0.0.1: without all requests" in page


def test_prints_json_of_what_could_not_be_judged(tmp_path: Path) -> None:
    made_up = Synthetic(effects={"plain": 0.0}, requests=50, blocks=1, invalid=())
    folder = made_up.write(tmp_path / "result")
    done = tare(str(folder), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["comparisons"] == []
    assert "not judged: only runs of 'plain'" in printed["warnings"][-1]


def test_refuses_what_is_no_result(tmp_path: Path) -> None:
    done = tare(str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "manifest.json" in done.stderr
