# SPDX-License-Identifier: Apache-2.0
"""What machine and services did, in the report: Table 5.7 of Vinken's thesis."""

import re
from pathlib import Path
from statistics import fmean, stdev

import pyarrow.parquet as pq
import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic

from tare.report import MARKDOWN, write
from tare.report.sections.machine import MACHINE, SERVICE
from tare.report.typesetting import NO_BREAK


def table(folder: Path, heading: str) -> list[list[str]]:
    """The cells of a section's first table in the Markdown report, with its head."""
    _, _, text = (folder / MARKDOWN).read_text().partition(f"## {heading}\n")
    text, _, _ = text.partition("\n## ")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def averages(folder: Path, condition: str, subject: str, metric: str) -> list[float]:
    """The mean of the readings of each valid run, from its file."""
    found = []
    for path in sorted(folder.glob(f"machine/condition={condition}/block=*/run=*/*.parquet")):
        if path.parent.name == "run=5":  # it is invalid
            continue
        rows = [
            row["value"]
            for row in pq.ParquetFile(path).read().to_pylist()
            if (row["slice"], row["subject"], row["metric"]) == (None, subject, metric)
        ]
        found.append(fmean(rows))
    return found


@pytest.fixture(scope="module")
def in_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("machine") / "result"
    written(Synthetic(requests=400, design="blocks", readings=8, control=True), folder)
    return folder


def test_each_condition_has_mean_deviation_and_change(in_blocks: Path) -> None:
    head, *rows = table(in_blocks, "Services")
    assert head == ["metric", "plain", "hook", "twin"]
    cells = {row[0]: row[1:] for row in rows}
    plain, hook = (averages(in_blocks, name, "service", "memory") for name in ("plain", "hook"))
    texts = [
        f"{fmean(averaged) / 1e6:.1f} ± {stdev(averaged) / 1e6:.1f} MB"
        for averaged in (plain, hook)
    ]
    change = f"{100 * (fmean(hook) / fmean(plain) - 1):+.1f} %"
    assert cells["memory"][:2] == [texts[0], f"{texts[1]} ({change})"]
    plain, hook = (averages(in_blocks, name, "service", "cpu_user") for name in ("plain", "hook"))
    points = f"(+{(fmean(hook) - fmean(plain)) / 1e7:.1f} points)"
    assert cells["CPU user"][1].endswith(points)
    assert cells["throttled by a CPU quota"] == ["0 ± 0 %"] * 3


def test_the_machine_has_shares_of_all_cpus(in_blocks: Path) -> None:
    cells = {row[0]: row[1] for row in table(in_blocks, "Machine")[1:]}
    assert cells["CPU user"].startswith("20.")
    assert cells["CPU system"].startswith("10.")
    assert cells["clock offset"].startswith("−12.")
    assert "some task waits for I/O" not in cells, "what was not read has no row"
    assert set(cells) <= {metric.label for metric in MACHINE}


def figures(folder: Path, subject: str) -> list[str]:
    """The labels of the wide figures of machine or service."""
    found = re.findall(r'aria-label="([^"]*)"', (folder / "report.html").read_text())
    return [label for label in found if label.startswith(f"{subject}: ")][::2]


def test_metrics_are_drawn_over_time(in_blocks: Path) -> None:
    (machine,) = figures(in_blocks, "Machine")
    assert re.search(r"CPU user (19|20)\.\d.% to (20|21)\.\d.%", machine)
    assert "clock offset −12" in machine
    assert "network" not in machine, "what is always 0 has no panel"
    (services,) = figures(in_blocks, "Service")
    assert services.count(" to ") == 3
    html = (in_blocks / "report.html").read_text()
    assert html.count("evenly selected") == 0


def test_of_many_runs_an_even_selection_is_drawn(
    in_blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.report.sections.machine_plots.RUNS", 6)
    html = write(in_blocks).read_text()
    assert html.count(f"6{NO_BREAK}runs of 23, evenly selected.") == 2


def test_interleaved_conditions_share_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    written(Synthetic(requests=400, blocks=3, readings=2), folder)
    assert table(folder, "Machine")[0] == ["metric", "all conditions"]
    assert "(" not in "".join(cell for row in table(folder, "Machine")[1:] for cell in row)
    assert table(folder, "Services")[0] == ["metric", "plain", "hook", "twin"]


def test_environments_are_columns_and_many_have_tables_of_their_own(tmp_path: Path) -> None:
    for environments, heads in ((2, 1), (3, 3)):
        names = [f"env{number}" for number in range(environments)]
        folder = tmp_path / str(environments)
        made_up = Synthetic(
            requests=400, blocks=2, readings=2, design="blocks", environments=names, invalid=()
        )
        written(made_up, folder)
        rows = [row for row in table(folder, "Services") if row[0] == "metric"]
        assert len(rows) == heads
        assert rows[0][1:4] == [f"{name}, env0" for name in ("plain", "hook", "twin")]


def test_a_result_without_readings_says_so(tmp_path: Path) -> None:
    html, _ = written(Synthetic(requests=400, blocks=2), tmp_path / "result")
    assert "nothing was read of the machine per second" in html
    assert "Machine" not in (tmp_path / "result" / MARKDOWN).read_text().split("## ")[1:]


def test_names_of_metrics_are_unique() -> None:
    for metrics in (MACHINE, SERVICE):
        assert len({metric.label for metric in metrics}) == len({metric.name for metric in metrics})
