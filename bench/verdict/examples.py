# SPDX-License-Identifier: Apache-2.0
"""An example of each hard case as files of `tare compare`: python -m bench.verdict.examples"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from bench.hard.hard_cases import MILLISECOND, HardCase, Side
from bench.results import renew

from tare.stats.arrays import Array

SEED = 20261125
NEW, OLD = "new", "old"
PAIRED = ("--paired",)
Files = Mapping[str, Sequence[str]]
"""The content of each file, by condition."""


@dataclass(frozen=True)
class Example:
    """Files of known truth, and how they are compared."""

    what: str
    files: Files
    options: tuple[str, ...]


def examples() -> Iterator[Example]:
    """One or more of each hard case; docs/internals/verdict-proof.md has their verdicts."""
    lengths = Side(1_000, warm_up=400), Side(4_000, warm_up=400)
    yield _drawn("runs of 1,000 and 4,000 requests warming up over 400, no difference", *lengths)
    slower = Side(950, warm_up=150), Side(3_800, 1.1, warm_up=150)
    yield _drawn("runs of 950 and 3,800 requests warming up over 150, +10 %", *slower)
    yield _drawn("2 % of requests take 4 times as long", Side(), Side(tail=(0.02, 4.0)))
    whole = Side(step_ns=MILLISECOND), Side(slower=1.3, step_ns=MILLISECOND)
    yield _drawn("medians of 3 ms in whole ms, +30 %", *whole, typical_ns=3e6)
    rounding = _drawn("one file of 16 in whole ms, no difference", Side(), Side(), typical_ns=3e6)
    rounded = "\n".join(f"{float(value):.0f}" for value in rounding.files[OLD][0].split()[1:])
    files = {OLD: [f"latency_ms\n{rounded}\n", *rounding.files[OLD][1:]], NEW: rounding.files[NEW]}
    yield Example(rounding.what, files, PAIRED)
    third = Side(2_000, warm_up=2_000 / 9), Side(1_000, 2.0, warm_up=2_000 / 9)
    yield _drawn("a warm-up of a third of the run, +100 %", *third)
    yield _drawn("2,000 times as slow, units stated", Side(), Side(slower=2_000))
    runs = _latencies(Side(), Side(slower=1_000))
    unstated = {name: [_file(run, "latency") for run in side] for name, side in runs.items()}
    yield Example("the same files in ms and in us, no unit stated", unstated, PAIRED)
    yield _family()
    yield _drawn(
        "p99 of runs of 300 and 5,000 requests, no difference",
        Side(300),
        Side(5_000),
        options=(*PAIRED, "--primary", "p99"),
    )
    yield _drawn("+2 %, how many runs would tell", Side(), Side(slower=1.02))
    some = _drawn("one empty file of 8, +10 %", Side(), Side(slower=1.1))
    yield Example(some.what, {OLD: some.files[OLD], NEW: ["", *some.files[NEW][1:]]}, PAIRED)


def _drawn(
    what: str,
    base: Side,
    condition: Side,
    *,
    typical_ns: float = 1e6,
    options: tuple[str, ...] = PAIRED,
) -> Example:
    runs = _latencies(base, condition, typical_ns)
    files = {name: [_file(run) for run in side] for name, side in runs.items()}
    return Example(what, files, options)


def _latencies(base: Side, condition: Side, typical_ns: float = 1e6) -> dict[str, list[Array]]:
    case = HardCase("", base, condition, typical_ns=typical_ns)
    found = case.latencies((base, condition), np.random.default_rng(SEED))
    return dict(zip((OLD, NEW), found, strict=True))


def _family() -> Example:
    """Three conditions, each of which is slower, in the fewest blocks that decide anything."""
    generator = np.random.default_rng(SEED)
    files = {
        name: [
            _file(1e6 * factor * np.exp(generator.normal(generator.normal(0, 0.02), 0.1, 1_000)))
            for _ in range(6)
        ]
        for name, factor in ((OLD, 1.0), ("a", 3.95), ("b", 3.95), ("c", 3.95))
    }
    return Example("three conditions, six blocks, +295 %", files, PAIRED)


def _file(latencies: Array, column: str = "latency_ms") -> str:
    """In ms, exact to the ns; whole ms as such."""
    digits = 0 if np.all(latencies % MILLISECOND == 0) else 6
    return f"{column}\n" + "\n".join(f"{latency / 1e6:.{digits}f}" for latency in latencies) + "\n"


def compared(example: Example, folder: Path) -> list[dict[str, Any]]:
    """The primary comparisons of `tare compare --json` on the files, which go to `folder`."""
    named = []
    for condition, files in example.files.items():
        paths = [folder / f"{condition}{number}.csv" for number in range(len(files))]
        for path, text in zip(paths, files, strict=True):
            path.write_text(text)
        named.append(f"{condition}={','.join(map(str, paths))}")
    baseline, *others = named
    command = [sys.executable, "-m", "tare", "compare", "--baseline", baseline, *others, "--json"]
    done = subprocess.run([*command, *example.options], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)["comparisons"]
    return [comparison for comparison in found if comparison["role"] == "primary"]


def table() -> str:
    """What `tare compare` says of every example, as Markdown."""
    lines = [
        "Files of eight blocks (`bench/verdict/examples.py`), one seed, runs that"
        " scatter by 2 % and requests by 10 %, budget 3 %.",
        "",
        "| simulated | condition | verdict | reason |",
        "|---|---|---|---|",
    ]
    for example in examples():
        with TemporaryDirectory() as folder:
            for comparison in compared(example, Path(folder)):
                reason = comparison["reason"].replace("|", "\\|")
                verdict = f"{comparison['condition']} | `{comparison['verdict']}`"
                lines.append(f"| {example.what} | {verdict} | {reason} |")
    return "\n".join(lines)


if __name__ == "__main__":
    from bench.verdict.measure import PROOF

    renew("examples", "Examples", "python -m bench.verdict.examples", table(), PROOF)
