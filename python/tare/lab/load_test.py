# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

from tare.lab.launch import Launch, Place
from tare.lab.load import Bench, Target, cpu_ns_of
from tare.lab.processes import Process, Processes

BUSY = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exec sleep 60"


def test_the_cpu_time_of_a_service_has_its_proxies_in_it(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    log = tmp_path / "log"

    def start(held: Processes, name: str, *command: str) -> Process:
        return held.start(name, command, directory=tmp_path, log=log, cpus=cpus)

    with Processes(tmp_path / "supervisor.log") as held:
        service, proxy = start(held, "service", "sleep", "60"), start(held, "p", "sh", "-c", BUSY)
        while "done" not in log.read_text():
            held.wait(0.02)
        launch = Launch(Place(free_port=lambda: 0), tmp_path, tmp_path, [], {}, 0, 0)
        target = Target("one", launch, service, [proxy])
        bench = Bench(held, cpus, tmp_path, log, lambda _: None)
        assert cpu_ns_of(target, bench) >= held.family(proxy).cpu_ns > 0
