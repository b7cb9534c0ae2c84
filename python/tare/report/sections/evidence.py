# SPDX-License-Identifier: Apache-2.0
"""The sections of spans, of the numbers behind each verdict, of the control and the limits."""

from collections.abc import Iterator, Sequence
from math import expm1

from tare.report.result.result import Result
from tare.report.result.verdicts import Compared
from tare.report.sections import calibration_curves, controls, effect_sizes, power
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import whose
from tare.report.typesetting import count, duration, interval, p_value, percent, typeset

SPAN_COLUMNS = (
    "condition",
    "verdict",
    "effect",
    "in time",
    "interval",
    "p adjusted",
    "detectable",
    "needed",
)


def spans(result: Result) -> Section:
    """The primary metric of every span, the largest effect first."""
    return Section(
        anchor="spans",
        name="Spans",
        gist="which part of a request changed",
        how="The parts of a request, the largest effect first. If the effect of a span in time is"
        " close to the effect of the whole request, the time goes into this span.",
        tables=[Table("Spans", SPAN_COLUMNS, list(_spans(result)), 2)],
        absent="the requests have no spans",
    )


def _spans(result: Result) -> Iterator[Sequence[str]]:
    if len(result.spans) < 2:
        return

    def effect(comparison: Compared) -> float:
        relative = comparison.effect.relative
        return float("-inf") if relative is None else relative

    for comparison in sorted(result.primary_comparisons, key=effect, reverse=True):
        yield (
            whose(result, comparison),
            comparison.verdict,
            percent(comparison.effect.relative),
            duration(comparison.effect.absolute_ns, signed=True),
            interval(comparison.interval.low, comparison.interval.high),
            p_value(comparison.p_adjusted),
            percent(comparison.mde, signed=False),
            count(comparison.runs_needed),
        )


NUMBER_COLUMNS = (
    "condition",
    "budget",
    "detection limit",
    "clock step",
    "threshold",
    "p",
    "p adjusted",
    "p of equivalence",
    "KS p",
    "AD p",
    "p of the band",
    "scatter of a difference",
)


def numbers(result: Result) -> Section:
    """What the verdicts rest on, beside the effects of the table of all metrics."""
    return Section(
        anchor="numbers",
        name="Numbers behind each verdict",
        gist="thresholds, p-values, effect sizes",
        how="The threshold is the largest of three numbers: the budget, the detection limit that"
        " calibration measured, and the step of the clock. p is from sign flips of the block"
        " differences; p adjusted is corrected for all comparisons that decide (step-down maximum)."
        " The p of equivalence is from two one-sided tests against the threshold. KS p and AD p"
        " are from relabelling whole runs within blocks. Cliff's delta and A measure how often a"
        " run of the condition is above a run of the baseline. Hodges and Lehmann's shift is a"
        " median of differences: no single run moves it far.",
        tables=[
            Table("Numbers behind the verdicts", NUMBER_COLUMNS, list(_numbers(result))),
            *effect_sizes.tables(result),
        ],
        absent="nothing was compared",
    )


def _numbers(result: Result) -> Iterator[Sequence[str]]:
    experiment = result.experiment
    for comparison in sorted(result.primary_comparisons, key=result.rank):
        place = comparison.environment, comparison.span, result.primary
        scatter = power.scatter(result, comparison)
        yield (
            whose(result, comparison),
            percent(comparison.budget, signed=False),
            duration(experiment.limits.get(place)),
            duration(max((run.step_ns for run in experiment.runs), default=0.0)),
            percent(result.threshold(comparison), signed=False),
            p_value(comparison.p),
            p_value(comparison.p_adjusted),
            p_value(comparison.p_equivalent),
            *(
                p_value(None if comparison.shape is None else getattr(comparison.shape, name))
                for name in ("ks_p", "ad_p", "p_adjusted")
            ),
            percent(None if scatter is None else expm1(scatter.deviation), signed=False),
        )


def control(result: Result) -> Section:
    """What the hidden second baselines came to, here and on this machine so far."""
    from tare.samples.describe.controls import standing

    return Section(
        anchor="control",
        name="Control",
        gist="the baseline against itself",
        how="Every block runs the baseline once more under another name. If the two differ, the"
        " experiment was disturbed and no verdict holds. The history is from the machine that"
        " wrote this report.",
        lines=[typeset(line) for line in controls.told(result.controls, *standing())],
        absent="this experiment has no control, or too few runs of it",
    )


def limits(result: Result) -> Section:
    """How often each delay is detected in the calibration that the verdicts rest on."""
    return Section(
        anchor="calibration",
        name="Detection limits",
        gist="the smallest delay that is detected on this machine",
        how="tare calibrate added known delays to this service on this machine. The curves show how"
        " often each statistic detected them. A difference below the detection limit, the least"
        " delay from which 80 % are detected, is not called a difference. KS and AD are here for"
        " comparison only.",
        figures=[
            Figures(
                list(calibration_curves.known(result)),
                "Share of repetitions that detect the delay; without one, of false alarms. The"
                " broken line is 80 %.",
            )
        ],
        absent="this service was not calibrated on this machine; run 'tare calibrate'",
    )
