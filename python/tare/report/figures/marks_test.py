# SPDX-License-Identifier: Apache-2.0
"""Data in, marks out: what each figure of the evidence really draws."""

import base64
import re
import struct
import zlib
from typing import TypeVar
from xml.etree import ElementTree

import numpy as np
import pytest

from tare.report.figures import effects, heat_map, lag_plot, power, ranges, segments, shift
from tare.report.figures.canvas import LAYOUTS, Figure, Layout, Panel, inline, svg
from tare.report.figures.marks import (
    SERIES,
    Area,
    Band,
    Box,
    Dots,
    Line,
    Mark,
    Matrix,
    Raster,
    Rule,
    Value,
    text_width,
)
from tare.report.figures.scales import Scale
from tare.stats.steady import Segment, Steadiness
from tare.verdict.judgement import Quantile

both = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
T = TypeVar("T", bound=Mark)


def of(panel: Panel, kind: type[T]) -> list[T]:
    return [mark for mark in panel.marks if isinstance(mark, kind)]


@both
def test_shift_draws_each_quantile_its_band_and_the_threshold(layout: Layout) -> None:
    moved = [Quantile(0.1, 0.01, -0.02, 0.04, 0.03), Quantile(0.5, 0.03, 0.01, 0.05, 0.10)]
    shifts = [
        shift.Shift("hook", SERIES[1], moved),
        shift.Shift("twin", SERIES[2], moved[:1]),
    ]
    first, second = shift.draw(layout, shifts).panels
    (line,) = of(first, Line)
    assert line.y == [0.01, 0.03]
    assert [tick.label for tick in first.x.ticks] == ["p10"]
    _, band = of(first, Band)
    assert (band.low, band.high) == ([-0.02, 0.01], [0.04, 0.05])
    for panel, thresholds in ((first, [0.03, 0.10]), (second, [0.03])):
        grey = of(panel, Band)[0]
        assert grey.high == [threshold for threshold in thresholds for _ in range(2)]
        assert grey.low == [-high for high in grey.high]
    assert (first.y.low, first.y.high) == (second.y.low, second.y.high), "compared by eye"
    assert [value.text for value in of(second, Value)] == ["p10: +1.0\u00a0%, −2.0 to +4.0\u00a0%"]


@both
def test_heat_draws_the_matrices_and_where_conditions_end(layout: Layout) -> None:
    matrix = np.array([[0, 0.1, 0.5], [0.1, 0, 0.6], [0.5, 0.6, 0]])
    matrices = [("KS", matrix), ("AD", np.where(matrix == 0.6, np.nan, 1_000 * matrix))]
    panels = heat_map.draw(layout, matrices, [("plain", 2), ("hook", 1)]).panels
    for panel, (title, expected), most in zip(panels, matrices, (0.6, 500), strict=True):
        (image,) = of(panel, Matrix)
        np.testing.assert_allclose(image.strengths * most, expected)
        assert panel.title.startswith(f"{title}, 0 to")
        assert {(rule.x, rule.y) for rule in of(panel, Rule)} == {(2, None), (None, 2)}
    assert [(tick.label, tick.at) for tick in panels[0].y.ticks] == [("plain", 1), ("hook", 2.5)]
    said = [value.text for value in of(panels[0], Value)]
    assert said == ["within plain: mean 0.1", "plain to hook: mean 0.55"]


def test_heat_of_runs_that_are_all_alike_or_unknown() -> None:
    for value in (0.0, np.nan):
        matrices = [("KS", np.full((2, 2), value))]
        (panel,) = heat_map.draw(LAYOUTS[0], matrices, [("plain", 2)]).panels
        assert "0 to 1" in panel.title


def pixels(image: str) -> tuple[list[int], list[bytes]]:
    """Alpha of each number of the palette, and the numbers of each line of a PNG."""
    data, at, chunks = base64.b64decode(image), 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    width, height, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    flat = zlib.decompress(chunks[b"IDAT"])
    lines = [flat[row * (width + 1) : (row + 1) * (width + 1)] for row in range(height)]
    assert all(line[0] == 0 for line in lines)
    return list(chunks[b"tRNS"]), [line[1:] for line in lines]


def test_heat_has_eight_shades_and_nothing_where_nothing_is_known() -> None:
    matrix = np.abs(np.subtract.outer(np.arange(40), np.arange(40))).astype(float)
    matrix[3, 5] = np.nan
    html = inline(lambda layout: heat_map.draw(layout, [("KS", matrix)], [("plain", 40)]), "1")
    images = re.findall(r'href="data:image/png;base64,([^"]*)"', html)
    assert len(images) == len(LAYOUTS)
    for image in images:
        alphas, lines = pixels(image)
        strengths = [[alphas[place] for place in line] for line in lines]
        assert (len(strengths), len(strengths[0])) == (40, 40)
        assert strengths[3][5] == 0
        assert strengths[0] == sorted(strengths[0])
        assert (strengths[0][0], strengths[0][-1]) == (15, 255)
        assert len({alpha for line in strengths for alpha in line}) == 9


@both
def test_lag_draws_every_request_where_it_is(layout: Layout) -> None:
    values = np.array([1e4, 1e4, 1e6, 1e5])
    (panel,) = lag_plot.draw(layout, [("plain", SERIES[0], values)]).panels
    (raster,) = of(panel, Raster)
    area = Area(0, 0, 40, 30, panel.x, panel.y, 12, 40)
    image = re.search(r'base64,([^"]*)"', Raster(raster.x, raster.y, "#000000", 1).draw(area))
    assert image is not None
    alphas, lines = pixels(image[1])
    drawn = {(x, y) for y, line in enumerate(lines) for x, at in enumerate(line) if alphas[at]}
    expected = zip(values, (0.5, 1.5, 2.5, 3.5), strict=True)
    places = {(int(area.x(x)), int(area.y(value))) for value, x in expected}
    assert len(drawn) == len(places) == 4
    for x, y in drawn:
        assert any(abs(x - left) <= 1 and abs(y - top) <= 1 for left, top in places)


