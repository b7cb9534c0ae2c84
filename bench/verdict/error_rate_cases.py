# SPDX-License-Identifier: Apache-2.0
"""What the simulation shows: cases beside their bars, and the table of verdict-proof.md."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from bench.cases import Case
from bench.verdict.peers import ABOUT, absent
from bench.verdict.scenarios import REQUESTS, Scenario
from bench.verdict.simulate import TARE, Outcome
from bench.verdict.simulated_experiment import BUDGET
from scipy.stats import binom

LEVEL = 0.05
FEWEST = 6
"""Runs a condition from which the bars hold."""
SEEN = 0.05
"""The effect whose finding has a bar."""
WORDS = ("unchanged", "inconclusive", "invalid", "slower", "faster", "shape-changed")


Again = Callable[[Outcome], Outcome]
"""Further experiments of a cell."""


def cases(outcomes: Sequence[Outcome], again: Again) -> list[Case]:
    """The bars' cases. An interleaved block is a block: its scenarios count as blocked ones."""
    blocked = [
        outcome
        for outcome in outcomes
        if outcome.runs >= FEWEST and outcome.scenario.design != "unblocked"
    ]
    return [_false_alarms(blocked), _pooled(blocked), *_power(blocked, again), _unchanged(blocked)]


def is_barred(scenario: Scenario, runs: int) -> bool:
    """Whether there are bars for a cell."""
    return runs >= FEWEST and scenario.design != "unblocked"


def _false_alarms(blocked: Sequence[Outcome]) -> Case:
    """The worst cell, beside what of so many cells at 5 % the worst may show by chance."""
    worst = max(blocked, key=lambda outcome: outcome.alarms(TARE))
    bound = _bound(worst, len(blocked))
    return Case(
        "false-alarms",
        TARE,
        "5 % and Monte-Carlo error",
        "%",
        [100 * worst.alarms(TARE)],
        [100 * bound],
        note=f"worst of {len(blocked)} cells ({worst.scenario.name}, {worst.runs} runs), beside"
        " what the worst of them shows in 1 of 20 such tables if all are at 5 %",
    )


def _pooled(blocked: Sequence[Outcome]) -> Case:
    """All cells together: a little too much in each of them passes for chance, in all it is none.

    Chance is that of experiments drawn from these scenarios; it is smaller than in one cell.
    """
    repetitions = sum(len(outcome.words) for outcome in blocked)
    return Case(
        "false-alarms-pooled",
        TARE,
        "5 % and Monte-Carlo error",
        "%",
        [100 * _share(blocked, TARE)],
        [100 * _most(repetitions)],
        note=f"all {repetitions:,} experiments of the same cells, beside what is shown in 1 of 20"
        " such tables at 5 %",
    )


def _share(blocked: Sequence[Outcome], method: str) -> float:
    """Of false alarms in all cells together."""
    alarms = [outcome.alarms(method) for outcome in blocked]
    return float(np.average(alarms, weights=[len(outcome.words) for outcome in blocked]))


def _bound(outcome: Outcome, cells: int) -> float:
    """The share that a cell at 5 % exceeds with probability 0.05 over `cells`."""
    return _most(len(outcome.words), LEVEL / cells)


def _most(repetitions: int, chance: float = LEVEL) -> float:
    """The share of false alarms that is exceeded with so much probability at 5 %."""
    return float(binom.ppf(1 - chance, repetitions, LEVEL)) / repetitions


def _power(blocked: Sequence[Outcome], again: Again) -> Iterator[Case]:
    """Tare beside the best that holds its level: the mean over the scenarios, and the worst.

    The worst of many is the worst by chance, too: further experiments say how bad it is.
    """
    holding = _holding(blocked)
    for runs in (8, 10):
        cells = [cell for cell in blocked if cell.runs == runs]
        rivals = [max(holding, key=lambda name: cell.found(name, SEEN)) for cell in cells]
        pairs = [
            (100 * cell.found(TARE, SEEN), 100 * cell.found(rival, SEEN))
            for cell, rival in zip(cells, rivals, strict=True)
        ]
        at = int(np.argmin([ours - theirs for ours, theirs in pairs]))
        means = np.mean(pairs, axis=0)
        yield Case(
            f"power-{runs}",
            TARE,
            "best that holds its level",
            "%",
            [float(means[0])],
            [float(means[1])],
            note=f"+5 % found with {runs} runs, mean of {len(cells)} scenarios, beside the best of"
            f" each: {_counted(rivals)}; false alarms are not too many of {', '.join(holding)}",
        )
        worst = again(cells[at])
        yield Case(
            f"power-{runs}-worst",
            TARE,
            rivals[at],
            "%",
            [100 * worst.found(TARE, SEEN)],
            [100 * worst.found(rivals[at], SEEN)],
            note=f"{len(worst.words):,} further experiments of the scenario in which the best is"
            f" furthest ahead: {worst.scenario.name}",
        )


