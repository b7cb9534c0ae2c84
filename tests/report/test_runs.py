# SPDX-License-Identifier: Apache-2.0
"""The runs of a report: the control's too, and enough of each to compute every effect again."""

import re
from math import expm1, log
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.report.page import Page
from tests.report.synthetic import Synthetic

from tare.report import MARKDOWN, write
from tare.report.result.result import Result, read
from tare.report.sections import run_table

UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6}
CONTROL = "plain~again"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The first and the last run of the control are invalid, and none else."""
    folder = tmp_path_factory.mktemp("runs") / "result"
    made_up = Synthetic(requests=1_000, blocks=9, control=True, warm_up=0.2, invalid=())
    made_up.write(folder)
    again = [run.run for run in read(folder).runs if run.condition == CONTROL]
    (folder / "verdicts.json").unlink()
    made_up.invalid = again[0], again[-1]
    made_up.write(folder)
    write(folder)
    return read(folder)


def test_invalid_runs_of_the_control_are_shown(judged: Result) -> None:
    page = Page((judged.folder / "report.html").read_text())
    text = "".join(page.text)
    markdown = (judged.folder / MARKDOWN).read_text()
    reason = re.escape(Synthetic().reason)
    assert len(re.findall(rf"Run \d+, block \d, control: {reason}", text)) == 2
    assert len(re.findall(rf"Run \d+, block \d, control: invalid, {reason}", markdown)) == 2
    for said in (text, markdown):
        assert "All runs are valid" not in said
        assert CONTROL not in said
    assert "36\u00a0runs" in page.text


@pytest.mark.parametrize("metric", ["p50", "p95", "p99", "mean", "cpu_service"])
def test_every_effect_can_be_computed_again(judged: Result, metric: str) -> None:
    """To a hundredth of a percent, from what a reader sees."""
    at = run_table.COLUMNS.index("service CPU" if metric == "cpu_service" else metric)
    shown, more = run_table.rows(judged)
    assert more == 0
    blocks: dict[str, dict[str, float]] = {}
    for row in shown:
        if row.valid:
            number, unit = row.cells[at].split("\u00a0")
            blocks.setdefault(row.cells[2], {})[row.cells[1]] = float(number) * UNITS[unit]
    assert {name: len(runs) for name, runs in blocks.items()} == {
        "plain": 9,
        "hook": 9,
        "twin": 9,
        "control": 7,
    }
    base = blocks["plain"]
    found = {
        name: expm1(mean(log(runs[block] / base[block]) for block in runs))
        for name, runs in blocks.items()
    }
    for comparison in judged.comparisons:
        if comparison.metric == metric:
            assert found[comparison.condition] == pytest.approx(
                comparison.effect.relative, abs=1e-4
            )
    (control,) = judged.controls
    if control.metric == metric:
        assert found["control"] == pytest.approx(control.relative, abs=1e-4)


def test_markdown_has_every_run(judged: Result) -> None:
    markdown = (judged.folder / MARKDOWN).read_text()
    table = markdown.split("\n## All runs\n")[1].split("\n## ")[0]
    shown, _ = run_table.rows(judged)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line[:3] != "|--"]
    numbers = [row[0] for row in rows if len(row) == len(run_table.COLUMNS)]
    assert numbers == ["run", *(row.cells[0] for row in shown)]


def test_each_span_has_a_row_and_what_the_judge_found_is_invalid(tmp_path: Path) -> None:
    Synthetic(requests=400, blocks=6, invalid=(), spans={"pay": 0.5}).write(tmp_path)
    path = next(tmp_path.glob("samples/*/*/run=3/*.parquet"))
    table = pq.ParquetFile(path).read()
    pq.write_table(table.filter(pc.not_equal(table["span"].cast(pa.string()), "pay")), path)
    result = read(tmp_path)
    shown, _ = run_table.rows(result)
    assert len(shown) == 2 * len(result.runs)
    (without,) = (row for row in shown if not row.valid)
    assert "has no 'pay'" in without.reason
    write(tmp_path)
    assert "has no 'pay'" in "".join(Page((tmp_path / "report.html").read_text()).text)


def test_how_each_run_went_is_shown(judged: Result) -> None:
    rows, _ = run_table.rows(judged)
    at = run_table.COLUMNS.index("how it went")
    told = {int(row.cells[0]): row.cells[at] for row in rows if row.valid}
    assert told == {run: judged.looks.kind((run, "request")) for run in told}
    assert {"flat", "warm-up"} <= set(told.values())
    assert {row.cells[at] for row in rows if not row.valid} == {"–"}
