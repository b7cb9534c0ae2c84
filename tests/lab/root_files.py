# SPDX-License-Identifier: Apache-2.0
"""Root file systems that have a shell and little else, and images of them."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tare.native import native

PODMAN = ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
PROGRAMS = ("sh", "sleep", "cat", "id")
"""What every root has."""
SERVICES = ("nginx", "echo", "sed", "nproc", "uname", "readlink", "stat")
"""A service, and what the fingerprint of an environment calls."""
USERS = "root:x:0:0::/:\nnobody:x:65534:65534::/:\nshop:x:1234:1235::/opt/shop:\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\nshop:x:1235:\nstaff:x:50:other,shop\n"


def make_root(folder: Path, *programs: str) -> None:
    """Copies a shell, programs and their libraries, and writes /etc/only."""
    found = [str(shutil.which(name)) for name in (*PROGRAMS, *programs)]
    linked = subprocess.check_output(["ldd", *found], text=True)
    lines = [line.split() for line in linked.splitlines() if "/lib" in line and "(" in line]
    for file in sorted({*found, *(line[-2] for line in lines)}):
        copy = folder / file[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(file).resolve(), copy)
    (folder / "etc").mkdir()
    (folder / "etc/only").write_text("in the image\n")


def make_root_of_services(folder: Path) -> None:
    """A root with nginx, a Python, what Tare's programs and layers need, users and groups."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    python = str(Path(sys.executable).resolve())
    make_root(
        folder, *SERVICES, python, native("bin", "tare-load"), native("lib", "libtare_hook.so")
    )
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    for path in standard:
        without = shutil.ignore_patterns(
            "*-packages", "__pycache__", "test*", "config-*", "idlelib"
        )
        shutil.copytree(path, folder / path[1:], ignore=without, dirs_exist_ok=True)
    link = folder / sys.executable[1:]
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(python)
    (folder / "etc/passwd").write_text(USERS)
    (folder / "etc/group").write_text(GROUPS)
    (folder / "var/lib/nginx").mkdir(parents=True)


@contextmanager
def image_of(root: Path, name: str, changes: Sequence[str] = ()) -> Iterator[str]:
    """An image in podman's storage with the files of a folder; a change is a line of a
    Containerfile."""
    image = f"localhost/tare-test-{os.getpid()}:{name}"
    archive = root.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname="/")
    options = [word for change in changes for word in ("--change", change)]
    subprocess.run([*PODMAN, "import", "-q", *options, str(archive), image], check=True)
    archive.unlink()
    try:
        yield image
    finally:
        subprocess.run([*PODMAN, "image", "rm", "--force", image], check=True)
