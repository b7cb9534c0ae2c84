# SPDX-License-Identifier: Apache-2.0
"""The OCI bundle of a container that has the files of this host (runtime-spec, config.md)."""

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.lab.environments.minimal_elf import wait_program
from tare.lab.environments.overlay_mount import overlay_options

OWN = ("dev", "lost+found", "proc", "run", "sys", "tmp")
"""Folders of the root that a container does not share with this host."""
LAYERED = ("var",)
"""Folders of the root where a container has a layer of its own over the files of this host: servers
write to /var what has no place in their configuration."""
CAPABILITIES = [
    f"CAP_{name}"
    for name in (
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
        "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    )
]  # fmt: skip
"""The capabilities that docker grants."""
PERIOD_US = 100_000
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of a container with files of its own, as docker has it."""
WAIT = Path("/.tare-wait")
"""The first process of every container."""


@dataclass(frozen=True)
class Contents:
    """What a container has besides the files of this host."""

    volumes: Sequence[Path]
    """Files and folders of this host where programs may write."""
    layered: Sequence[tuple[Path, Path]]
    """Folders of this host, each with the folder where OverlayFS stores what programs write."""
    visible: Sequence[Path]
    """Folders to show read-only that are below one of `OWN`."""
    network: str | None
    """A network namespace to join; None for this host's."""
    cpus: float | None
    memory: int | None
    root: Path | None = None
    """The folder with all other files; None for those of this host."""
    mounts: Mapping[Path, Path] = field(default_factory=dict)
    """Files and folders of this host that are read-only at another path."""


def write(bundle: Path, name: str, contents: Contents, home: Path | None = None) -> None:
    """Writes a bundle whose first process waits; `name` is its control group, too.

    `home` is where the bundle will be, unless it stays.
    """
    home = home or bundle
    wait = bundle / "wait"
    wait.write_bytes(wait_program())
    wait.chmod(0o755)
    mounts = [*_kernel(), _bind(WAIT, "ro", home / wait.name)]
    if contents.root is None:
        root = home / "rootfs"
        (bundle / root.name).mkdir()
        for entry in Path("/").iterdir():
            if entry.is_symlink():
                (bundle / root.name / entry.name).symlink_to(entry.readlink())
        mounts += [*_folders_of_its_own(), *_host(home / "layers")]
        for name_ in LAYERED:
            _make_layer(bundle / "layers" / name_)
    else:
        root = contents.root
    kinds = ["mount", "pid", "ipc", "uts"]
    namespaces: list[dict[str, str]] = [{"type": kind} for kind in kinds]
    if contents.network is not None:
        namespaces.append({"type": "network", "path": contents.network})
    config = {
        "ociVersion": "1.0.2",
        "process": process([str(WAIT)], Path("/"), {}),
        "root": {"path": str(root)},
        "hostname": name,
        "mounts": [*mounts, *_given(contents)],
        "linux": {
            "namespaces": namespaces,
            "cgroupsPath": f"/{name}",
            "resources": _resources(contents),
        },
    }
    (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")


def process(
    words: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    user: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A program in a container, of this user (OCI's `user`) unless another is given."""
    return {
        "terminal": False,
        "user": user or {"uid": os.geteuid(), "gid": os.getegid()},
        "args": [*words],
        "env": [f"{name}={value}" for name, value in variables.items()],
        "cwd": str(directory),
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), CAPABILITIES),
    }


def is_hidden(path: Path) -> bool:
    """Whether a container has no such file of this host, unless it is mounted."""
    return any(path.is_relative_to(f"/{name}") for name in OWN)


def named(texts: Iterable[str], written: Sequence[Path]) -> list[Path]:
    """The files and folders of this host that words or variables name, and that are below /tmp or
    /run: without them, a program would start without its library, or not at all.

    Those in or around `written`, where programs may write, are left out.
    """
    parts = {part for text in texts for part in re.split(r"[\s:;,='\"]+", text)}
    paths = [Path(os.path.normpath(part)) for part in parts if part.startswith(("/tmp/", "/run/"))]
    return [
        path
        for path in paths
        if path.parent != Path("/") and path.exists() and not _is_in_or_around(path, written)
    ]


def _is_in_or_around(path: Path, others: Sequence[Path]) -> bool:
    return any(path.is_relative_to(other) or other.is_relative_to(path) for other in others)


def _kernel() -> Iterable[dict[str, Any]]:
    yield {"destination": "/proc", "type": "proc", "source": "proc"}
    for path, mode in (("/dev", "755"), ("/dev/shm", "1777")):
        yield _mount("tmpfs", Path(path), "tmpfs", "nosuid", f"mode={mode}")
    yield _mount("sysfs", Path("/sys"), "sysfs", "nosuid", "noexec", "nodev", "ro")
    yield _mount("cgroup", Path("/sys/fs/cgroup"), "cgroup", "nosuid", "noexec", "nodev", "ro")


def _folders_of_its_own() -> Iterable[dict[str, Any]]:
    for path, mode in (("/tmp", "1777"), ("/run", "755")):
        yield _mount("tmpfs", Path(path), "tmpfs", "nosuid", f"mode={mode}")


def _host(layers: Path) -> Iterable[dict[str, Any]]:
    for entry in sorted(Path("/").iterdir()):
        if entry.name in LAYERED and not entry.is_symlink():
            yield _overlay(entry, layers / entry.name)
        elif entry.name not in OWN and not entry.is_symlink():
            yield _bind(entry, "ro")


def _given(contents: Contents) -> Iterable[dict[str, Any]]:
    """The folders of a run: those that contain others come first."""
    given = {
        # A whole folder such as /tmp is a folder where programs may write.
        path: _bind(path, "rw" if path.parent == Path("/") else "ro")
        for path in contents.visible
        if contents.root is not None or is_hidden(path)
    }
    given |= {path: _bind(path, "ro", source) for path, source in contents.mounts.items()}
    given |= {path: _bind(path, "rw") for path in contents.volumes}
    for path, layer in contents.layered:
        _make_layer(layer)
        # The upper folder's owner and mode are those of the merged folder.
        status = path.stat()
        os.chown(layer / "upper", status.st_uid, status.st_gid)
        (layer / "upper").chmod(stat.S_IMODE(status.st_mode))
        given[path] = _overlay(path, layer)
    return [given[path] for path in sorted(given)]


def _make_layer(layer: Path) -> None:
    for name in ("upper", "work"):
        (layer / name).mkdir(parents=True, exist_ok=True)


def _overlay(path: Path, layer: Path) -> dict[str, Any]:
    upper, work = layer / "upper", layer / "work"
    return _mount("overlay", path, "overlay", *overlay_options(path, upper, work))


def _bind(path: Path, mode: str, source: Path | None = None) -> dict[str, Any]:
    return _mount("bind", path, str(source or path), "rbind", mode)


def _mount(kind: str, path: Path, source: str, *options: str) -> dict[str, Any]:
    return {"destination": str(path), "type": kind, "source": source, "options": [*options]}


def _resources(contents: Contents) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if contents.cpus is not None:
        found["cpu"] = {"quota": round(contents.cpus * PERIOD_US), "period": PERIOD_US}
    if contents.memory is not None:
        found["memory"] = {"limit": contents.memory}
    return found
