# SPDX-License-Identifier: Apache-2.0
"""The tail of nginx behind haproxy: alone, beside a CPU hog, and with a layer that is one.

A hog on the core of a closed loop stalls whatever runs there, per second and not per request: the
slower condition has more stalls per request. Either the undisturbed requests give p99 as on the
quiet machine, or p99 is inconclusive. A layer whose own process burns the core is no neighbour.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, median

from bench.results import ROOT, renew
from tests.soak.suite import busy

from tare.samples import read_result

PLAN = ROOT / "plans" / "null-nginx.toml"
PROXY = '{ type = "proxy", program = "haproxy" }'
NEAR = 0.25
"""How far a p99 beside the hog may be from that of the quiet machine."""
WANTED = 0.9
"""Share of experiments in which the burning layer is `slower` at p99."""
BURN = """\
import time
while True:
    end = time.monotonic() + 0.005
    while time.monotonic() < end: pass
    time.sleep(0.005)
"""
BURNER = '{ type = "wrap", command = ["sh", "{plan}/burn.sh"] }'
LAYERS = {"quiet": PROXY, "hog": PROXY, "burner": BURNER}


@dataclass(frozen=True)
class Try:
    """What one experiment says of p99."""

    series: str
    verdict: str
    relative: float | None
    left_out: float

    @property
    def row(self) -> str:
        effect = "-" if self.relative is None else f"{self.relative:+.0%}"
        return f"| {self.series} | {self.verdict} | {effect} | {self.left_out:.0%} |"


def run(tries: int) -> None:
    """Runs the three series in turns and renews their section; SystemExit if one is wrong."""
    folder = ROOT / "results" / f"hog-{datetime.now():%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    (folder / "burn.py").write_text(BURN)
    (folder / "burn.sh").write_text(f'{sys.executable} {folder}/burn.py &\nexec "$@"\n')
    done = []
    for number in range(1, tries + 1):
        for series in LAYERS:
            done.append(_try(series, number, folder))
            print(done[-1].row, flush=True)
    wrong = faults(done)
    lines = [
        "| series | verdict on p99 | effect | slices left out |",
        "|---|---|---|---|",
        *(outcome.row for outcome in done),
        "",
        f"Wrong: {'; '.join(wrong) or 'nothing'}.",
    ]
    title = "A CPU hog beside nginx and haproxy"
    renew("hog", title, f"python -m tests.soak hog --hogs {tries}", "\n".join(lines))
    if wrong:
        raise SystemExit(f"hog: {'; '.join(wrong)}")


def _try(series: str, number: int, folder: Path) -> Try:
    out, plan = folder / f"{series}-{number}", folder / f"{series}.toml"
    text = PLAN.read_text().replace('duration = "3s"', 'duration = "2s"')
    text = text.replace('name = "two"', f'name = "two"\nlayers = [{LAYERS[series]}]')
    if series == "burner":
        # Of services that are up together each would burn under the load of the others, too.
        text = text.replace("blocks = 8", 'blocks = 8\ndesign = "blocks"')
    plan.write_text(text)
    command = [sys.executable, "-m", "tare", "run", str(plan), "--json"]
    command += ["--seed", str(1000 + number), "--out", str(out)]
    core = max(os.sched_getaffinity(0))  # where `tare run` puts a closed loop of one user
    with busy(1, core) if series == "hog" else nullcontext():
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    (p99,) = (
        comparison
        for comparison in json.loads(printed)["comparisons"]
        if comparison["metric"] == "p99"
    )
    left_out = fmean(run.left_out for run in read_result(out).runs)
    return Try(series, p99["verdict"], p99["effect"]["relative"], left_out)


def faults(done: Sequence[Try]) -> list[str]:
    """What is not as wanted."""
    by_series = {
        series: [outcome for outcome in done if outcome.series == series] for series in LAYERS
    }
    found = [
        f"quiet is {outcome.verdict}"
        for outcome in by_series["quiet"]
        if outcome.verdict != "slower"
    ]
    quiet = median(1 + (outcome.relative or 0.0) for outcome in by_series["quiet"])
    found += [
        f"beside the hog {outcome.verdict} by {outcome.relative:+.0%}"
        for outcome in by_series["hog"]
        if outcome.verdict != "inconclusive"
        and abs((1 + (outcome.relative or 0.0)) / quiet - 1) > NEAR
    ]
    burner = by_series["burner"]
    slower = sum(outcome.verdict == "slower" for outcome in burner)
    if slower < WANTED * len(burner):
        found.append(f"the burning layer is slower in {slower} of {len(burner)}")
    return found
