# SPDX-License-Identifier: Apache-2.0
"""The services of a Compose file (docker compose) as services of a plan, in containers of their own
images. The format: https://github.com/compose-spec/compose-spec/blob/main/spec.md"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tare.errors import InputError
from tare.plan.text.compose_file import ComposeFile, ComposeService, Healthcheck, Volume
from tare.untrusted import PLAN_BYTES, explained, read_bytes

KEY, NAME, OMIT = "compose", "name", "omit"
"""Keys of `[service]`: the file, which of its services has the load, and those that do not run."""
BRIDGED = {"type": "container", "network": "bridge"}
"""Services of a Compose file find each other by name, each in a network of its own."""
MOST_VALUES = 100_000
_READY_S = 30
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>\w+)|\{(?P<name>\w+)(?:(?P<how>:?[-?+])(?P<other>[^}]*))?\})",
    re.ASCII,
)


def composed(data: Mapping[str, Any], folder: Path, file: str) -> dict[str, Any] | None:
    """The data of a plan with the services of the Compose file that its `[service]` names; None if
    it names none. `folder` is the plan's, `file` its name.

    What the plan itself says of a service counts. Raises InputError.
    """
    own = data.get("service")
    if not isinstance(own, dict) or KEY not in own:
        return None
    own = {**own}
    name, main, omitted = own.pop(KEY), own.get(NAME), own.pop(OMIT, [])
    if not isinstance(name, str):
        raise InputError(f"{file}: service.{KEY}: expected the path of a Compose file")
    path = folder / name
    services = _read(path)
    if not isinstance(main, str) or main not in services:
        known = ", ".join(services)
        raise InputError(f"{file}: service.name: expected the service with the load: {known}")
    if not isinstance(omitted, list) or any(each not in [*services] for each in omitted):
        raise InputError(f"{file}: service.{OMIT}: expected names of services in {path}")
    kept = _ordered(services, main, omitted, path)
    _refuse_shared_volumes(services, [*kept, main], path)
    tables = {each: _table(each, services[each], path, [*kept, main]) for each in (*kept, main)}
    listed = data.get("services", [])
    if not isinstance(listed, list) or not all(isinstance(table, dict) for table in listed):
        return {**data, "service": own}
    of_file = {table["name"]: table for table in listed if table.get("name") in kept}
    return {
        "environments": [BRIDGED],
        **data,
        "service": _merged(tables[main], own),
        "services": [
            *(table for table in listed if table.get("name") not in kept),
            *(_merged(tables[each], of_file.get(each, {})) for each in kept),
        ],
    }


def _merged(table: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A table with what the plan says, whose variables and settings of the container are added."""
    found = {**table, **own}
    for key in ("container", "environment"):
        if isinstance(own.get(key), dict):
            found[key] = {**table.get(key, {}), **own[key]}
    return found


def _read(path: Path) -> dict[str, ComposeService]:
    import yaml

    try:
        text = read_bytes(path, PLAN_BYTES, follow=True).decode()
        data = yaml.safe_load(text)
        own = path.parent / ".env"
        variables = {**(_read_variables(own) if own.exists() else {}), **os.environ}
        file = ComposeFile.model_validate(_interpolated(data, variables, count()))
    except ValidationError as error:
        raise InputError(f"{path}: {explained(error)}") from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise InputError(f"{path}: not a Compose file: {why}") from error
    return file.services


