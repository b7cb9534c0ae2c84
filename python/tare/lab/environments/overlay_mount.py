# SPDX-License-Identifier: Apache-2.0
"""A mount of OverlayFS over a folder: what programs write there is kept separately."""

from pathlib import Path

from tare.lab.environments.host import output

_UNMOUNT = '! mountpoint -q "$0" || umount --lazy "$0"'


def mount_overlay(lower: Path, overlay: Path) -> Path:
    """Mounts `lower`, with the folders of OverlayFS in `overlay`; returns the mount point."""
    upper, work, merged = (overlay / name for name in ("upper", "work", "merged"))
    for folder in (upper, work, merged):
        folder.mkdir(parents=True)
    options = ",".join(overlay_options(lower, upper, work))
    output(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)])
    return merged


def unmount_overlay(overlay: Path) -> tuple[str, ...]:
    """The command that unmounts it, if it is mounted."""
    return ("sh", "-c", _UNMOUNT, str(overlay / "merged"))


def overlay_options(lower: Path, upper: Path, work: Path) -> list[str]:
    """The options of a mount."""
    folders = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    return [f"{key}={_escaped(folder)}" for key, folder in folders.items()]


def _escaped(path: Path) -> str:
    """OverlayFS separates folders by colons, and options by commas."""
    return "".join(f"\\{sign}" if sign in "\\:," else sign for sign in str(path))
