# SPDX-License-Identifier: Apache-2.0
"""What `tare --version` prints: the version, the commit and the native parts that are built."""

from pathlib import Path

from tare import __version__
from tare.native import commit, native

PARTS = {
    "hook": ("bin/tare-hook", "lib/libtare_hook.so"),
    "link": ("bin/tare-link", "lib/libtare_link.so"),
    "load": ("bin/tare-load",),
    "log": ("bin/tare-log", "lib/libtare_log.so"),
    "map": ("bin/tare-map",),
    "spans": ("bin/tare-spans",),
    "log for Java": ("java/tare-log.jar", "java/tare-log-agent.jar"),
}
"""The files of each part."""


def version_text() -> str:
    """Two lines, or three where a part is missing."""
    built = {part: all(map(_exists, files)) for part, files in PARTS.items()}
    lines = [f"tare {__version__} (commit {commit()})"]
    for title, state in (("parts", True), ("not built", False)):
        if names := [part for part, is_built in built.items() if is_built is state]:
            lines.append(f"{title}: {', '.join(names)}")
    return "\n".join(lines)


def _exists(file: str) -> bool:
    return Path(native(*file.split("/"))).exists()