def _read_variables(path: Path) -> dict[str, str]:
    """The variables in a file of lines `NAME=value`."""
    try:
        text = read_bytes(path, PLAN_BYTES, follow=True).decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: not a file of variables: {why}") from error
    lines = (line.strip().removeprefix("export ") for line in text.splitlines())
    pairs = (line.split("=", 1) for line in lines if not line.startswith("#"))
    return {pair[0].strip(): _unquoted(pair[1].strip()) for pair in pairs if len(pair) == 2}


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def _interpolated(value: Any, variables: Mapping[str, str], seen: Iterator[int]) -> Any:
    """The same with the values of variables. Raises ValueError for one that must be set.

    With aliases, a short file can have more values than memory holds; `seen` counts them.
    """
    if next(seen) > MOST_VALUES:
        raise ValueError(f"has more than {MOST_VALUES} values")
    if isinstance(value, dict):
        return {key: _interpolated(inner, variables, seen) for key, inner in value.items()}
    if isinstance(value, list):
        return [_interpolated(inner, variables, seen) for inner in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name, how, other = match["plain"] or match["name"], match["how"] or "", match["other"] or ""
        is_set = bool(variables.get(name)) if how.startswith(":") else name in variables
        match how[-1:]:
            case "-":
                return variables[name] if is_set else other
            case "+":
                return other if is_set else ""
            case "?" if not is_set:
                raise ValueError(f"the variable {name} must be set: {other}")
        return variables.get(name, "")

    return _VARIABLE.sub(replaced, value)


def _ordered(
    services: Mapping[str, ComposeService], main: str, omitted: Collection[str], path: Path
) -> list[str]:
    """The services beside `main`, each behind those that it depends on.

    Services of a profile, services that need `main`, and omitted services are left out.
    """
    found: list[str] = []
    waiting: list[str] = []
    without = {*omitted, *(name for name, service in services.items() if service.profiles)} - {main}

    needing = {main}
    while more := {
        name for name in services.keys() - needing if not needing.isdisjoint(services[name].after)
    }:
        needing |= more

    def add(name: str) -> None:
        if name in waiting:
            circle = " -> ".join([*waiting, name])
            raise InputError(f"{path}: services that depend on each other: {circle}")
        if name in found:
            return
        waiting.append(name)
        for other in services[name].after:
            if other not in services:
                raise InputError(f"{path}: services.{name}: depends on {other}, which is missing")
            if other not in without:
                add(other)
        waiting.pop()
        found.append(name)

    add(main)
    for name in services:
        if name not in without and name not in needing:
            add(name)
    return [name for name in found if name != main]


def _refuse_shared_volumes(
    services: Mapping[str, ComposeService], names: Collection[str], path: Path
) -> None:
    users: dict[str, str] = {}
    for name in names:
        for volume in services[name].volumes:
            if volume.source and not volume.is_bind:
                other = users.setdefault(volume.source, name)
                if other != name:
                    raise InputError(
                        f"{path}: volume {volume.source}: {other} and {name} share it, which Tare"
                        " does not support; omit one of them"
                    )


def _table(
    name: str, service: ComposeService, path: Path, names: Collection[str]
) -> dict[str, Any]:
    """A service as a table of a plan; `names` are the services that run."""
    variables: dict[str, str] = {}
    for file in service.env_file:
        variables |= _read_variables(path.parent / file)
    variables |= {
        key: os.environ.get(key, "") if value is None else value
        for key, value in service.environment.items()
    }
    container = {
        "image": service.image or f"localhost/{path.parent.resolve().name}-{name}".lower(),
        "entrypoint": service.entrypoint,
        "arguments": service.command,
        "mounts": {volume.target: source for volume, source in _binds(service, path)},
        "cpus": service.limit_of_cpus,
        "memory": None if service.limit_of_memory is None else f"{service.limit_of_memory} B",
    }
    ports = [*service.ports, *service.expose]
    table = {
        "name": name,
        "aliases": [alias for alias in service.aliases if alias != name],
        "environment": variables,
        "directory": service.working_dir,
        "port": ports[0] if ports else None,
        "ready": _ready(service.healthcheck),
        "after": [other for other in service.after if other in names],
        "stop_signal": service.stop_signal,
        "stop_timeout": _duration(service.stop_grace_period),
        "replicas": None if service.replicas == 1 else service.replicas,
        "container": {key: value for key, value in container.items() if value not in (None, {})},
    }
    return {key: value for key, value in table.items() if value not in (None, [], {})}


def _binds(service: ComposeService, path: Path) -> Iterator[tuple[Volume, str]]:
    for volume in service.volumes:
        if volume.is_bind:
            source = Path(volume.source or "").expanduser()
            yield volume, str((path.parent / source).resolve())


def _ready(check: Healthcheck | None) -> dict[str, Any] | None:
    words = None if check is None else check.words
    if check is None or not words:
        return None
    patience = check.start_period + check.interval * check.retries
    return {"command": words, "timeout": _duration(max(patience, _READY_S))}


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return f"{round(seconds * 1000)}ms" if seconds % 1 else f"{int(seconds)}s"
