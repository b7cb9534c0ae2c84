# SPDX-License-Identifier: Apache-2.0
"""Short A/A experiments on a real nginx, as `make soak` left them: Tare beside its peers."""

import json
from collections.abc import Sequence
from typing import Any

from bench.cases import Case
from bench.results import ROOT
from bench.verdict.peers import ABOUT, absent

from tare.stats.proportion import clopper_pearson

FOUND = ROOT / "tests" / "soak" / "alike.jsonl"
"""One JSON object an experiment; those of long ago have no `peers`, or no `width`."""
ALARMS = ("slower", "faster", "shape-changed")
TARE = "Tare"

Experiments = Sequence[dict[str, Any]]


def read() -> Experiments:
    """All experiments of the last series. Raises SystemExit where there is none."""
    if not FOUND.exists():
        raise SystemExit(f"{FOUND}: not there; python -m tests.soak alike writes it")
    return [json.loads(line) for line in FOUND.read_text().splitlines()]


def cases() -> list[Case]:
    """How many there are; false alarms of every method; Tare's `unchanged` where the interval fits
    into the budget."""
    done = read()
    sharp = able(done)
    unchanged = sum(experiment["verdict"] == "unchanged" for experiment in sharp)
    return [
        Case("experiments-nginx", TARE, "", "experiments", [len(done)], note=_measured(done)),
        *(_false_alarms(name, found) for name, found in alarmed(done).items()),
        Case(
            "unchanged-nginx",
            TARE,
            "",
            "%",
            [100 * unchanged / max(1, len(sharp))],
            note=f"of {len(sharp)} of them whose 95 % interval is no wider than the budget",
        ),
    ]


def _false_alarms(name: str, found: Sequence[bool]) -> Case:
    slug = "" if name == TARE else f"-{name.lower().replace(' ', '-')}"
    return Case(
        f"false-alarms-nginx{slug}",
        name,
        "",
        "%",
        [100 * sum(found) / len(found)],
        note=f"{sum(found)} of {len(found)} experiments on twice the same nginx"
        f" ({_interval(found)} with 95 % confidence)",
    )


def table() -> str:
    """The same for docs/internals/verdict-proof.md, beside the simulated table."""
    done = read()
    found = alarmed(done)
    lines = [
        "Twice the same nginx in 6 interleaved blocks, again and again"
        f" (`python -m tests.soak alike`): {_measured(done)}. The peers are those of the simulation"
        " above; they see every successful request, Tare leaves out what it leaves out anywhere."
        " The interval is Clopper and Pearson's.",
        "",
        "| method | experiments | false alarms | share | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    for name, saw in found.items():
        share = 100 * sum(saw) / len(saw)
        lines.append(f"| {name} | {len(saw)} | {sum(saw)} | {share:.1f} % | {_interval(saw)} |")
    none = not any("peers" in experiment for experiment in done)
    told = "the peers, whom the series was carried out without" if none else absent(found)
    return "\n".join([*lines, "", f"Not in the table: {told}."] if told else lines)


def alarmed(done: Experiments) -> dict[str, list[bool]]:
    """By method, whether it saw what is not there, of every experiment that it judged."""
    found = {TARE: [experiment["verdict"] in ALARMS for experiment in done]}
    for name in ABOUT:
        judged = [
            experiment["peers"][name] != 0
            for experiment in done
            if name in experiment.get("peers", ())
        ]
        if judged:
            found[name] = judged
    return found


def alarms(done: Experiments) -> int:
    """How many times Tare saw what is not there."""
    return sum(alarmed(done)[TARE])


def able(done: Experiments) -> Experiments:
    """Those whose 95 % interval is no wider than the budget."""
    widths = [experiment.get("width") for experiment in done]
    return [
        experiment
        for experiment, width in zip(done, widths, strict=True)
        if width is not None and width <= experiment["budget"]
    ]


def _measured(done: Experiments) -> str:
    return f"{len(done)} experiments, {done[-1]['date']}, commit {done[-1]['commit']}"


def _interval(found: Sequence[bool]) -> str:
    low, high = clopper_pearson(sum(found), len(found))
    return f"{100 * low:.1f} to {100 * high:.1f} %"
