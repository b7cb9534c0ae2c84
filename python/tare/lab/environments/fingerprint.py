# SPDX-License-Identifier: Apache-2.0
"""What a program pays for kernel, memory and arithmetic in each environment, measured inside."""

import json
from pathlib import Path

from tare.lab import environments
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import Processes
from tare.native import native
from tare.plan.schema.environments import EnvironmentBase

_MEMORY = 192 * 2**20
_SHARE = 4
"""A program may use this part of its memory limit for the measurement."""


def fingerprint(settings: EnvironmentBase, processes: Processes, work: Path) -> dict[str, float]:
    """`tare-load fingerprint` in an environment made for it, which writes its files below `work`.

    Raises RunError or StartError with the reason if it cannot be measured.
    """
    place = environments.of_run(settings, processes, f"fingerprint/{settings.name}")
    folder = work / "fingerprint"
    folder.mkdir(exist_ok=True)
    program = native("bin", "tare-load")
    limit = getattr(settings, "memory", None)
    memory = _MEMORY if limit is None else min(_MEMORY, limit // _SHARE)
    words = [program, "fingerprint", "--folder", str(folder), "--memory", str(memory)]
    try:
        place.prepare()
        place.copy_in([work if settings.has_generator else folder])
        return {name: float(value) for name, value in json.loads(place.exec(words)).items()}
    except ValueError as error:
        raise RunError(f"{program}: {error}") from error
    finally:
        place.stop()
