# SPDX-License-Identifier: Apache-2.0
"""A layer of OverlayFS over a folder: what programs write there stays apart."""

from pathlib import Path

from tare.lab.environments.host import output

_UNMOUNT = '! mountpoint -q "$0" || umount --lazy "$0"'


def mount_layer(lower: Path, layer: Path) -> Path:
    """Mounts it, with its folders in `layer`, and returns where."""
    upper, work, merged = (layer / name for name in ("upper", "work", "merged"))
    for folder in (upper, work, merged):
        folder.mkdir(parents=True)
    options = ",".join(overlay_options(lower, upper, work))
    output(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)])
    return merged


def unmount_layer(layer: Path) -> tuple[str, ...]:
    """The command that unmounts it, if it is mounted."""
    return ("sh", "-c", _UNMOUNT, str(layer / "merged"))


def overlay_options(lower: Path, upper: Path, work: Path) -> list[str]:
    """The options of a mount."""
    folders = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    return [f"{key}={_escaped(folder)}" for key, folder in folders.items()]


def _escaped(path: Path) -> str:
    """OverlayFS separates folders by colons, and options by commas."""
    return "".join(f"\\{sign}" if sign in "\\:," else sign for sign in str(path))
