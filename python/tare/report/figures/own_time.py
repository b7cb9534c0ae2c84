# SPDX-License-Identifier: Apache-2.0
"""The time that a layer itself took in each call, measured inside the layer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.distributions import binned_quantile
from tare.report.figures import scales
from tare.report.figures.canvas import Layout

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_BINS_PER_FACTOR_TEN = 12
SHOWN = 0.999
"""The axis reaches over this share of the calls, from either end, of every function."""


def draw(layout: Layout, rows: "Sequence[tuple[str, NDArray[np.float64]]]") -> "Figure":
    """One outline a function: the share of its calls, on a logarithmic axis of time.

    `rows` gives each function's colour and its bins: rows of low (ns), high (ns), count.
    """
    import numpy as np

    figure, (axes,) = layout.figure(240 if layout.narrow else 280)
    low = max(1.0, min(binned_quantile(bins, 1 - SHOWN) for _, bins in rows) / 1.1)
    high = max(binned_quantile(bins, SHOWN) for _, bins in rows) * 1.1
    steps = max(2, int(np.ceil(np.log10(high / low) * _BINS_PER_FACTOR_TEN)) + 1)
    edges = np.geomspace(low, high, steps)
    for colour, bins in rows:
        middles = np.sqrt(np.maximum(bins[:, 0], 1) * np.maximum(bins[:, 1], 1))
        shares = np.histogram(middles, edges, weights=bins[:, 2])[0] / bins[:, 2].sum()
        axes.stairs(shares, edges, color=colour, alpha=0.12, fill=True, linewidth=0)
        axes.stairs(shares, edges, color=colour, linewidth=1.5)
    scales.log_time(axes, "x", low, high)
    scales.shares(axes.yaxis, 4)
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("own time of one call")
    return figure
