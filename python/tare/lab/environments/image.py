# SPDX-License-Identifier: Apache-2.0
"""Images in podman's storage: their configuration, their files, and what these lack."""

import json
import os
import platform
import shlex
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments import bundle
from tare.lab.environments.host import output
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import find
from tare.native import native
from tare.plan import expected

if TYPE_CHECKING:
    from tare.plan.schema.services import OwnContainer

_FLAGS = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none")
_LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
"""Where programs look for the loader of glibc."""
_LINKS = 40
"""The kernel follows no more symbolic links in one path, either (path_resolution(7))."""


@dataclass(frozen=True)
class Image:
    """What an image says of the programs that run with its files."""

    name: str
    variables: Mapping[str, str]
    user: str
    """`NAME` or `UID`, with `:GROUP` or `:GID` or without; empty for root."""
    directory: Path | None
    entrypoint: Sequence[str] = ()
    arguments: Sequence[str] = ()
    """What follows the entrypoint."""
    ports: Sequence[int] = ()
    """TCP ports that it exposes."""

    def command(self, container: "OwnContainer | None") -> list[str]:
        """The command of a service without one. Raises RunError if there is none."""
        entrypoint, arguments = self.entrypoint, self.arguments
        if container is not None:
            if container.entrypoint is not None:
                # The image's arguments belong to its own entrypoint.
                entrypoint, arguments = container.entrypoint, ()
            if container.arguments is not None:
                arguments = container.arguments
        if not (words := [*entrypoint, *arguments]):
            raise RunError(f"image {self.name} has no command; give the service a command")
        return words

    def process_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables of a program that gets others, too."""
        return {"PATH": bundle.PATH, **self.variables, **variables}

    def check_program(self, root: Path, words: Sequence[str]) -> None:
        """Raises RunError if the files of the image lack what starts a command."""
        folders = self.process_variables({})["PATH"].split(":")
        if not any(os.access(inside(root, f"{folder}/sh"), os.X_OK) for folder in folders):
            raise RunError(
                f"image {self.name} has no sh, which starts each program; use an image with a"
                " shell, or copy a static one into it (busybox)"
            )
        own = Path(native("bin", ""))
        needing = [Path(word).name for word in words if Path(word).is_relative_to(own)]
        loader = _LOADERS[platform.machine()]
        if needing and not inside(root, loader).exists():
            raise RunError(
                f"image {self.name} has no glibc ({loader}), which {needing[0]} needs: the layers"
                " hook, link, log and spans and the fingerprint do not work in it; use an image of"
                " a distribution with glibc, such as Debian"
            )


def podman() -> list[str]:
    """The words that call podman."""
    return [find("podman") or "podman", *_FLAGS]


def check(name: str) -> None:
    """Refuses without podman, or if it has no such image."""
    if find("podman") is None:
        raise expected("podman to be installed, which stores images: get the package podman")
    words = [*podman(), "image", "exists", "--", name]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        quoted = shlex.quote(name)
        get = f"get it with 'sudo podman pull {quoted}'"
        if name.startswith("localhost/"):
            get = f"build it with 'sudo podman build --tag {quoted} FOLDER'"
        raise expected(
            f"an image in podman's storage of root: found no {name!r}; {get}, or from your own"
            f" storage with 'podman save {quoted} | sudo podman load'",
            "image",
        )


def read_image(name: str) -> Image:
    """Reads the configuration of an image. Raises RunError with podman's complaint."""
    words = [*podman(), "image", "inspect", "--format", "{{json .Config}}", "--", name]
    config = json.loads(output(words)) or {}
    variables = dict(each.split("=", 1) for each in config.get("Env") or () if "=" in each)
    directory = config.get("WorkingDir")
    exposed = (port.split("/") for port in config.get("ExposedPorts") or ())
    return Image(
        name,
        variables,
        config.get("User") or "",
        Path(directory) if directory else None,
        config.get("Entrypoint") or (),
        config.get("Cmd") or (),
        [int(port) for port, *kind in exposed if kind in ([], ["tcp"])],
    )


def mount(image: str, name: str) -> list[str]:
    """The command that makes a container of podman with a layer over an image, which is never
    started, and prints where its files are."""
    make = [
        "create", "--pull", "never", "--image-volume", "ignore", "--network", "none",
        "--name", name, "--", image, str(bundle.WAIT),
    ]  # fmt: skip
    return ["sh", "-c", f"{shlex.join([*podman(), *make])} >&2 && exec \"$@\"", "sh",
            *podman(), "mount", name]  # fmt: skip


def removal(name: str) -> tuple[str, ...]:
    """The command that removes such a container, if it exists."""
    return (*podman(), "rm", "--force", "--time", "0", "--ignore", name)


def user(root: Path, text: str) -> dict[str, Any]:
    """OCI's `user` of an image's user, by the image's /etc/passwd and /etc/group.

    Raises RunError for a name that they do not have.
    """
    name, _, group = text.partition(":")
    name = name or "0"
    users = {fields[0]: fields for fields in _entries(root, "/etc/passwd", 4)}
    groups = _entries(root, "/etc/group", 3)
    by_number = (fields for fields in users.values() if fields[2] == name)
    found = users.get(name) or next(by_number, None)
    if found is None and not name.isdecimal():
        raise RunError(
            f"the image has no user {name!r} in /etc/passwd; change the USER of the image"
        )
    uid, gid = (int(name), 0) if found is None else (int(found[2]), int(found[3]))
    if group:
        named = [fields[2] for fields in groups if fields[0] == group]
        if not named and not group.isdecimal():
            raise RunError(
                f"the image has no group {group!r} in /etc/group; change the USER of the image"
            )
        return {"uid": uid, "gid": int(named[0] if named else group)}
    member = None if found is None else found[0]
    more = [int(each[2]) for each in groups if member in (each[3:4] or [""])[0].split(",")]
    return {"uid": uid, "gid": gid, "additionalGids": more}


def give_files(owner: Mapping[str, Any], paths: Iterable[Path]) -> None:
    """Gives files, and folders with all in them, to OCI's `user`."""
    for path in paths:
        for file in (path, *path.rglob("*")):
            os.chown(file, owner["uid"], owner["gid"], follow_symlinks=False)


def inside(root: Path, path: str) -> Path:
    """Where a file of a root is on this host: links in it begin at the root, too."""
    parts, found, links = deque(Path("/", path).parts[1:]), root, 0
    while parts:
        step = found / parts.popleft()
        if step.name == "..":
            found = root if found == root else found.parent
        elif step.is_symlink() and links < _LINKS:
            links += 1
            target = step.readlink()
            if target.is_absolute():
                found = root
            parts.extendleft(reversed([part for part in target.parts if part != "/"]))
        else:
            found = step
    return found


def _entries(root: Path, path: str, count: int) -> list[list[str]]:
    """The lines of a file of the image, in fields by colons, if they have enough fields."""
    file = inside(root, path)
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [line.strip().split(":") for line in lines]
    return [each for each in found if len(each) >= count and each[2].isdecimal()]
