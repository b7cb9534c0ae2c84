# SPDX-License-Identifier: Apache-2.0
"""How often the verdict is right: twice the same nginx, and one of them 5 % slower.

The delay is really in the service: a preloaded library makes each of its reads from a socket
take DELAY_NS more, 5 % of the p50 that was measured first. Both conditions have the library.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log
from pathlib import Path
from statistics import median, stdev
from typing import Any

from bench.results import ROOT, renew

from tare.samples import Run, read_result

PLAN = ROOT / "plans" / "null-nginx.toml"
CONDITIONS = {"one", "two"}
"""Beside these a block has the control."""
DELAY = 0.05
WANTED = {"null": ("unchanged", 0.8), "delay": ("slower", 0.9)}


@dataclass(frozen=True)
class Try:
    """One experiment of a series."""

    series: str
    number: int
    seed: int
    comparison: dict[str, Any]
    block_sd: float | None
    """Standard deviation over blocks of the log difference of p50; None below two blocks."""
    left_out: float

    @property
    def row(self) -> str:
        found = self.comparison
        effect, interval = found["effect"]["relative"], found["interval"]
        numbers = (
            f"{effect:+.2%} | {interval['low']:+.2%} to {interval['high']:+.2%}"
            if effect is not None and interval["low"] is not None
            else "- | -"
        )
        spread = "-" if self.block_sd is None else f"{self.block_sd:.2%}"
        return (
            f"| {self.series} {self.number} | {found['verdict']} | {numbers} |"
            f" {spread} | {self.left_out:.0%} |"
        )


def run(tries: int) -> None:
    """Runs both series and renews their section of docs/results.md."""
    folder = ROOT / "results" / f"soak-{datetime.now():%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    done = [_try("null", number, PLAN, folder) for number in range(1, tries + 1)]
    p50s = [_p50_ns(folder / f"null-{number}") for number in range(1, tries + 1)]
    delay_ns = round(DELAY * median(p50s))
    plan = _delayed_plan(delay_ns, folder)
    done += [_try("delay", number, plan, folder) for number in range(1, tries + 1)]
    _write(done, delay_ns, tries)


def _try(series: str, number: int, plan: Path, folder: Path) -> Try:
    out, seed = folder / f"{series}-{number}", 1000 + number
    command = [sys.executable, "-m", "tare", "run", str(plan), "--json"]
    command += ["--seed", str(seed), "--out", str(out)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    comparisons = json.loads(printed)["comparisons"]
    primary = next(comparison for comparison in comparisons if comparison["metric"] == "p50")
    experiment = read_result(out)
    result = Try(
        series=series,
        number=number,
        seed=seed,
        comparison=primary,
        block_sd=block_sd(experiment.runs),
        left_out=sum(run.left_out for run in experiment.runs) / len(experiment.runs),
    )
    print(result.row, flush=True)
    return result


def _delayed_plan(delay_ns: int, folder: Path) -> Path:
    """The null plan with the library in both conditions, and the delay in the second."""
    library = folder / "delay.so"
    source = Path(__file__).with_name("delay.c")
    command = ["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    text = PLAN.read_text().replace('name = "null-nginx"', 'name = "delay-nginx"')
    for name, delay in (("one", 0), ("two", delay_ns)):
        variables = f'{{ LD_PRELOAD = "{library}", DELAY_NS = "{delay}" }}'
        layer = f'layers = [{{ type = "env", variables = {variables} }}]'
        text = text.replace(f'\nname = "{name}"\n', f'\nname = "{name}"\n{layer}\n')
    plan = folder / "delay-nginx.toml"
    plan.write_text(text)
    return plan


def _p50_ns(folder: Path) -> float:
    return median(run.summaries["p50"] for run in read_result(folder).runs if run.valid)


def block_sd(runs: Sequence[Run]) -> float | None:
    """Standard deviation of the log difference of p50 over the blocks that have both conditions."""
    blocks: dict[int, dict[str, float]] = {}
    for run in runs:
        if run.valid:
            blocks.setdefault(run.block, {})[run.condition] = run.summaries["p50"]
    whole = [p50 for p50 in blocks.values() if p50.keys() >= CONDITIONS]
    differences = [log(p50["two"] / p50["one"]) for p50 in whole]
    return stdev(differences) if len(differences) > 1 else None


def _write(done: list[Try], delay_ns: int, tries: int) -> None:
    lines = [
        "| try | verdict on p50 | effect | 95 % interval | sd between blocks | slices left out |",
        "|---|---|---|---|---|---|",
        *(outcome.row for outcome in done),
        "",
    ]
    short = []
    for series, (word, share) in WANTED.items():
        right = sum(
            outcome.series == series and outcome.comparison["verdict"] == word for outcome in done
        )
        lines.append(f"{series}: `{word}` in {right} of {tries} (wanted: {share:.0%}).")
        if right < share * tries:
            short.append(f"{series} is `{word}` in {right} of {tries} only")
    lines.append(f"Delay: {delay_ns} ns in every read of a request, {DELAY:.0%} of the p50.")
    lines.append(f"Falls short: {'; '.join(short) or 'nothing'}.")
    renew(
        "null-and-delay",
        "Null and delay: twice the same nginx, and one of them 5 % slower",
        f"python -m tests.soak verdicts --tries {tries}",
        "\n".join(lines),
    )
