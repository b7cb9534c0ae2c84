# SPDX-License-Identifier: Apache-2.0
"""Container runtimes: a daemon must answer, a runtime must have run a container."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

from tare.lab.doctor.commands import ask
from tare.lab.doctor.finding import Found
from tare.lab.environments.minimal_elf import exit_program
from tare.lab.processes.processes import find


def docker() -> Found:
    """The server's answer: a client alone runs nothing."""
    program = find("docker")
    if program is None:
        return _absent("docker")
    well, said = ask(program, "version", "--format", "{{.Server.Version}}")
    if not well:
        absent = {"path": program, "version": None}
        return Found("no", f"{program} reaches no server: {said}", absent)
    return Found("yes", f"server {said} answers", {"path": program, "version": said})


def podman() -> Found:
    """What podman finds with a storage of its own in the probe's folder."""
    program = find("podman")
    if program is None:
        return _absent("podman")
    here = _keep_to_this_folder()
    storage = ("--root", f"{here}/root", "--runroot", f"{here}/run", "--tmpdir", f"{here}/tmp")
    try:
        well, said = ask(
            program, *storage, "--storage-driver", "vfs",
            "info", "--format", "{{.Version.Version}} with {{.Host.OCIRuntime.Name}}",
            limit_s=8,
        )  # fmt: skip
    finally:
        # podman leaves a process that keeps the user's namespace.
        with suppress(OSError, ValueError):
            os.kill(int((here / "tmp/pause.pid").read_text(encoding="utf-8")), signal.SIGKILL)
    if not well:
        return Found("no", f"{program} fails: {said}", {"path": program, "version": None})
    return Found("yes", f"podman {said} answers", {"path": program, "version": said.split()[0]})


def runc() -> Found:
    return _runtime("runc")


def crun() -> Found:
    return _runtime("crun")


def _runtime(name: str) -> Found:
    """Runs a container of one program of 16 bytes and removes it."""
    program = find(name)
    if program is None:
        return _absent(name)
    here = _keep_to_this_folder()
    version = ask(program, "--version", line=0)[1].split()[-1]
    details = {"path": program, "version": version}
    _write_bundle(here / "bundle")
    container = f"tare-doctor-{os.getpid()}"
    try:
        well, said = ask(
            program, "--root", str(here / "state"),
            "run", "--bundle", str(here / "bundle"), container,
        )  # fmt: skip
    finally:
        ask(program, "--root", str(here / "state"), "delete", "--force", container)
    if not well:
        return Found("no", f"{program} runs no container: {said}", details)
    return Found("yes", f"{name} ran a container", details)


def _keep_to_this_folder() -> Path:
    """Even `crun --version` makes a folder, and it would outlast this probe elsewhere."""
    here = Path.cwd()
    os.environ["XDG_RUNTIME_DIR"] = str(here)
    return here


def _absent(name: str) -> Found:
    return Found("no", f"{name} is not installed", {"path": None, "version": None})


def _write_bundle(bundle: Path) -> None:
    """An OCI bundle (runtime-spec, config.md) whose program ends at once with exit code 0."""
    root = bundle / "rootfs"
    # crun needs both folders, runc makes what is missing.
    for folder in ("dev", "proc"):
        (root / folder).mkdir(parents=True)
    program = root / "exit"
    program.write_bytes(exit_program())
    program.chmod(0o755)
    namespaces = ["mount", "pid", "ipc", "uts", "network"]
    user: dict[str, object] = {}
    if os.geteuid() != 0:
        namespaces.append("user")
        user = {
            "uidMappings": [{"containerID": 0, "hostID": os.geteuid(), "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": os.getegid(), "size": 1}],
        }
    config = {
        "ociVersion": "1.0.0",
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["/exit"], "cwd": "/"},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"namespaces": [{"type": kind} for kind in namespaces], **user},
    }
    (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")
