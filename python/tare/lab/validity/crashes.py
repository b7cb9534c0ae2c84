# SPDX-License-Identifier: Apache-2.0
"""The service, a proxy or an agent of the run exited under load."""

from collections.abc import Iterable

from tare.lab.processes.processes import Process


def invalid_reason(processes: Iterable[Process], service: Process | None) -> str | None:
    """Of the last of these processes that exited."""
    reason = None
    for process in processes:
        if process.code is not None:
            what = "the service" if process is service else process.name
            reason = f"{what} {process.ending} during the load"
    return reason
