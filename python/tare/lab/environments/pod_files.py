# SPDX-License-Identifier: Apache-2.0
"""What podman makes a pod of: a Kubernetes manifest, an image, and its own configuration."""

import io
import json
import re
import resource
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.lab.environments import bundle
from tare.lab.environments.bundle import WAIT
from tare.lab.environments.minimal_elf import wait_program

DOMAIN = "localhost"


@dataclass(frozen=True)
class Volume:
    """A file or folder of this host in a container."""

    source: Path
    path: Path
    """In the container."""
    read_only: bool = True


@dataclass(frozen=True)
class PodContainer:
    """One container of a pod."""

    name: str
    image: str
    volumes: Sequence[Volume]
    cpus: float | None = None
    memory: int | None = None


def container_name(program: str, number: int) -> str:
    """A DNS label for a program, as Kubernetes wants it, and unlike that of other numbers."""
    label = re.sub(r"[^a-z0-9]+", "-", program.rpartition("/")[2].lower()).strip("-")
    return f"{label[:40].strip('-') or 'program'}-{number}"


def host_volumes(var: Path) -> list[Volume]:
    """The folders of this host, at their own paths; `var` is shown as /var."""
    left_out = (*bundle.OWN, *bundle.LAYERED)
    entries = [path for path in sorted(Path("/").iterdir()) if path.name not in left_out]
    # Kubernetes allows no colon in a path.
    shared = [
        Volume(path, path) for path in entries if not path.is_symlink() and ":" not in path.name
    ]
    return [Volume(var, Path("/var"), read_only=False), *shared]


def manifest(name: str, containers: Sequence[PodContainer]) -> dict[str, Any]:
    """The Kubernetes manifest (v1, Pod). Containers see the processes of each other: so the load
    generator can read the CPU time of the service."""
    sources = dict.fromkeys(volume.source for each in containers for volume in each.volumes)
    names = {source: f"v{number}" for number, source in enumerate(sources)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "shareProcessNamespace": True,
            "terminationGracePeriodSeconds": 0,
            "volumes": [
                {"name": volume, "hostPath": {"path": str(source)}}
                for source, volume in names.items()
            ],
            "containers": [_container(container, names) for container in containers],
        },
    }


def _container(container: PodContainer, names: Mapping[Path, str]) -> dict[str, Any]:
    limits = {
        "cpu": None if container.cpus is None else f"{round(container.cpus * 1000)}m",
        "memory": None if container.memory is None else str(container.memory),
    }
    return {
        "name": container.name,
        "image": container.image,
        "imagePullPolicy": "Never",
        "command": [str(WAIT)],
        "resources": {"limits": {key: value for key, value in limits.items() if value}},
        "volumeMounts": [
            {"name": names[each.source], "mountPath": str(each.path), "readOnly": each.read_only}
            for each in sorted(container.volumes, key=lambda each: each.path)
        ],
    }


def write_image(file: Path) -> None:
    """Writes an archive with the top folders and links of this host, and the program `WAIT`.

    The folders are empty: the containers have those of this host as volumes.
    """
    entries = {path.name: path for path in Path("/").iterdir()}
    with tarfile.open(file, "w:") as archive:
        for name in sorted({*entries, "run", "tmp", "var"}):
            member = tarfile.TarInfo(name)
            if name in entries and entries[name].is_symlink():
                member.type, member.linkname = tarfile.SYMTYPE, str(entries[name].readlink())
            elif name not in entries or entries[name].is_dir():
                member.type = tarfile.DIRTYPE
                member.mode = 0o1777 if name == "tmp" else 0o755
            archive.addfile(member)
        wait = wait_program()
        member = tarfile.TarInfo(str(WAIT.relative_to("/")))
        member.mode, member.size = 0o755, len(wait)
        archive.addfile(member, io.BytesIO(wait))


def configuration(image: str) -> str:
    """The file containers.conf: what podman's own defaults would need other programs for, or
    rights that not every root has."""
    # podman lowers its own limit of processes to the number of PIDs, and cannot go above.
    most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8"))
    processes = [
        most if limit < 0 else min(limit, most) for limit in resource.getrlimit(_PROCESSES)
    ]
    limits = [
        f"{name}={soft}:{hard}"
        for name, (soft, hard) in (("nofile", resource.getrlimit(_FILES)), ("nproc", processes))
    ]
    return "".join(_lines({
        "containers": {"default_ulimits": limits, "pids_limit": 0, "log_driver": "k8s-file"},
        "engine": {
            "runtime": "runc",
            "cgroup_manager": "cgroupfs",
            "events_logger": "none",
            "infra_image": image,
        },
    }))  # fmt: skip


_FILES, _PROCESSES = resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC


def _lines(tables: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for table, keys in tables.items():
        yield f"[{table}]\n"
        for key, value in keys.items():
            yield f"{key} = {json.dumps(value)}\n"
