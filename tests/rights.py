# SPDX-License-Identifier: Apache-2.0
"""What a test may do here."""

import os
import signal
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def may_make_namespaces() -> bool:
    """Root may, but not in every container."""
    done = subprocess.run(["unshare", "--mount", "--net", "true"], check=False, capture_output=True)
    return done.returncode == 0


def may_run_containers() -> bool:
    """Root with runc may."""
    from tare.lab.processes.processes import find

    return os.geteuid() == 0 and find("runc") is not None and may_make_namespaces()


def may_run_pods() -> bool:
    """Root with podman and runc may."""
    from tare.lab.processes.processes import find

    return may_run_containers() and find("podman") is not None


def may_run_guests() -> bool:
    """Root with user-mode Linux may, where its kernel works on this CPU."""
    from tare.lab.environments.guest.uml import UserModeLinux

    try:
        UserModeLinux().check()
    except ValueError:
        return False
    return may_make_namespaces()


@cache
def may_use_cluster() -> bool:
    """A user of kubectl may, if its cluster has two nodes that take pods."""
    from tare.lab.environments.pods_across_nodes import PodsAcrossNodes
    from tare.plan.schema.environments import PodsAcrossNodesEnvironment

    try:
        PodsAcrossNodes.check(PodsAcrossNodesEnvironment(type="pods-across-nodes", image="any"))
    except ValueError:
        return False
    return True


def end_rootless_podman(runtime: Path) -> None:
    """Ends the process with which podman keeps the namespace of a user in a runtime directory."""
    with suppress(FileNotFoundError):
        os.kill(int((runtime / "libpod/tmp/pause.pid").read_text()), signal.SIGKILL)