@both
def test_ranges_draw_least_mean_and_most_of_each_run(layout: Layout) -> None:
    groups = [
        ranges.Group("plain", SERIES[0], [(0.1, 0.2, 0.5), (0.2, 0.3, 0.4)]),
        ranges.Group("hook", SERIES[1], [(0.3, 0.6, 0.9)]),
    ]
    for panel in ranges.draw(layout, [("KS", groups), ("AD", groups)]).panels:
        for group, dots in zip(groups, of(panel, Dots), strict=True):
            lines = [line.y for line in of(panel, Line) if line.colour == group.colour]
            assert lines == [[least, most] for least, _, most in group.runs]
            assert dots.y == [mean for _, mean, _ in group.runs]
        assert [tick.label for tick in panel.x.ticks] == ["plain", "hook"]


@both
def test_segments_draw_levels_the_cut_and_runs_without_a_steady_state(layout: Layout) -> None:
    settled = Steadiness("warm-up", 100, (Segment(0, 100, 9e4), Segment(100, 1_000, 6e4)))
    never = Steadiness("no steady state", None, (Segment(0, 700, 6e4), Segment(700, 1_000, 8e4)))
    courses = [
        segments.Course("plain", SERIES[0], [settled, never]),
        segments.Course("hook", SERIES[1], [settled]),
    ]
    first, second = segments.draw(layout, courses, 100).panels
    solid, broken = of(first, Line)
    assert (solid.x, solid.y) == ([0, 100, 100, 1_000], [9e4, 9e4, 6e4, 6e4])
    assert broken.x == [0, 700, 700, 1_000]
    assert (solid.dashed, broken.dashed) == (False, True)
    for panel in (first, second):
        (left_out,) = of(panel, Box)
        assert (left_out.x0, left_out.x1) == (0, 100)
    assert not of(segments.draw(layout, courses, 0).panels[0], Box)


@both
def test_power_draws_both_curves_and_the_blocks_of_the_experiment(layout: Layout) -> None:
    likely = power.Curve([0.5, 0.9], [0.04, 0.02])
    careful = power.Curve([0.3, 0.7], [0.03])
    lines = [power.Line("hook", SERIES[1], likely, careful)]
    chance, least = power.draw(layout, lines, [6, 12], 8, 0.8).panels
    assert [(rule.x, rule.y) for rule in of(chance, Rule)] == [(None, 0.8), (8, None)]
    assert [(rule.x, rule.y) for rule in of(least, Rule)] == [(8, None)]
    (curve,) = of(chance, Line)
    assert (curve.x, curve.y) == ([6, 12], likely.chance)
    assert of(least, Line)[0].y == likely.least
    (band,) = of(chance, Band)
    assert (band.low, band.high) == (likely.chance, careful.chance)
    (short,) = of(least, Band)
    assert (short.x, short.low, short.high) == ([12], [0.02], [0.03])


@both
def test_rows_of_effects_differ_however_long_their_names(layout: Layout) -> None:
    conditions = [f"nginx-in-a-container-with-the-hook-of-version-{number}" for number in (1, 2)]
    for span in ("", "POST /checkout/orders/confirm"):
        rows = [
            effects.Effect(name, span, metric, SERIES[1], metric == "p50", 0.1, 0.0, 0.2, 0.03)
            for name in conditions
            for metric in ("p50", "p99", "service CPU")
        ]
        (panel,) = effects.draw(layout, rows).panels
        labels = [tick.label for tick in panel.y.ticks]
        assert len(set(labels)) == len(rows)
        assert all(len(label) <= (20 if layout.narrow else 44) for label in labels)
        for label, row in zip(labels, rows, strict=True):
            assert label.endswith(f" {row.metric}")


@both
def test_a_drawing_is_xml_whose_values_are_reached_by_keyboard(layout: Layout) -> None:
    """The text of a value at the edge stays within the figure."""
    name = 'a "name" & <more>'
    values = [Value(at, 0.0, f"{name} {at}") for at in (0, 5, 10)]
    panel = Panel(Scale(0, 10), Scale(0, 1), marks=[Line([0, 10], [0, 1], SERIES[0]), *values])
    root = ElementTree.fromstring(svg(Figure([panel], 200), layout, name))
    assert root.get("aria-label") == name
    marks = [mark for mark in root.iter("g") if mark.get("class") == "value"]
    assert [mark.get("tabindex") for mark in marks] == ["0"] * 3
    for mark, value in zip(marks, values, strict=True):
        text = mark.find("text")
        assert text is not None
        assert mark.get("aria-label") == text.text == value.text
        half = text_width(value.text, layout.text) / 2
        middle = float(text.get("x", ""))
        assert half <= middle <= layout.width - half


def test_a_line_has_a_gap_where_nothing_was_measured() -> None:
    area = Area(0, 0, 10, 10, Scale(0, 10), Scale(0, 10), 12, 10)
    drawn = Line([0, 1, 2, 3], [1, 2, float("nan"), 4], SERIES[0]).draw(area)
    assert 'd="M0 9L1 8M3 6"' in drawn
    assert Line([0], [float("nan")], SERIES[0], dots=2).draw(area) == ""
