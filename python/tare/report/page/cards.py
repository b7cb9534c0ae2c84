# SPDX-License-Identifier: Apache-2.0
"""The first screen: one card per condition, in at most 120 words, and no p-value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from tare.report.figures.marks import SERIES
from tare.report.pictures import colours
from tare.report.result.result import Result
from tare.report.result.verdicts import Compared
from tare.report.tables import both_values
from tare.report.typesetting import (
    count,
    interval,
    metric,
    percent,
    plural,
    safe,
    typeset,
)
from tare.terminal import both_ends

WORDS = 120
LONGEST = 240
"""Letters of a reason."""

# The most pressing first: what must be acted on, what must be repeated, what can be left alone.
VERDICTS = ("slower", "shape-changed", "invalid", "inconclusive", "faster", "unchanged")


@dataclass(frozen=True)
class Strip:
    """An effect drawn on a line, in percent of the line's width; None where there is none."""

    band: tuple[float, float]
    zero: float
    interval: tuple[float, float] | None
    value: float | None


@dataclass(frozen=True)
class Card:
    """One condition against the baseline, in one environment and span."""

    condition: str
    where: str
    """Environment and span, of those of which there are several."""
    verdict: str
    relative: str
    values: str
    metric: str
    reason: str
    brief: str
    """The reason in fewer words, where there are many cards."""
    strip: Strip
    picture: str = ""
    """Both distributions; empty if there is none."""
    legend: Sequence[tuple[str, str]] = ()
    """Names and colours of the picture."""


@dataclass(frozen=True)
class FirstScreen:
    """The cards that fit into the words, and how many are left for the tables below."""

    cards: Sequence[Card]
    more: int = 0


def first_screen(
    result: Result, around: str, pictures: Mapping[tuple[str, str], Markup]
) -> FirstScreen:
    """Shortens reasons, then leaves them out, then the least pressing cards, to stay within WORDS.

    `around` is all other text of the first screen, `pictures` those of environment and condition,
    whose labels do not count.
    """
    room = WORDS - len(around.split())
    cards = _cards(result, pictures)
    for reason in (lambda card: card.reason, lambda card: card.brief, lambda _: ""):
        shorter = [replace(card, reason=reason(card)) for card in cards]
        if sum(map(_words, shorter)) <= room:
            return FirstScreen(shorter)
    room -= len(["99", "more", "below."])
    shown: list[Card] = []
    for card in sorted(shorter, key=lambda card: VERDICTS.index(card.verdict)):
        room -= _words(card)
        if room < 0:
            break
        shown.append(card)
    return FirstScreen(shown, len(cards) - len(shown))


def _cards(result: Result, pictures: Mapping[tuple[str, str], Markup]) -> list[Card]:
    compared: dict[tuple[str, str], list[Compared]] = {}
    for comparison in result.primary_comparisons:
        compared.setdefault((comparison.environment, comparison.condition), []).append(comparison)
    reach, colour = _reach(result), colours(result)
    return [
        _card(comparison, environment, condition, result, reach)
        if comparison is None or comparison.span != result.span
        else replace(
            _card(comparison, environment, condition, result, reach),
            picture=pictures.get((environment, condition), ""),
            legend=[
                (both_ends(name, 24), colour.get(name, SERIES[0]))
                for name in (result.baseline, condition)
            ],
        )
        for environment in result.environments
        for condition in result.conditions
        if condition != result.baseline
        for comparison in compared.get((environment, condition), [None])
    ]


def _card(
    comparison: Compared | None,
    environment: str,
    condition: str,
    result: Result,
    reach: float,
) -> Card:
    """Without a comparison, no run of the condition is valid."""
    where = [environment] if len(result.environments) > 1 else []
    if comparison is not None and len(result.spans) > 1:
        where.append(comparison.span)
    named, at = both_ends(condition, 40), ", ".join(safe(name, 24) for name in where if name)
    if comparison is None:
        strip = _strip(None, None, None, result.budget, reach)
        reason, runs = "There is no valid run to compare.", plural(0, "run")
        return Card(named, at, "invalid", "–", "–", metric(result.primary), reason, runs, strip)
    return Card(
        condition=named,
        where=at,
        verdict=comparison.verdict,
        relative=percent(comparison.effect.relative),
        values=both_values(comparison),
        metric=metric(result.primary),
        reason=typeset(_shortened(safe(comparison.reason))),
        brief=_brief(comparison),
        strip=_strip(
            comparison.effect.relative,
            comparison.interval.low,
            comparison.interval.high,
            result.threshold(comparison),
            reach,
        ),
    )


def _shortened(reason: str) -> str:
    """At most LONGEST letters, in whole words."""
    if len(reason) <= LONGEST:
        return reason
    whole, _, _ = reason[:LONGEST].rpartition(" ")
    return f"{whole or reason[:LONGEST]} …"


def _reach(result: Result) -> float:
    """The largest difference that a strip must show: the same for all cards, to compare them."""
    sizes = [result.budget, 0.001]
    for comparison in result.primary_comparisons:
        effect = comparison.effect.relative, comparison.interval.low, comparison.interval.high
        sizes += [result.threshold(comparison), *(abs(part) for part in effect if part)]
    return 1.15 * max(sizes)


def _strip(
    value: float | None, low: float | None, high: float | None, threshold: float, reach: float
) -> Strip:
    def place(fraction: float) -> float:
        return round(50 + 50 * fraction / reach, 2)

    return Strip(
        band=(place(-threshold), place(threshold)),
        zero=50.0,
        interval=None if low is None or high is None else (place(low), place(high)),
        value=None if value is None else place(value),
    )


def _brief(comparison: Compared) -> str:
    bounds, runs = comparison.interval, comparison.runs
    parts = [interval(bounds.low, bounds.high)] if bounds.low else []
    parts.append(plural(min(runs.baseline, runs.condition), "run"))
    if comparison.verdict == "inconclusive" and comparison.runs_needed:
        parts.append(f"{count(comparison.runs_needed)} needed")
    return ", ".join(parts)


def _words(card: Card) -> int:
    shown = (card.condition, card.where, card.verdict, card.relative, card.values)
    return len(" ".join((*shown, "at", card.metric, card.reason)).split())
