# SPDX-License-Identifier: Apache-2.0
"""The options that describe an experiment: those of `tare run` without a plan, and `tare init`."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tare.cli.shared.options import flag_of, option
from tare.errors import InputError

if TYPE_CHECKING:
    from tare.plan import Plan, PlanOptions

EXAMPLE = "tare run --service 'my-server --port {port}' --condition agent=env:NAME=VALUE"


@dataclass(frozen=True)
class ExperimentOptions:
    """As typed."""

    service: Annotated[
        str | None,
        option(
            "--service",
            "COMMAND",
            "Command that starts the service in the foreground. {port} is replaced by the port"
            " to listen on, {address} by the address, {dir} by a new folder for each run, {plan}"
            " by the current folder.",
        ),
    ] = None
    conditions: Annotated[
        list[str] | None,
        option(
            "--condition",
            "NAME[=LAYER]",
            "The service with this layer around it; without a layer, the baseline. Repeat it for"
            " each condition, and with the same name for a further layer.",
        ),
    ] = None
    compare: Annotated[
        str | None,
        option(
            "--compare",
            "conditions|environments",
            "What is compared: conditions in each environment, or environments with each"
            " condition. Default: conditions.",
        ),
    ] = None
    baseline: Annotated[
        str | None,
        option(
            "--baseline",
            "NAME",
            "What the others are compared with. Default: the condition without layers, or the"
            " first environment.",
        ),
    ] = None
    environments: Annotated[
        list[str] | None,
        option(
            "--environment",
            "host|netns|container|pod|vm|container-in-vm[:KEY=VALUE,...]",
            "Where the service runs, with settings such as netns:delay=10ms,loss=1%; repeatable."
            " Default: host.",
        ),
    ] = None
    placement: Annotated[
        list[str] | None,
        option(
            "--placement",
            "RULE|service=CPUS|generator=CPUS",
            "CPUs of service and load generator: same-core, different-cores or free. Or their"
            " numbers, as taskset takes them: --placement service=2-3 --placement generator=1."
            " Default: by the load.",
        ),
    ] = None
    budget: Annotated[
        str | None,
        option(
            "--budget",
            "SHARE",
            "Smallest relative difference that matters, 3% or 0.03. Default: 3%.",
        ),
    ] = None
    ready: Annotated[
        str | None,
        option(
            "--ready",
            "tcp|http=/PATH|log=REGEX",
            "When the service is ready: it accepts connections, answers with status 200, or"
            " prints a matching line. Default: tcp.",
        ),
    ] = None
    load: Annotated[
        list[str] | None,
        option(
            "--load",
            "KEY=VALUE",
            "A key of the plan's [load], such as users=10, path=/cart or type=tcp. Repeatable."
            " Default: one user, GET /, 5 s per run.",
        ),
    ] = None
    files: Annotated[
        list[str] | None,
        option(
            "--file",
            "NAME=PATH",
            "Copy this text file into {dir} as NAME before each start, and replace {port} and the"
            " other names in it. Repeatable.",
        ),
    ] = None
    port: Annotated[
        int | None, option("--port", "N", "Fixed port of a service that does not take {port}.")
    ] = None
    name: Annotated[str | None, option("--name", "NAME", "Default: the program's name.")] = None
    keys: Annotated[
        list[str] | None,
        option(
            "--set",
            "KEY=VALUE",
            "Another top-level key of the plan, such as primary=p99 or turn=5s. Repeatable.",
        ),
    ] = None

    def words(self) -> list[str]:
        """The options that were given, each before its value."""
        found: list[str] = []
        for field, value in zip(fields(self), astuple(self), strict=True):
            flag = flag_of(type(self), field.name)
            values = value if isinstance(value, list) else [] if value is None else [value]
            found += [word for each in values for word in (flag, str(each))]
        return found

    def plan_options(self, service: str, settings: Mapping[str, int] = {}) -> "PlanOptions":
        """What a plan is made of; `settings` are keys that other options set."""
        from tare.plan import PlanOptions

        return PlanOptions(
            service=service,
            conditions=self.conditions or (),
            environments=self.environments or (),
            placement=self.placement or (),
            budget=self.budget or "3%",
            ready=self.ready,
            load=self.load or (),
            files=self.files or (),
            port=self.port,
            baseline=self.baseline,
            name=self.name,
            keys=self.keys or (),
            compare=self.compare or "conditions",
            settings=dict(settings),
        )


def read_plan(
    plan_file: Path | None, settings: Mapping[str, int], options: ExperimentOptions
) -> "Plan":
    """The plan of a file or of options.

    Raises InputError where both or neither are given, or where they are no plan.
    """
    from tare.plan import from_options
    from tare.plan import load as load_plan

    given = options.words()
    if plan_file is not None:
        if given:
            raise InputError(
                f"{given[0]}: does not apply to a plan; change {plan_file}, or give options"
                " without a plan"
            )
        return load_plan(plan_file, settings)
    if options.service is None:
        what = f"{given[0]}: needs --service" if given else "no plan and no --service"
        raise InputError(f"{what}; give a plan (tare run PLAN) or a service: {EXAMPLE}")
    if not options.conditions and options.compare in (None, "conditions"):
        raise InputError(
            f"no --condition, so there is nothing to compare; give one, as in {EXAMPLE}"
        )
    return from_options(options.plan_options(options.service, settings), Path.cwd())
