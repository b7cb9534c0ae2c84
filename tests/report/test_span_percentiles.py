# SPDX-License-Identifier: Apache-2.0
"""What the report shows of each span's percentiles, beside the published analysis of them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic
from tests.report.test_evidence import as_said, labels, rows

from tare.report.page.page import write
from tare.report.typesetting import duration, typeset
from tare.samples.read.latencies import latencies
from tare.stats.best_fit import best_fit

pytestmark = pytest.mark.usefixtures("one_layout")
SECTION = "Percentiles of spans"
EFFECTS = {"old": 0.0, "new": 0.1, "same": 0.0}


def test_each_span_has_the_runs_of_the_published_algorithm(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    made_up = Synthetic(effects=EFFECTS, requests=500, blocks=9, spans={"pay": 0.5}, control=True)
    _, page = written(made_up, folder)
    found = rows(folder, SECTION)
    wanted = []
    for place in (("host", "request"), ("host", "pay")):
        runs = latencies(folder)[place]
        of = {
            name: [run for (condition, _), run in sorted(runs.items()) if condition == name]
            for name in EFFECTS
        }
        for name in EFFECTS:
            best = best_fit(of["old"], of[name])
            assert best is not None
            values = [duration(pair[1]).replace("\u00a0", " ") for pair in best.percentiles]
            apart = (best.anderson_darling, best.kolmogorov_smirnov)
            said = (
                ["–", "–"] if name == "old" else [typeset(as_said(distance)) for distance in apart]
            )
            wanted.append([f"{name}, {place[1]}", *values, *said])
    assert [[row[0], *row[3:]] for row in found] == wanted
    assert [row[1] for row in found] == ["–", "slower", "unchanged"] * 2
    (drawn,) = labels(page, "Latency of")
    assert drawn.startswith("Latency of pay by percentile")


def test_requests_without_spans_have_no_such_section(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    written(Synthetic(requests=200, blocks=2), folder)
    assert rows(folder, SECTION) == []


def test_a_run_with_too_few_requests_is_not_the_best(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    made_up = Synthetic(effects=EFFECTS, requests=200, blocks=3, spans={"pay": 0.5}, invalid=())
    made_up.write(folder)
    file = next(folder.glob("samples/*/*/run=1/samples.parquet"))
    table = pq.ParquetFile(file).read()
    pq.write_table(table.slice(0, 2), file)
    write(folder)
    found = rows(folder, SECTION)
    assert len(found) == 2 * len(EFFECTS)
    assert "1" not in [row[2] for row in found]
