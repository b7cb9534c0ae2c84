# SPDX-License-Identifier: Apache-2.0
"""What interleaving buys on a real nginx: python -m bench.verdict.slices

Three equal servers take turns of 1 ms to 10 s, for as long in all; how far apart are they found?
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from bench.plans import changed
from bench.results import ROOT, machine, renew

from tare.report.figures.canvas import LAYOUTS, Figure, Panel, svg
from tare.report.figures.marks import SERIES, Band, Line
from tare.report.figures.scales import Scale, Tick, log_scale
from tare.samples.read.result import open_result
from tare.stats.arrays import Array
from tare.stats.power import Design

PLAN = ROOT / "plans" / "null-nginx.toml"
FIGURE = ROOT / "docs" / "images" / "slices.svg"
LENGTHS = {"1ms": 1e-3, "5ms": 5e-3, "20ms": 0.02, "100ms": 0.1, "1s": 1.0, "10s": 10.0}
"""Slices in seconds; of the last a block has one for each server: runs one after the other."""
DURATION = "10s"
BLOCKS = 6
JUDGED = 8
"""Blocks of the experiment whose least detectable effect is told: those of most plans."""


@dataclass(frozen=True)
class Length:
    """What was found with slices of one length; shares."""

    name: str
    spread: float
    """Standard deviation of the difference of two equal servers' log p50 in a block."""
    spread_of_all: float
    """The same when slices that were hit are not left out."""
    left_out: float
    freedom: int
    """Degrees of freedom of `spread`."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of `spread`, by chi-squared."""
        from scipy.stats import chi2

        low, high = self.spread * np.sqrt(self.freedom / chi2.ppf((0.975, 0.025), self.freedom))
        return float(low), float(high)


def measured(blocks: int) -> list[Length]:
    """Runs an experiment for every length, and renews figure and section."""
    with TemporaryDirectory() as name:
        lengths = [_length(Path(name), length, blocks) for length in LENGTHS]
    draw(lengths, machine())
    command = f"python -m bench.verdict.slices --blocks {blocks}"
    renew("slices", "What interleaving buys", command, told(lengths, blocks))
    return lengths


def _length(folder: Path, length: str, blocks: int) -> Length:
    file, out = folder / f"{length}.toml", folder / length
    file.write_text(plan(length))
    command = [sys.executable, "-m", "tare", "run", str(file), "--out", str(out), "--json"]
    # Neither the user's history of controls nor the limits of calibrations have a part in this.
    variables = os.environ | {"XDG_STATE_HOME": str(folder)}
    subprocess.run(
        [*command, "--blocks", str(blocks)], check=True, stdout=subprocess.DEVNULL, env=variables
    )
    return _found(length, out)


def plan(length: str) -> str:
    """The null plan with slices of that length."""
    changes = {
        'slice = "5ms"': f'slice = "{length}"',
        'duration = "3s"': f'duration = "{DURATION}"',
    }
    return changed(PLAN, changes)


def _found(length: str, folder: Path) -> Length:
    result = open_result(folder)
    samples = result.samples()
    assert samples is not None
    # Every entry of a manifest has its samples here: a series with a failed run is run again.
    latency, ok, out = samples.latency_ns, samples.ok, samples.left_out
    table = samples.group_by(["condition", "block"]).aggregate(
        kept=latency.quantile(0.5, where=ok & ~out),
        every=latency.quantile(0.5, where=ok),
    )
    rows: list[dict[str, Any]] = table.order_by(["block", "condition"]).to_pyarrow().to_pylist()
    conditions = len({row["condition"] for row in rows})
    kept, every = (
        np.log([row[name] for row in rows]).reshape(-1, conditions) for name in ("kept", "every")
    )
    share = float(np.mean([*result.left_out.shares.values()]))
    return Length(length, spread(kept), spread(every), share, freedom(kept))


