# SPDX-License-Identifier: Apache-2.0
"""The programs of a pipeline, and whether they are on this machine."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tare.lab.processes.processes import find
from tare.plan import Plan, expected, refused
from tare.plan.schema.collect import Collect

KAFKA_STORAGE, KAFKA_SERVER = "kafka-storage.sh", "kafka-server-start.sh"
ELASTICSEARCH = "elasticsearch"
COLLECTOR, INGESTER, QUERY = "jaeger-collector", "jaeger-ingester", "jaeger-query"
INSTALLED_BY: Mapping[str, str] = {
    KAFKA_STORAGE: "kafka3",
    KAFKA_SERVER: "kafka3",
    **{program: program for program in (ELASTICSEARCH, COLLECTOR, INGESTER, QUERY)},
}
"""Programs by their names in the distributions, and the tool of setup/install-peers."""


def check(plan: Plan) -> None:
    """Raises InputError, with its place in the plan, for a program that is not there."""
    if plan.collect is None:
        return
    place = ("collect", "programs" if plan.collect.programs else "pipeline")
    for program, installed_by in INSTALLED_BY.items():
        if program_file(plan.collect, plan.folder, program) is None:
            where = "a folder with" if plan.collect.programs else "programs, or PATH, with"
            remedy = f"get it with setup/install-peers {installed_by}"
            raise refused(plan, place, expected(f"{where} {program}; {remedy}"))
    if os.geteuid() == 0 and find("setpriv") is None:
        wanted = "setpriv to be installed (Elasticsearch refuses root): get util-linux"
        raise refused(plan, ("collect", "pipeline"), expected(wanted))
    if find_spec("kafka") is None:
        wanted = "kafka-python to be installed: pip install 'tare[kafka]'"
        raise refused(plan, ("collect", "pipeline"), expected(wanted))


def programs(collect: Collect, plan_folder: Path) -> dict[str, str]:
    """The file of each program; programs that are not there are absent."""
    found = {name: program_file(collect, plan_folder, name) for name in INSTALLED_BY}
    return {name: file for name, file in found.items() if file is not None}


def program_file(collect: Collect, plan_folder: Path, program: str) -> str | None:
    """The absolute file of a program, or None."""
    if collect.programs is None:
        return find(program)
    file = (plan_folder / collect.programs / program).absolute()
    return str(file) if os.access(file, os.X_OK) else None
