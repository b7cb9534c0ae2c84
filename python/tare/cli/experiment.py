# SPDX-License-Identifier: Apache-2.0
"""The options that describe an experiment: those of `tare run` without a plan, and `tare init`."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.errors import InputError

if TYPE_CHECKING:
    from tare.plan import Plan

EXAMPLE = "tare run --service 'my-server --port {port}' --condition agent=env:NAME=VALUE"

Service = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Command that starts the service in the foreground. {port} is replaced by the port"
        " to listen on, {address} by the address, {dir} by a new folder for each run, {plan} by"
        " the current folder.",
        show_default=False,
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--condition",
        metavar="NAME[=LAYER]",
        help="The service with this layer around it; without a layer, the baseline. Repeat it for"
        " each condition, and with the same name for a further layer.",
        show_default=False,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Condition that the others are compared with. Default: the condition without layers.",
        show_default=False,
    ),
]
Environments = Annotated[
    list[str] | None,
    typer.Option(
        "--environment",
        metavar="host|netns",
        help="Where the service runs; repeatable. Default: host.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Smallest relative difference that matters, 3% or 0.03. Default: 3%.",
        show_default=False,
    ),
]
ReadyCheck = Annotated[
    str | None,
    typer.Option(
        metavar="tcp|http=/PATH|log=REGEX",
        help="When the service is ready: it accepts connections, answers with status 200, or"
        " prints a matching line. Default: tcp.",
        show_default=False,
    ),
]
LoadKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="KEY=VALUE",
        help="A key of the plan's [load], such as users=10, path=/cart or type=tcp. Repeatable."
        " Default: one user, GET /, 5 s per run.",
        show_default=False,
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        metavar="NAME=PATH",
        help="Copy this text file into {dir} as NAME before each start, and replace {port} and"
        " the other names in it. Repeatable.",
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Fixed port of a service that does not take {port}.",
        show_default=False,
    ),
]
PlanName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Default: the program's name.", show_default=False),
]


def read_plan(
    plan_file: Path | None,
    settings: Mapping[str, int],
    *,
    service: str | None,
    conditions: list[str] | None,
    baseline: str | None,
    environments: list[str] | None,
    budget: str | None,
    ready: str | None,
    load: list[str] | None,
    files: list[str] | None,
    port: int | None,
    name: str | None,
) -> "tuple[Plan, str]":
    """The plan of a file or of options, and the command that carries it out.

    Raises InputError where both or neither are given, or where they are no plan.
    """
    from tare.plan import PlanOptions, from_options
    from tare.plan import load as load_plan

    typed: dict[str, list[str]] = {
        "--service": [] if service is None else [service],
        "--condition": conditions or [],
        "--baseline": [] if baseline is None else [baseline],
        "--environment": environments or [],
        "--budget": [] if budget is None else [budget],
        "--ready": [] if ready is None else [ready],
        "--load": load or [],
        "--file": files or [],
        "--port": [] if port is None else [str(port)],
        "--name": [] if name is None else [name],
    }
    given = [option for option, values in typed.items() if values]
    if plan_file is not None:
        if given:
            raise InputError(
                f"{given[0]}: {plan_file} is a plan; change it there, or give options alone"
            )
        return load_plan(plan_file, settings), shlex.join(["tare", "run", str(plan_file)])
    if service is None:
        what = f"{given[0]}: needs --service" if given else "no plan and no --service"
        raise InputError(f"{what}; give a plan (tare run PLAN) or a service: {EXAMPLE}")
    if not conditions:
        raise InputError(f"no --condition: nothing to compare with the service alone; {EXAMPLE}")
    options = PlanOptions(
        service=service,
        conditions=conditions,
        baseline=baseline,
        environments=environments or (),
        budget=budget or "3%",
        ready=ready,
        load=load or (),
        files=files or (),
        port=port,
        name=name,
        settings=dict(settings),
    )
    words = [word for option, values in typed.items() for one in values for word in (option, one)]
    return from_options(options, Path.cwd()), shlex.join(["tare", "run", *words])