def spread(values: Array) -> float:
    """Of the difference of two conditions, from (blocks, conditions) without what either adds."""
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float(np.sqrt(2 * (rest**2).sum() / freedom(values)))


def freedom(values: Array) -> int:
    """Degrees of freedom of the spread of (blocks, conditions)."""
    return int((values.shape[0] - 1) * (values.shape[1] - 1))


def _mde(spread: float) -> float:
    least = Design(spread, JUDGED - 1, paired=True).detectable(JUDGED)
    assert least is not None
    return float(np.expm1(least))


def told(lengths: Sequence[Length], blocks: int) -> str:
    """The section of docs/results.md."""
    lines = [
        f"Three equal nginx, {blocks} blocks of {DURATION} a server in slices of one length."
        " Standard deviation of the difference of two servers' p50 in a block, and the least"
        f" difference that {JUDGED} such blocks find with probability 0.8; without the slices that"
        " were hit by steal or waiting, and with them. Two equal servers differ by their starts,"
        " too, which no slicing removes. [What follows](internals/run.md#designs).",
        "",
        "| slice | spread | 95 % interval | detectable | spread, all slices"
        " | detectable, all slices | left out |",
        "|---|---|---|---|---|---|---|",
    ]
    for length in lengths:
        numbers = (
            length.spread,
            _mde(length.spread),
            length.spread_of_all,
            _mde(length.spread_of_all),
        )
        first, *rest = (f"{100 * number:.2f} %" for number in numbers)
        low, high = length.interval
        cells = [length.name, first, f"{100 * low:.2f} to {100 * high:.2f} %", *rest]
        lines.append(f"| {' | '.join(cells)} | {100 * length.left_out:.0f} % |")
    return "\n".join(lines)


def draw(lengths: Sequence[Length], machine: str) -> None:
    """The figure of docs/internals/run.md; the band is the 95 % interval."""
    seconds = [LENGTHS[length.name] for length in lengths]
    out, every = [length.spread for length in lengths], [length.spread_of_all for length in lengths]
    ends = [[length.interval[side] for length in lengths] for side in (0, 1)]
    titles = ("standard deviation of the difference", f"least difference that {JUDGED} blocks find")
    kinds = ((out, SERIES[2], "hit slices left out"), (every, SERIES[1], "all slices"))
    panels = []
    conversions: list[Callable[[float], float]] = [float, _mde]
    for title, of in zip(titles, conversions, strict=True):
        shown = [of(deviation) for deviation in (*out, *every, *ends[0], *ends[1])]
        panel = Panel(
            x=Scale(
                seconds[0] / 1.3,
                seconds[-1] * 1.3,
                [Tick(at, name) for name, at in LENGTHS.items()],
                logarithmic=True,
            ),
            y=log_scale(0.8 * min(shown), 1.2 * max(shown), lambda share: f"{100 * share:g} %"),
            title=title,
            x_title="length of a slice; blue: hit slices left out, orange: all slices",
        )
        low, high = ([of(bound) for bound in end] for end in ends)
        panel.add(Band(seconds, low, high, SERIES[2], 0.18))
        for values, colour, _ in kinds:
            panel.add(Line(seconds, [of(deviation) for deviation in values], colour, dots=3))
        panels.append(panel)
    label = f"Two equal servers, {machine}: blue {kinds[0][2]}, orange {kinds[1][2]}"
    drawn = svg(Figure(panels, 300, 2), LAYOUTS[0], label)
    begin = (
        '<svg xmlns="http://www.w3.org/2000/svg" fill="#5a626c" style="--rule:#b4b9c0;'
        '--soft:#5a626c;--ink:#16191d;--page:#fff;font-family:sans-serif"'
    )
    licence = "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    title = f"<title>{escape(label)}</title>"
    FIGURE.write_text(
        f"{licence}\n{drawn.replace('<svg', begin, 1).replace('>', f'>{title}', 1)}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.verdict.slices", description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    measured(parser.parse_args().blocks)
