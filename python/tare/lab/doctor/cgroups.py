# SPDX-License-Identifier: Apache-2.0
"""Control groups: which version, which controllers, and whether a group can be made."""

import os
from pathlib import Path
from typing import Any

from tare.lab.doctor.finding import Found
from tare.lab.machine.fingerprint import cgroup_version
from tare.proc import proc_lines


def cgroups() -> Found:
    version = cgroup_version()
    if version is None:
        return Found("no", "no cgroup file system is mounted", {"version": None})
    trees = [
        {"version": tree, "controllers": controllers, "can_create": _can_make(folder)}
        for tree, controllers, folder in _own_folders()
    ]
    details = {"version": version, "trees": trees}
    text = "; ".join(f"{tree}: {', '.join(names) or 'none'}" for tree, names in _by_version(trees))
    text = f"{version} (controllers {text})"
    makeable = [tree["can_create"] for tree in trees]
    if not any(makeable):
        return Found("no", f"{text}; none can be created by this user", details)
    if not all(makeable):
        return Found("partly", f"{text}; some can be created", details)
    return Found("yes", f"{text}; can be created", details)


def _by_version(trees: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [
        (
            version,
            sorted(
                # A tree may be mounted at several places.
                {
                    name
                    for tree in trees
                    if tree["version"] == version
                    for name in tree["controllers"]
                }
            ),
        )
        for version in sorted({tree["version"] for tree in trees})
    ]


def _own_folders() -> list[tuple[str, list[str], Path]]:
    """Of each mounted tree its version, its controllers, and where this process stands in it."""
    # One line a tree, `number:controllers:path`; v2 has no controllers there, and number 0.
    groups = proc_lines(Path("/proc/self/cgroup").read_bytes())
    paths = {names: path for _, names, path in (line.split(":", 2) for line in groups)}
    folders = []
    for mount in proc_lines(Path("/proc/self/mounts").read_bytes()):
        _, point, kind, options, *_ = mount.split(" ")
        if kind == "cgroup2":
            folder = _inside(point, paths.get("", "/"))
            available = folder / "cgroup.controllers"
            controllers = (
                available.read_text(encoding="utf-8").split() if available.exists() else []
            )
            folders.append(("v2", sorted(controllers), folder))
        elif kind == "cgroup":
            for names, path in paths.items():
                tree = set(names.split(","))
                if names and "=" not in names and tree <= set(options.split(",")):
                    folders.append(("v1", sorted(tree), _inside(point, path)))
    return folders


def _inside(point: str, path: str) -> Path:
    """A container sees its own cgroup as the root of the mount: the path may not exist there."""
    folder = Path(point + path)
    return folder if folder.is_dir() else Path(point)


def _can_make(folder: Path) -> bool:
    child = folder / f"tare-doctor-{os.getpid()}"
    try:
        child.mkdir()
    except OSError:
        return False
    child.rmdir()
    return True
