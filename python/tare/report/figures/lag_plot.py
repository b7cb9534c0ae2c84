# SPDX-License-Identifier: Apache-2.0
"""Round trips one after the other, on a logarithmic axis (Kahlhofer et al., figure 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel, columns_for
from tare.report.figures.marks import Raster
from tare.terminal import both_ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Requests = tuple[str, str, "NDArray[np.float64]"]
"""A condition's name, its colour, its latencies in order."""


def draw(layout: Layout, panels: Sequence[Requests]) -> Figure:
    """One panel a condition, all on the same axes, so that levels can be compared."""
    import numpy as np

    columns = columns_for(len(panels), layout)
    low = min(float(values.min()) for _, _, values in panels)
    high = max(float(values.max()) for _, _, values in panels)
    longest = max(len(values) for _, _, values in panels)
    drawn = [
        Panel(
            x=scales.numbers(0, longest, 3),
            y=scales.log_times(low, high),
            title=both_ends(name, layout.letters(columns)),
            x_title="request" if place >= len(panels) - columns else "",
            y_labels=place % columns == 0,
            marks=[Raster(np.arange(0.5, len(values)), values, colour)],
        )
        for place, (name, colour, values) in enumerate(panels)
    ]
    return Figure(drawn, 180 if layout.narrow else 220, columns)
