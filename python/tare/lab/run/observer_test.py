# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from pathlib import Path

from tare.lab.processes.processes import Processes
from tare.lab.recommendations.observations import Namespaces
from tare.lab.run.observer import Observer


def test_a_load_generator_that_ended_at_once_has_those_of_the_supervisor(
    tmp_path: Path,
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    with Processes(tmp_path / "log") as processes:
        observer = Observer(processes, [])
        generator = processes.start(
            "load", ["true"], directory=tmp_path, log=tmp_path / "log", cpus=cpus
        )
        while generator.code is None:
            processes.wait(0.1)
        observer.look(lambda: processes.family(generator))
        here = Namespaces.of([os.getpid()])
        assert here is not None
        assert observer._generator == Namespaces(generator.pid, here.network, here.files)
