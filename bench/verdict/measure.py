# SPDX-License-Identifier: Apache-2.0
"""Whether verdicts can be trusted: simulated experiments, Tare beside its peers."""

from bench.cases import publish
from bench.results import ROOT, renew
from bench.verdict import proof, slices
from bench.verdict.simulate import outcomes

STATISTICS = ROOT / "docs" / "statistics.md"


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    repetitions = 40 if quick else 300
    interleaved = [] if quick else [one.case() for one in slices.measured(slices.BLOCKS)]
    found = outcomes(repetitions)
    command = f"{'BENCH=quick ' if quick else ''}make bench-verdict"
    renew("proof", "Proof", command, proof.table(found), STATISTICS)
    about = (
        f"Simulated: {repetitions} experiments a scenario and number of runs, on all methods alike;"
        " the table is in [statistics.md](statistics.md#proof)."
    )
    return publish("verdict", [*proof.cases(found), *interleaved], command, about)
