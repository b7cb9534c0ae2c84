# SPDX-License-Identifier: Apache-2.0
"""How commands declare options: the usual kinds, and groups that several commands have."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer


def option(flag: str, metavar: str, help_text: str, **more: Any) -> Any:
    """An option with a value; its help states the default."""
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False, **more)


def number(flag: str, help_text: str, least: int = 1) -> Any:
    """An option with a whole number, at least `least`."""
    return option(flag, "N", help_text, min=least)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def given_options(options: dict[str, bool]) -> str:
    """Those of the options that were given, as a message names them."""
    return " and ".join(name for name, is_given in options.items() if is_given)


def flag_of(group: type, name: str) -> str:
    """The option that sets a field of a group."""
    (info,) = get_type_hints(group, include_extras=True)[name].__metadata__
    # Typer holds the first name of an option in an Annotated as its default.
    return str((info.param_decls or [info.default])[0])


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it: each parameter that is a dataclass becomes its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        of = get_type_hints(group, include_extras=True)
        parameters += [
            parameter.replace(name=field.name, annotation=of[field.name], default=field.default)
            for field in fields(group)
        ]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
