# SPDX-License-Identifier: Apache-2.0
"""What a program pays for kernel, memory and arithmetic in each environment, measured inside."""

import json
import os
from pathlib import Path

from tare.atomic_files import empty
from tare.lab import environments
from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.launch import RunError
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Processes
from tare.native import native
from tare.plan.schema.environments import EnvironmentBase

_MEMORY = 192 * 2**20
_SHARE = 4
"""A program may use this part of its memory limit for the measurement."""
_MESSAGE, _ROUND_TRIPS = 64, 31


def fingerprint(settings: EnvironmentBase, processes: Processes, work: Path) -> dict[str, float]:
    """`tare-load fingerprint` in an environment made for it, which writes its files below `work`.

    It has the round trip to the load generator, unless both have one loopback interface. Raises
    RunError or StartError with the reason if it cannot be measured.
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
        found = {name: float(value) for name, value in json.loads(place.exec(words)).items()}
        if not settings.has_generator or settings.is_remote:
            found["network_round_trip_ns"] = _round_trip_ns(place, work)
    except ValueError as error:
        raise RunError(f"{program}: {error}") from error
    else:
        return found
    finally:
        place.stop()


def _round_trip_ns(place: Environment, work: Path) -> float:
    """The median time until a message of 64 bytes comes back to the load generator."""
    program = native("bin", "tare-load")
    endpoint = f"{place.address}:{place.free_port()}"
    log = work / "fingerprint.log"
    empty(log)
    words = [program, "serve", "tcp", "--listen", endpoint]
    cpus = sorted(os.sched_getaffinity(0))
    server = place.start(Program(f"{place.name}/echo", words, work / "fingerprint", log, cpus))
    try:
        while endpoint not in log.read_text(encoding="utf-8"):
            place.processes.wait(0.02)
            if server.code is not None:
                raise RunError(next(iter(last_lines(log, 1)), server.ending))
        words = [program, "tcp", endpoint, "--send", "x" * _MESSAGE, "--reply-bytes", str(_MESSAGE)]
        words += ["--requests", str(_ROUND_TRIPS), "--warmup", "0s", "--json"]
        said = place.exec_at_load(words)
        return float(json.loads(said)["targets"][0]["p50_ns"])
    finally:
        place.processes.stop([server])
