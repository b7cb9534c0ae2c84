# SPDX-License-Identifier: Apache-2.0
"""`tare init`: writes a commented plan for a service."""

import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tare.atomic_files import created
from tare.cli.shared.experiment import EXAMPLE, ExperimentOptions
from tare.cli.shared.options import with_groups
from tare.errors import InputError
from tare.terminal import printable
from tare.trust import trusted_folder


def register(app: typer.Typer) -> None:
    """Adds `tare init`."""
    app.command("init")(with_groups(init))


def init(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The new file; an existing one is kept.")
    ] = Path("plan.toml"),
    *,
    options: ExperimentOptions,
) -> None:
    """Write a plan with comments, for your own service.

    On a terminal it asks for a missing --service and --condition. The options are the same as for
    `tare run`.
    """
    from tare.plan import parse
    from tare.plan.text.commented import commented
    from tare.plan.text.options import plan_data

    if plan_file.exists():
        raise InputError(f"{plan_file}: exists already; give the name of a new file")
    service, conditions = options.service, options.conditions
    load, budget = options.load, options.budget
    if service is None or not conditions:
        if not sys.stdin.isatty():
            what = "--service" if service is None else "--condition"
            example = EXAMPLE.replace("tare run", "tare init")
            raise InputError(f"no {what}, and no terminal to ask on; {example}")
        known = replace(options, conditions=conditions or ["hook=hook"])
        if service is None:
            question = "Command that starts the service, with {port} for its port"
            service = _ask(question, check=lambda answer: _check(known, answer))
        if not load:
            load = _ask_load()
            known = replace(known, load=load)
        if not conditions:
            conditions = [_ask_condition(known, service)]
        if budget is None:
            budget = _ask(
                "Smallest relative difference that matters to you",
                "3%",
                lambda answer: _check(replace(known, budget=answer), service),
            )
    options = replace(options, conditions=conditions, load=load, budget=budget)
    text = commented(
        plan_data(options.plan_options(service)), printable(shlex.quote(plan_file.name))
    )
    parse(text, str(plan_file), plan_file.resolve().parent)
    _create(plan_file, text)
    where = printable(shlex.quote(str(plan_file)))
    print(f"wrote {where}; check it with: tare run {where} --dry-run")
    print(f"measure with: tare run {where}")


def _create(file: Path, text: str) -> None:
    """Writes a new file, whole or not at all. Raises InputError where that is not possible."""
    with ExitStack() as stack:
        try:
            data = text.encode()
            folder = stack.enter_context(trusted_folder(file.parent))
            opened = stack.enter_context(created(file, folder))
        except UnicodeEncodeError as error:
            raise InputError(f"{file}: not UTF-8: {text[error.start]!r}; use UTF-8") from error
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}; give another file") from error
        opened.write(data)


def _ask(
    question: str, default: str | None = None, check: Callable[[str], None] = lambda _: None
) -> str:
    """An answer that `check` accepts; it is asked for again after an InputError."""

    def checked(answer: str) -> str:
        try:
            check(answer.strip())
        except InputError as error:
            raise typer.BadParameter(str(error)) from error
        return answer.strip()

    return str(typer.prompt(question, default=default, err=True, value_proc=checked))


def _check(options: ExperimentOptions, service: str) -> None:
    """Raises InputError if no plan can be made of the options."""
    from tare.plan import from_options

    from_options(options.plan_options(service), Path.cwd())


def _ask_condition(known: ExperimentOptions, service: str) -> str:
    def condition(layer: str) -> str:
        return f"{layer.partition(':')[0]}={layer}"

    layer = _ask(
        "Layer to measure: hook, env:NAME=VALUE, wrap:COMMAND, proxy:nginx ...",
        "hook",
        lambda answer: _check(replace(known, conditions=[condition(answer)]), service),
    )
    return condition(layer)


def _ask_load() -> list[str]:
    """The keys of [load] for the service's protocol."""
    path = _ask("Path to request over HTTP, or tcp for a service without HTTP", "/")
    if path != "tcp":
        return [] if path == "/" else [f"path={path}"]
    send = _ask(r"Bytes of a request, with \r, \n and \xHH, such as PING\r\n")
    end = _ask(r"End of a reply: resp for Redis' protocol, or its last text, such as \n", "resp")
    reply = "reply=resp" if end == "resp" else f"reply_until={end}"
    return ["type=tcp", f"send={send}", reply]
