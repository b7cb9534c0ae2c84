# SPDX-License-Identifier: Apache-2.0
"""Waits until a service is ready: by HTTP, TCP or a line in its log."""

import re
import time
from functools import partial
from pathlib import Path

from tare.lab.environments.environment import Attempt, Environment
from tare.lab.environments.launch import RunError
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Process, Processes
from tare.plan import Ready

_POLL_S = 0.02


def wait_until_ready(
    ready: Ready,
    process: Process,
    processes: Processes,
    *,
    address: str,
    port: int,
    log: Path,
    since: float | None = None,
    environment: Environment | None = None,
) -> None:
    """Returns when the check passes; raises RunError when the service ends or time is over.

    Time counts from `since` (of `time.monotonic`), or from now. `environment` is where the address
    is; None for the network of this process.
    """
    attempt = Attempt(address, port, ready.http, ready.status)
    look = partial(_why_not, ready, attempt, log, process, environment)
    until = (time.monotonic() if since is None else since) + ready.timeout / 1e9
    while True:
        why_not = look()
        if process.code is not None:
            said = "".join(f": {line}" for line in last_lines(log, 1))
            stay = "" if process.code else "; start the service in the foreground"
            raise RunError(f"{process.ending} before it was ready{stay}{said}")
        if why_not is None:
            return
        if time.monotonic() > until:
            raise RunError(f"not ready within {ready.timeout / 1e9:g} s: {why_not}")
        processes.wait(_POLL_S)


def _why_not(
    ready: Ready, attempt: Attempt, log: Path, process: Process, environment: Environment | None
) -> str | None:
    """Why a service is not ready; None when it is."""
    if ready.command is not None:
        assert environment is not None
        try:
            environment.exec_beside(process, ready.command)
        except RunError as error:
            return str(error)
        return None
    if ready.log is not None:
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if re.search(ready.log, text, re.MULTILINE):
            return None
        return f"its log has no match for {ready.log!r}"
    return attempt.why_not() if environment is None else environment.why_not_ready(attempt)
