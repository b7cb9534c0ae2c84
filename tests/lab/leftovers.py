# SPDX-License-Identifier: Apache-2.0
"""What environments have left on this machine: of each kind, everything of one `tare run`."""

import json
import subprocess
from pathlib import Path

from tests.changing_folders import matches
from tests.in_process import tare
from tests.lab.root_files import PODMAN

from tare.running.directory import runtime_directory

CONTROL_GROUPS, INTERFACES = Path("/sys/fs/cgroup"), Path("/sys/class/net")
GROUPS_OF_PODS = "**/libpod_parent/*/"
BEFORE = frozenset(matches(CONTROL_GROUPS, GROUPS_OF_PODS))
"""What others have left."""


def owned(process: "subprocess.Popen[str]") -> list[str]:
    """The names of what `tare ps` lists of a process."""
    listed = json.loads(tare("ps", "--json").stdout)["environments"]
    return [
        environment["name"]
        for environment in listed
        if environment["owner"] == process.pid and environment["in_use"]
    ]


def of_containers(pid: int) -> list[str]:
    """What a process has in the file systems of the kernel and in the runtime directory."""
    found = [
        *matches(CONTROL_GROUPS, f"**/tare-{pid}-*"),
        *matches(INTERFACES, f"tare{pid}-*"),
        *matches(INTERFACES, f"tbr{pid}-*"),
        *matches(runtime_directory(), f"*/*{pid}-*"),
    ]
    return [*map(str, found)]


def of_images(pid: int) -> list[str]:
    """The names of podman's containers, and what is left of those that run."""
    words = ["ps", "--all", "--format", "{{.Names}}", "--filter", f"name=tare-{pid}-"]
    names = subprocess.check_output([*PODMAN, *words], text=True).split()
    return [*names, *of_containers(pid)]


def of_cluster(pid: int) -> list[str]:
    """Pods in the cluster of kubectl that a process made."""
    selector = "--selector=app.kubernetes.io/managed-by=tare"
    words = ["kubectl", "get", "pods", selector, "--output=name"]
    names = subprocess.check_output(words, text=True).split()
    return [name for name in names if name.startswith(f"pod/tare-{pid}-")]


def of_pods(pid: int) -> list[str]:
    """In podman, among the mounts, and in the runtime directory."""
    filters = ["--filter", f"name=tare-pod-{pid}-"]
    others = subprocess.check_output(
        [*PODMAN, "pod", "ps", "--no-trunc", "--format", "{{.ID}}"], text=True
    ).split()
    found = [
        subprocess.run([*PODMAN, *words], capture_output=True, text=True, check=True).stdout
        for words in (
            ["ps", "-a", "--format", "{{.Names}}", *filters],
            ["pod", "ps", "--format", "{{.Name}}", *filters],
            ["images", "--format", "{{.Repository}}", "--filter", f"reference=*tare-pod-{pid}-*"],
        )
    ]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    groups = {*matches(CONTROL_GROUPS, GROUPS_OF_PODS)} - BEFORE
    # podman keeps a group for the monitors of containers without a pod.
    kept = {*others, "conmon"}
    return [
        *(str(group) for group in groups if group.name not in kept),
        *(line for text in found for line in text.splitlines()),
        *(line for line in mounts if f"tare-pod-{pid}-" in line),
        *map(str, matches(runtime_directory(), f"*/*pod-{pid}-*")),
    ]


def of_guests(pid: int) -> list[str]:
    """Network interfaces, and what is in the runtime directory."""
    found = [
        *matches(INTERFACES, f"tare{pid}v*"),
        *matches(runtime_directory(), f"*/tare{pid}v*"),
    ]
    return [*map(str, found)]
