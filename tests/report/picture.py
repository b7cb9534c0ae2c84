# SPDX-License-Identifier: Apache-2.0
"""The README's picture of a report: `python -m tests.report.picture RESULT_FOLDER OUT.png`.

On a desk in light and on a telephone in dark, side by side, from the report as it is.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.report.browser import browse

HEIGHT = 690
GAP = 28
BACKGROUND = "#d5d9de"
AROUND = """<body style="margin:0"><iframe src="report.html" width="{width}" height="{height}"
style="border:0;display:block"></iframe>"""


def picture(result: Path, out: Path) -> None:
    """Writes a PNG of a result's report."""
    desk, telephone = screen(result, 1280, dark=False), screen(result, 390, dark=True)
    size = (desk.width + telephone.width + 3 * GAP, HEIGHT + 2 * GAP)
    both = Image.new("RGB", size, BACKGROUND)
    both.paste(desk, (GAP, GAP))
    both.paste(telephone, (desk.width + 2 * GAP, GAP))
    both.quantize(256, dither=Image.Dither.NONE).save(out, optimize=True)


def screen(result: Path, width: int, *, dark: bool) -> Image.Image:
    """The first screen of the report at one width."""
    report = (result / "report.html").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        Path(folder, "report.html").write_text(report, encoding="utf-8")
        page.write_text(AROUND.format(width=width, height=HEIGHT))
        # Chromium's window is never narrower than 500 pixels: the frame is.
        size = f"--window-size={max(width, 500)},{HEIGHT}"
        browse(page, f"--screenshot={shot}", size, dark=dark)
        with Image.open(shot) as image:
            return image.convert("RGB").crop((0, 0, width, HEIGHT))


if __name__ == "__main__":
    picture(Path(sys.argv[1]), Path(sys.argv[2]))
