# SPDX-License-Identifier: Apache-2.0
"""From Matplotlib to one inline SVG that follows the page's theme and width.

Matplotlib draws with stand-in colours; each becomes a CSS variable of the page, so one drawing
serves light and dark. Every figure is drawn twice, wide and narrow, and CSS shows the one that
fits: text stays readable on a telephone because it is laid out for it, not shrunk.
"""

import base64
import hashlib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, RULE, BAND, PAPER = "#010101", "#010102", "#010103", "#010104", "#010105"
_VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule", BAND: "band", PAPER: "paper"}

# Each has at least 3:1 contrast on the page in light and in dark, so that rasterised layers,
# which cannot follow the theme, serve both. The baseline is the first.
SERIES = ("#78808c", "#d1571f", "#2f7fd6", "#17917a", "#a660c8", "#a67c00", "#d64a7f", "#5a8f29")

_DPI = 96
_STRENGTHS = 8


@dataclass(frozen=True)
class Layout:
    """One of the two widths that a figure is drawn for, in CSS pixels."""

    name: str
    width: int
    text: float

    @property
    def narrow(self) -> bool:
        return self.name == "narrow"

    def figure(
        self, height: float, rows: int = 1, columns: int = 1, *, shared: bool = False
    ) -> "tuple[Figure, list[Axes]]":
        """A figure of `height` CSS pixels, and its axes row by row, on one scale if shared."""
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(
            figsize=(self.width / _DPI, height / _DPI),
            layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02 if rows == 1 else 0.06),
        )
        axes = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared)
        for one in axes.flat:
            _quiet(one)
        return figure, list(axes.flat)


LAYOUTS = (Layout("wide", 960, 13), Layout("narrow", 350, 12))

Draw = Callable[[Layout], "Figure"]


def inline(draw: Draw, label: str) -> Markup:
    """Both drawings of one figure as inline SVG; `label` says its numbers to who cannot see it."""
    import matplotlib as mpl

    drawings = []
    for layout in LAYOUTS:
        points = layout.text * 0.75
        settings: dict[Any, Any] = {
            "svg.fonttype": "none",
            "svg.hashsalt": "tare",
            "font.family": ["DejaVu Sans"],
            "font.size": points,
            "axes.titlesize": points,
            "text.color": INK,
            "axes.edgecolor": RULE,
            "axes.labelcolor": SOFT,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
            "grid.color": RULE,
            "text.parse_math": False,
        }
        # Names may hold characters that the font used for measuring lacks; the browser's has them.
        with mpl.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            drawings.append(_svg(draw(layout), layout, label))
    return Markup("\n").join(drawings)


def _quiet(axes: "Axes") -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, pad=6)
    axes.grid(axis="y", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)


def _svg(figure: "Figure", layout: Layout, label: str) -> Markup:
    figure.patch.set_visible(False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", dpi=1.5 * 72, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    view = re.search(r'viewBox="([^"]+)"', text)
    assert view is not None  # Matplotlib always writes it
    body = text[text.index("<defs>", view.end()) : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r" font-family: [^;\"]*;", "", body)
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'xlink:href="data:image/png;base64,([^"]*)"', _smaller, body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r' (?:d|x|y)="[^"]*"', _rounded, body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = _own_names(body, f"f{hashlib.sha256(body.encode()).hexdigest()[:8]}-")
    head = (
        f'<svg class="{layout.name}" viewBox="{view[1]}" role="img" aria-label="{escape(label)}">'
    )
    body = re.sub(r"\s*\n\s*", " ", body).replace("<g/>", "")
    return Markup(head + body + "</svg>")


def _rounded(places: re.Match[str]) -> str:
    """A hundredth of a point is less than anybody sees; six decimals are half of the file."""
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", places[0])


def _smaller(image: re.Match[str]) -> str:
    """A rasterised layer has one colour in many strengths: a palette takes half of the bytes."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(image[1])))
    if picture.getcolors(_STRENGTHS):
        return image[0]
    buffer = io.BytesIO()
    picture.quantize(_STRENGTHS, Image.Quantize.FASTOCTREE).save(buffer, "png", optimize=True)
    return f'href="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"'


def _own_names(body: str, prefix: str) -> str:
    """Names what is referred to apart from every other figure's, and nothing else."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", body)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", body)
