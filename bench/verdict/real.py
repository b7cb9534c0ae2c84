# SPDX-License-Identifier: Apache-2.0
"""Short A/A experiments on a real nginx, as `make soak` left them."""

import json
from collections.abc import Sequence
from typing import Any

from bench.cases import Case
from bench.results import ROOT

from tare.stats.proportion import clopper_pearson

FOUND = ROOT / "tests" / "soak" / "alike.jsonl"
"""One JSON object an experiment."""
ALARMS = ("slower", "faster", "shape-changed")

Experiments = Sequence[dict[str, Any]]


def cases() -> list[Case]:
    """False alarms, and `unchanged` where half of the budget could be seen, in per cent."""
    if not FOUND.exists():
        raise SystemExit(f"{FOUND}: not there; python -m tests.soak alike writes it")
    done = [json.loads(line) for line in FOUND.read_text().splitlines()]
    sharp = able(done)
    unchanged = sum(one["verdict"] == "unchanged" for one in sharp)
    low, high = clopper_pearson(alarms(done), len(done))
    measured = f"{done[-1]['date']}, commit {done[-1]['commit']}"
    return [
        Case(
            "false-alarms-nginx",
            "Tare",
            "",
            "%",
            [100 * alarms(done) / len(done)],
            note=f"{alarms(done)} of {len(done)} experiments on twice the same nginx"
            f" ({100 * low:.1f} to {100 * high:.1f} % with 95 % confidence); {measured}",
        ),
        Case(
            "unchanged-nginx",
            "Tare",
            "",
            "%",
            [100 * unchanged / max(1, len(sharp))],
            note=f"of {len(sharp)} of them that could have seen half of the budget",
        ),
    ]


def alarms(done: Experiments) -> int:
    """How many saw what is not there."""
    return sum(one["verdict"] in ALARMS for one in done)


def able(done: Experiments) -> Experiments:
    """Those whose least detectable effect is below half of the budget."""
    return [one for one in done if one["mde"] is not None and one["mde"] < one["budget"] / 2]
