# SPDX-License-Identifier: Apache-2.0
"""The time that a layer itself took in each call, measured inside the layer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import Band, Line, Value, stairs
from tare.report.result.distributions import binned_quantile
from tare.report.typesetting import duration, safe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BINS_PER_FACTOR_TEN = 12
SHOWN = 0.999
"""The axis reaches over this share of the calls, from either end, of every function."""


def draw(layout: Layout, rows: "Sequence[tuple[str, str, NDArray[np.float64]]]") -> Figure:
    """One outline a function: the share of its calls, on a logarithmic axis of time.

    `rows` gives each function's name, colour and bins: rows of low (ns), high (ns), count.
    """
    import numpy as np

    low = max(1.0, min(binned_quantile(bins, 1 - SHOWN) for _, _, bins in rows) / 1.1)
    high = max(binned_quantile(bins, SHOWN) for _, _, bins in rows) * 1.1
    steps = max(2, int(np.ceil(np.log10(high / low) * _BINS_PER_FACTOR_TEN)) + 1)
    edges = np.geomspace(low, high, steps)
    outlines = []
    for name, colour, bins in rows:
        middles = np.sqrt(np.maximum(bins[:, 0], 1) * np.maximum(bins[:, 1], 1))
        shares = np.histogram(middles, edges, weights=bins[:, 2])[0] / bins[:, 2].sum()
        outlines.append((name, colour, bins, shares))
    most = max(float(shares.max()) for *_, shares in outlines)
    panel = Panel(
        x=scales.log_times(low, high, margin=0.0),
        y=scales.shares(0, 1.15 * most, 4),
        x_title="own time of one call",
    )
    for _, colour, _, shares in outlines:
        x, y = stairs(edges.tolist(), shares.tolist())
        panel.add(Band(x, [0.0] * len(x), y, colour, 0.12), Line(x, y, colour, 1.5))
    for name, _, bins, shares in outlines:
        median = binned_quantile(bins, 0.5)
        # Bins are narrower than the outline's: its highest is where the function is found.
        at = min(max(median, low), high)
        place = min(max(int(np.searchsorted(edges, at)) - 1, 0), len(shares) - 1)
        text = f"{safe(name, 24)}: median {duration(median)}"
        panel.add(Value(at, float(shares[place]), text))
    return Figure([panel], 240 if layout.narrow else 280)
