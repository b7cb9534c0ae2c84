# SPDX-License-Identifier: Apache-2.0
"""Makes a plan of options on a command line, instead of a file."""

import re
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.errors import InputError
from tare.plan.option_names import OPTION_OF, OPTIONS, SET
from tare.plan.schema.layers import LAYERS
from tare.plan.schema.plan import Plan
from tare.plan.text.parser import parse
from tare.plan.text.toml_text import toml_text

PLAIN = "plain"
"""The name of the baseline, where no condition without layers is given."""


@dataclass(frozen=True)
class PlanOptions:
    """What `tare run` takes instead of a plan's file, as typed."""

    service: str
    conditions: Sequence[str] = ()
    """`NAME=LAYER`, the same name again for another layer around; or `NAME`, without layers."""
    environments: Sequence[str] = ()
    """Types, or `TYPE:KEY=VALUE,...`."""
    placement: Sequence[str] = ()
    """A rule, or `service=CPUS` and `generator=CPUS`."""
    budget: str = "3%"
    ready: str | None = None
    load: Sequence[str] = ()
    """`KEY=VALUE` of the table `[load]`."""
    files: Sequence[str] = ()
    """`NAME=PATH`: a file that each run gets under this name."""
    port: int | None = None
    baseline: str | None = None
    name: str | None = None
    keys: Sequence[str] = ()
    """`KEY=VALUE` of the plan's top level, of keys without an option of their own."""
    compare: str = "conditions"
    settings: dict[str, int | bool] = field(default_factory=dict)
    """Keys of the plan's top level that other options set."""


def from_options(options: PlanOptions, folder: Path) -> Plan:
    """The plan that the options mean; relative paths in it start at `folder`.

    Raises InputError where they mean none.
    """
    text = toml_text(plan_data(options))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the options: not UTF-8 at {text[error.start]!r}; use UTF-8") from error
    return parse(text, OPTIONS, folder)


def plan_data(options: PlanOptions) -> dict[str, Any]:
    """What a plan's file for these options holds."""
    service: dict[str, Any] = {"command": options.service}
    if options.port is not None:
        service["port"] = options.port
    if options.ready is not None:
        service["ready"] = _ready(options.ready)
    if options.files:
        service["files"] = dict(map(_file, options.files))
    conditions = _conditions(options.conditions)
    baseline = options.baseline
    if baseline is None and options.compare == "conditions":
        baseline = next(name for name, layers in conditions.items() if not layers)
    data = {
        "name": options.name or _name_of(options.service),
        "budget": _number_or_text(options.budget),
        **({} if options.compare == "conditions" else {"compare": options.compare}),
        **({} if baseline is None else {"baseline": baseline}),
        **dict(map(_top_key, options.keys)),
        **options.settings,
        "environments": [*map(_environment, options.environments)],
        "placement": _placement(options.placement),
        "service": service,
        "load": dict(map(_load_key, options.load)),
        "conditions": [
            {"name": name, **({"layers": layers} if layers else {})}
            for name, layers in conditions.items()
        ],
    }
    return {key: value for key, value in data.items() if value not in ([], {})}


def _conditions(given: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The layers of each condition by its name; a condition without layers is always among them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for text in given:
        name, equals, shorthand = text.partition("=")
        if name.partition(":")[0] in LAYERS and ":" in name:
            raise InputError(f"--condition {text}: has no name, expected NAME={text}")
        layers = found.setdefault(name, [])
        if equals:
            layers.append(_layer(text, shorthand))
    if any(not layers for layers in found.values()):
        return found
    if PLAIN in found:
        raise InputError(
            f"--condition {PLAIN}: is the name of the baseline, without layers;"
            " choose another name, or give the baseline's with --condition NAME"
        )
    return {PLAIN: [], **found}


def _layer(option: str, shorthand: str) -> dict[str, Any]:
    kind, colon, value = shorthand.partition(":")
    layer = LAYERS.get(kind)
    if layer is None:
        known = ", ".join(layer.SHORTHAND for layer in LAYERS.values())
        raise InputError(f"--condition {option}: found layer '{kind}', expected one of {known}")
    keys = layer.from_shorthand(value if colon else None)
    required = layer.model_fields[layer.SHORTHAND_KEY].is_required()
    if required and not isinstance(keys.get(layer.SHORTHAND_KEY), dict) and not value:
        raise InputError(f"--condition {option}: has no value, expected {layer.SHORTHAND}")
    if "=" in layer.SHORTHAND and "=" not in value:
        raise InputError(f"--condition {option}: found '{value}', expected {layer.SHORTHAND}")
    return {"type": kind, **keys}


def _environment(text: str) -> str | dict[str, Any]:
    """The type, or a table: `TYPE:KEY=VALUE,...`."""
    kind, colon, settings = text.partition(":")
    if not colon:
        return kind
    pairs = (_key("--environment", pair, "netns:delay=10ms") for pair in settings.split(","))
    return {"type": kind, **dict(pairs)}


def _placement(given: Sequence[str]) -> str | dict[str, str]:
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    for text in given:
        if "=" not in text:
            raise InputError(
                f"--placement: found '{text}' among {len(given)}, expected one rule, or"
                " service=CPUS and generator=CPUS"
            )
    return dict(text.partition("=")[::2] for text in given)


def _ready(text: str) -> dict[str, Any]:
    kind, equals, value = text.partition("=")
    if kind == "tcp" and not equals:
        return {"tcp": True}
    if kind in ("http", "log") and value:
        return {kind: value}
    raise InputError(f"--ready: found '{text}', expected tcp, http=/PATH or log=REGULAR_EXPRESSION")


def _file(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    source = Path(path if equals else name)
    try:
        return (name if equals else source.name), source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InputError(
            f"--file {text}: {source}: {why}; give NAME=PATH of a text file"
        ) from error


def _load_key(text: str) -> tuple[str, Any]:
    return _key("--load", text, "users=10")


def _top_key(text: str) -> tuple[str, Any]:
    key, value = _key(SET, text, "primary=p99")
    if own := OPTION_OF.get((key,)):
        raise InputError(f"{SET}: found '{text}', which has its own option; use {own}")
    return key, value


def _key(option: str, text: str, example: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"{option}: found '{text}', expected KEY=VALUE, such as {example}")
    return key, _number_or_text(value)


def _number_or_text(text: str) -> Any:
    """A value as in TOML, and a text without its quotes.

    No key of a plan is a date or a time, so that what looks like either is a text.
    """
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = found.pop("value", text)
    is_other = found or not isinstance(value, bool | int | float | str | list | dict)
    return text if is_other else value


def _name_of(service: str) -> str:
    try:
        words = shlex.split(service)
    except ValueError:
        words = []
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(words[0]).name) if words else ""
    return name.strip(".-_")[:40] or "service"
