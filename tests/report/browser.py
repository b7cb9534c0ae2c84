# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that talks to nobody."""

import shutil
import subprocess
from pathlib import Path

from tests.waiting import SECONDS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--virtual-time-budget=10000",
)


def browse(page: Path, *flags: str, dark: bool = False) -> str:
    """Opens a page, with a profile beside it, and returns what Chromium prints."""
    return subprocess.run(
        [
            str(CHROMIUM),
            *FLAGS,
            f"--user-data-dir={page.parent / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    ).stdout
