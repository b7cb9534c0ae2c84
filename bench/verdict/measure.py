# SPDX-License-Identifier: Apache-2.0
"""Whether verdicts can be trusted: simulated and real experiments, Tare beside its peers."""

from bench.cases import Case, publish
from bench.results import ROOT, renew
from bench.verdict import error_rate_cases, examples, real, rule_proof
from bench.verdict.scenarios import EFFECTS, RUNS, SCENARIOS
from bench.verdict.simulate import Outcome, outcomes

PROOF = ROOT / "docs" / "internals" / "verdict-proof.md"
REPETITIONS, QUICK, RULES, AGAIN = 200, 40, 200, 5


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    cases, repetitions = (_barred(), QUICK) if quick else (_all(), REPETITIONS)
    about = (
        f"Simulated: {repetitions} experiments a scenario and number of runs, all methods on the"
        " same; the whole table is in [verdict-proof.md](internals/verdict-proof.md#proof)."
    )
    return publish(
        "verdict",
        [*cases, *real.cases()],
        f"{'BENCH=quick ' * quick}make bench-verdict",
        about,
    )


def _barred() -> list[Case]:
    """What has a bar, on fewer repetitions; table and figure stay as the whole bench left them."""
    blocked = [
        scenario for scenario in SCENARIOS if error_rate_cases.is_barred(scenario, max(RUNS))
    ]
    runs = [count for count in RUNS if count >= error_rate_cases.FEWEST]
    return error_rate_cases.cases(
        outcomes(blocked, runs, (0.0, error_rate_cases.SEEN), QUICK), _again
    )


def _all() -> list[Case]:
    found = outcomes(SCENARIOS, RUNS, EFFECTS, REPETITIONS)
    table = error_rate_cases.table(found)
    print(table, flush=True)
    rules = rule_proof.table(rule_proof.measured(RULES), RULES)
    renew("rules", "What each rule prevents", "make bench-verdict", rules, PROOF)
    renew("proof", "Proof", "make bench-verdict", table, PROOF)
    renew("examples", "Examples", "make bench-verdict", examples.table(), PROOF)
    renew("proof-nginx", "Proof on nginx", "make bench-verdict", real.table(), PROOF)
    return error_rate_cases.cases(found, _again)


def _again(cell: Outcome) -> Outcome:
    """So many times its experiments, others than those that it has."""
    done = len(cell.words)
    effects = 0.0, error_rate_cases.SEEN
    (found,) = outcomes([cell.scenario], [cell.runs], effects, AGAIN * done, first=done)
    return found
