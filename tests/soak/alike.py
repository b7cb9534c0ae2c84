# SPDX-License-Identifier: Apache-2.0
"""Many short experiments on twice the same nginx: how often a verdict sees what is not there,
Tare's and its peers'.

What was found stays beside this file, one line an experiment; `make bench-verdict` reads it.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.plans import changed
from bench.results import ROOT, commit, renew
from bench.verdict import peers, real_peers, simulated_experiment
from bench.verdict.real import ALARMS, FOUND, Experiments, able, alarmed, alarms

from tare.stats.proportion import clopper_pearson

PLAN = ROOT / "plans" / "null-nginx.toml"
SHORTER = {
    'name = "null-nginx"': 'name = "alike-nginx"',
    "blocks = 8": "blocks = 6",
    'warmup = "500ms"': 'warmup = "200ms"',
    'duration = "3s"': 'duration = "400ms"',
}


def run(tries: int) -> None:
    """Runs the series and renews its section of docs/results.md, and the file beside this one."""
    if told := peers.absent(peers.installed()):
        print(f"peers that will not judge: {told}", file=sys.stderr)
    folder = ROOT / "results" / f"alike-{datetime.now():%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    plan = folder / "alike-nginx.toml"
    plan.write_text(changed(PLAN, SHORTER))
    done = []
    for number in range(1, tries + 1):
        done.append(_try(number, plan, folder))
        print(json.dumps(done[-1]), flush=True)
    FOUND.write_text("".join(json.dumps(experiment) + "\n" for experiment in done))
    renew(
        "alike",
        "Alike: many short experiments on twice the same nginx",
        f"python -m tests.soak alike --experiments {tries}",
        _told(done),
    )


def _try(number: int, plan: Path, folder: Path) -> dict[str, Any]:
    result = folder / str(number)
    command = [sys.executable, "-m", "tare", "run", str(plan), "--json"]
    command += ["--seed", str(number), "--out", str(result)]
    # The history of controls is the user's own; a series of the tests is no part of it.
    variables = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    out = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables
    ).stdout
    told = json.loads(out)
    primary = next(
        comparison for comparison in told["comparisons"] if comparison["role"] == "primary"
    )
    return {
        "commit": commit(),
        "date": f"{datetime.now():%Y-%m-%d}",
        "seed": number,
        "verdict": primary["verdict"],
        "effect": primary["effect"]["relative"],
        "width": simulated_experiment.width(
            primary["interval"]["low"], primary["interval"]["high"]
        ),
        "budget": primary["budget"],
        "control_alarm": any(control["alarm"] for control in told["controls"]),
        "peers": real_peers.judged(result),
    }


def _told(done: Experiments) -> str:
    words = Counter(experiment["verdict"] for experiment in done)
    low, high = clopper_pearson(alarms(done), len(done))
    controls = sum(experiment["control_alarm"] for experiment in done)
    sharp = able(done)
    unchanged = sum(experiment["verdict"] == "unchanged" for experiment in sharp)
    effects = sorted(
        abs(experiment["effect"]) for experiment in done if experiment["effect"] is not None
    )
    return "\n".join(
        [
            f"{len(done)} experiments, 6 interleaved blocks each, 400 ms a run. Verdicts: "
            + ", ".join(f"`{word}` {count}" for word, count in words.most_common())
            + ".",
            "",
            f"False alarms ({', '.join(ALARMS)}): {alarms(done)} of {len(done)}; with 95 %"
            f" confidence {100 * low:.1f} % to {100 * high:.1f} %. Alarms of the hidden control:"
            f" {controls}.",
            "",
            "False alarms of all methods on the same: "
            + ", ".join(f"{name} {sum(found)}" for name, found in alarmed(done).items())
            + ".",
            "",
            f"With a 95 % interval no wider than the budget: {len(sharp)}; of these `unchanged`:"
            f" {unchanged}. Half of all effects are within {100 * median(effects):.2f} %, the"
            f" largest is {100 * effects[-1]:.2f} %.",
        ]
    )
