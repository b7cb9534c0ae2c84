# SPDX-License-Identifier: Apache-2.0
"""What a test may do here."""

import os
import subprocess
from functools import cache


@cache
def may_make_namespaces() -> bool:
    """Root may, but not in every container."""
    done = subprocess.run(["unshare", "--mount", "--net", "true"], check=False, capture_output=True)
    return done.returncode == 0


def may_run_containers() -> bool:
    """Root with runc may."""
    from tare.lab.processes import find

    return os.geteuid() == 0 and find("runc") is not None and may_make_namespaces()


def may_run_pods() -> bool:
    """Root with podman and runc may."""
    from tare.lab.processes import find

    return may_run_containers() and find("podman") is not None


def may_run_guests() -> bool:
    """Root with user-mode Linux may."""
    from tare.lab.environments.guest.uml import KERNEL
    from tare.lab.processes import find

    return may_make_namespaces() and find(KERNEL) is not None
