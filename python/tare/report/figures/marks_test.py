# SPDX-License-Identifier: Apache-2.0
"""Data in, marks out: what each figure of the evidence really draws."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from tare.report.figures import effects, heat, power, ranges, segments, shift
from tare.report.figures.canvas import LAYOUTS, SERIES, Layout, inline
from tare.stats.steady import Segment, Steadiness
from tare.verdict.judgement import Quantile

both = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def panels_of(figure: Figure) -> list[Any]:
    return list(figure.axes)


def spans(axes: Any) -> list[Rectangle]:
    return [one for one in axes.patches if type(one) is Rectangle]


def values(data: Any) -> list[float]:
    return [float(one) for one in np.asarray(data)]


@both
def test_shift_draws_each_quantile_its_band_and_the_threshold(layout: Layout) -> None:
    moved = [Quantile(0.1, 0.01, -0.02, 0.04, 0.03), Quantile(0.5, 0.03, 0.01, 0.05, 0.10)]
    panels = [
        shift.Panel("hook", SERIES[1], moved),
        shift.Panel("twin", SERIES[2], moved[:1]),
    ]
    first, second = panels_of(shift.draw(layout, panels))
    _, line = first.lines
    assert values(line.get_ydata()) == [0.01, 0.03]
    assert [label.get_text() for label in first.get_xticklabels()] == ["p10"]
    (band,) = (one for one in first.collections if isinstance(one, FillBetweenPolyCollection))
    corners = {tuple(corner) for corner in np.asarray(band.get_paths()[0].vertices).tolist()}
    assert {(0, -0.02), (0, 0.04), (1, 0.01), (1, 0.05)} <= corners
    for axes, thresholds in ((first, [0.03, 0.10]), (second, [0.03])):
        (grey,) = (one.get_data() for one in axes.patches if isinstance(one, StepPatch))
        upper, _, lower = grey
        assert values(upper) == thresholds
        assert values(lower) == [-own for own in thresholds]
    assert first.get_ylim() == second.get_ylim(), "panels are compared by eye"


@both
def test_heat_draws_the_matrices_and_where_conditions_end(layout: Layout) -> None:
    matrix = np.array([[0, 0.1, 0.5], [0.1, 0, 0.6], [0.5, 0.6, 0]])
    panels = [("KS", matrix), ("AD", np.where(matrix == 0.6, np.nan, 1_000 * matrix))]
    drawn = panels_of(heat.draw(layout, panels, [("plain", 2), ("hook", 1)]))
    for axes, (title, expected), most in zip(drawn, panels, (0.6, 500), strict=False):
        (image,) = axes.images
        np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), expected)
        assert image.get_clim() == (0, most)
        assert axes.get_title(loc="left") == title
        upright, level = axes.lines
        assert set(upright.get_ydata()) | set(level.get_xdata()) >= {1.5}
    assert [label.get_text() for label in drawn[0].get_yticklabels()] == ["plain", "hook"]
    assert values(drawn[0].get_yticks()) == [0.5, 2.0]


def test_heat_of_runs_that_are_all_alike_or_unknown() -> None:
    for value in (0.0, np.nan):
        axes, _ = panels_of(heat.draw(LAYOUTS[0], [("KS", np.full((2, 2), value))], [("plain", 2)]))
        assert axes.images[0].get_clim() == (0, 1)


def test_heat_keeps_its_colours_when_it_is_made_small() -> None:
    """Eight shades, not fewer: a palette that merges two of them would hide a difference."""
    import base64
    import io
    import re

    from PIL import Image

    matrix = np.abs(np.subtract.outer(np.arange(40), np.arange(40))).astype(float)
    html = inline(lambda layout: heat.draw(layout, [("KS", matrix)], [("plain", 40)]), "1")
    images = re.findall(r'href="data:image/png;base64,([^"]*)"', html)
    assert len(images) == len(LAYOUTS)
    for image in images:
        picture = Image.open(io.BytesIO(base64.b64decode(image))).convert("RGBA")
        assert picture.size == (40, 40)
        assert len(picture.getcolors() or ()) == 8


@both
def test_ranges_draw_least_mean_and_most_of_each_run(layout: Layout) -> None:
    groups = [
        ranges.Group("plain", SERIES[0], [(0.1, 0.2, 0.5), (0.2, 0.3, 0.4)]),
        ranges.Group("hook", SERIES[1], [(0.3, 0.6, 0.9)]),
    ]
    for axes in panels_of(ranges.draw(layout, [("KS", groups), ("AD", groups)])):
        lines, dots = axes.collections[::2], axes.collections[1::2]
        for group, line, dot in zip(groups, lines, dots, strict=True):
            ends = [[float(y) for _, y in segment] for segment in line.get_segments()]
            assert ends == [[least, most] for least, _, most in group.runs]
            assert values(dot.get_offsets()[:, 1]) == [mean for _, mean, _ in group.runs]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["plain", "hook"]


@both
def test_segments_draw_levels_the_cut_and_who_never_settled(layout: Layout) -> None:
    settled = Steadiness("warm-up", 100, (Segment(0, 100, 9e4), Segment(100, 1_000, 6e4)))
    never = Steadiness("no steady state", None, (Segment(0, 700, 6e4), Segment(700, 1_000, 8e4)))
    panels = [
        segments.Panel("plain", SERIES[0], [settled, never]),
        segments.Panel("hook", SERIES[1], [settled]),
    ]
    first, second = panels_of(segments.draw(layout, panels, 100))
    steps: list[Any] = [patch for patch in first.patches if isinstance(patch, StepPatch)]
    one, other = steps
    assert values(one.get_data().values) == [9e4, 6e4]
    assert values(one.get_data().edges) == [0, 100, 1_000]
    assert values(other.get_data().edges) == [0, 700, 1_000]
    assert one.get_linestyle() != other.get_linestyle()
    for axes in (first, second):
        (left_out,) = spans(axes)
        assert (left_out.get_x(), left_out.get_width()) == (0, 100)
    assert not spans(panels_of(segments.draw(layout, panels, 0))[0])


@both
def test_power_draws_both_curves_and_where_the_experiment_stands(layout: Layout) -> None:
    likely = power.Curve([0.5, 0.9], [0.04, 0.02])
    careful = power.Curve([0.3, 0.7], [0.06, 0.03])
    lines = [power.Line(SERIES[1], likely, careful)]
    chance, least = panels_of(power.draw(layout, lines, [6, 12], 8, 0.8))
    share, now, curve = chance.lines
    assert set(share.get_ydata()) == {0.8}
    assert set(now.get_xdata()) == set(least.lines[0].get_xdata()) == {8}
    assert values(curve.get_xdata()) == [6, 12]
    assert values(curve.get_ydata()) == likely.chance
    assert values(least.lines[1].get_ydata()) == likely.least
    for axes, expected in ((chance, careful.chance), (least, careful.least)):
        (band,) = axes.collections
        reached = {float(y) for _, y in np.asarray(band.get_paths()[0].vertices)}
        assert set(expected) <= reached


@both
def test_rows_of_effects_are_told_apart_however_long_their_names(layout: Layout) -> None:
    conditions = [f"nginx-in-a-container-with-the-hook-of-version-{number}" for number in (1, 2)]
    for span in ("", "POST /checkout/orders/confirm"):
        rows = [
            effects.Effect(name, span, metric, SERIES[1], metric == "p50", 0.1, 0.0, 0.2, 0.03)
            for name in conditions
            for metric in ("p50", "p99", "service CPU")
        ]
        (axes,) = panels_of(effects.draw(layout, rows))
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert len(set(labels)) == len(rows)
        assert all(len(label) <= (20 if layout.narrow else 44) for label in labels)
        for label, row in zip(labels, rows, strict=True):
            assert label.endswith(f" {row.metric}")