def _holding(blocked: Sequence[Outcome]) -> list[str]:
    """The peers of which is true what is asked of Tare: not too many false alarms in any cell,
    nor in all of them together."""
    most = _most(sum(len(outcome.words) for outcome in blocked))
    found = [
        name
        for name in blocked[0].verdicts
        if name != TARE
        and all(outcome.alarms(name) <= _bound(outcome, len(blocked)) for outcome in blocked)
        and _share(blocked, name) <= most
    ]
    if not found:
        raise SystemExit("no peer holds its level: there is nobody to hold Tare's power against")
    return found


def _counted(names: Sequence[str]) -> str:
    return ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))


def _unchanged(blocked: Sequence[Outcome]) -> Case:
    """Of the experiments without an effect whose interval fits into the budget."""
    words = [
        words[0]
        for outcome in blocked
        for words, width in zip(outcome.words, outcome.widths, strict=True)
        if width <= BUDGET
    ]
    return Case(
        "unchanged",
        TARE,
        "",
        "%",
        [100 * words.count("unchanged") / max(1, len(words))],
        note=f"{len(words):,} simulated experiments without an effect whose 95 % interval is no"
        f" wider than the budget, {100 * BUDGET:g} %",
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """False alarms and power of every method in every cell, and how to read them."""
    methods = [*outcomes[0].verdicts]
    effects = ", ".join(f"{100 * effect:g}" for effect in outcomes[0].effects[1:])
    usual = Scenario("")
    lines = [
        f"{len(outcomes[0].words)} simulated experiments a row, {REQUESTS:,} requests a run, each"
        f" judged by all: with nothing to find, and with all requests of the condition slower by"
        f" {effects} %. Unless the scenario says otherwise, runs scatter by {100 * usual.run:g} %"
        f" and the machine drifts by {100 * usual.drift:g} % from slot to slot"
        " (`bench/verdict/scenarios.py`).",
        "",
        "A cell is the share of false alarms (slower, faster or of another shape, where nothing"
        f" was), then after the bar the share found at {effects} %, in per cent. Tare's budget is"
        f" {100 * BUDGET:g} %: what is smaller need not be found.",
        "",
        *(f"- {name}: {ABOUT[name]}." for name in methods if name in ABOUT),
        *(f"- Not in the table: {told}." for told in [absent(methods)] if told),
        "",
        f"| scenario | runs | {' | '.join(methods)} |",
        f"|---|---|{'---|' * len(methods)}",
    ]
    for outcome in outcomes:
        cells = [_cell(outcome, name) for name in methods]
        lines.append(f"| {outcome.scenario.name} | {outcome.runs} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_words(outcomes)])


def _cell(outcome: Outcome, method: str) -> str:
    found = " ".join(f"{100 * outcome.found(method, effect):.0f}" for effect in outcome.effects[1:])
    return f"{100 * outcome.alarms(method):.0f} \\| {found}"


def _words(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What Tare says where there is nothing to find."""
    yield "What Tare says where nothing is, in per cent of the same experiments:"
    yield ""
    yield f"| scenario | runs | {' | '.join(f'`{word}`' for word in WORDS)} |"
    yield f"|---|---|{'---|' * len(WORDS)}"
    most = max(outcome.runs for outcome in outcomes)
    for outcome in outcomes:
        if outcome.runs == most:
            said = [words[0] for words in outcome.words]
            shares = " | ".join(f"{100 * said.count(word) / len(said):.0f}" for word in WORDS)
            yield f"| {outcome.scenario.name} | {outcome.runs} | {shares} |"
