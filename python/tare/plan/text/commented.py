# SPDX-License-Identifier: Apache-2.0
"""A plan with a comment for each key, for an author who writes a first plan."""

from collections.abc import Mapping
from typing import Any

from tare.plan.schema.layers import LAYERS
from tare.plan.schema.loads import DEFAULT_TYPE
from tare.plan.text.toml_text import keys

_HEAD = """\
# A plan: `tare run {file}` measures it, `tare run {file} --dry-run` checks it.
# Lines such as `# blocks = 8` show defaults; remove the # to change a value.
# `tare run --schema` prints all keys.
"""

_TOP = {
    "name": "Name of the experiment, and of its result folder.",
    "budget": "The smallest relative difference that matters to you. Verdicts use it:\n"
    "unchanged means that a larger difference is ruled out.",
    "baseline": "The condition that the others are compared with.",
    "blocks": "Number of runs of each condition. A verdict takes at least 6.",
    "primary": "The metric that decides the verdict: p50, p95, p99 or mean.",
    "environments": "Where the service runs: host; or as root: netns (its own network), container.",
    "placement": "CPUs of service and load generator: same-core, different-cores, free, or\n"
    'CPU numbers: { service = "2-3", generator = "1" }.',
    "seed": "Decides the order of runs and of slices. Default: random.",
}
_SERVICE = {
    "command": "Starts the service in the foreground. Tare replaces {port} by the port to\n"
    "listen on, {address} by the address, {dir} by a new folder for each run, and\n"
    "{plan} by the folder of this file.",
    "port": "The port of a service that does not take {port}.",
    "ready": 'When the service is ready: { tcp = true } if it accepts connections,\n{ http = "/" }'
    ' if it answers with status 200, { log = "listening" } if it prints this.',
    "environment": 'Environment variables, for example { LOG_LEVEL = "warn" }.',
    "files": "Files that are written into {dir} before each start.",
}
_LOAD = {
    "type": "The protocol: http or tcp; command for another load generator.",
    "mode": "closed: users send back to back. constant or open: they send at a rate, for\n"
    'example rate = 1000 (requests/s) or rate = "80% of capacity".',
    "users": "Number of users at the same time.",
    "path": "The path that is requested.",
    "duration": "Length of the measured window of each run.",
    "warmup": "Load before the window; it is not recorded.",
}
_DEFAULTS: dict[str, Any] = {"blocks": 8, "primary": "p50", "environments": ["host"]}
_SERVICE_DEFAULTS: dict[str, Any] = {"ready": {"tcp": True}, "environment": {}}
_LOAD_DEFAULTS: dict[str, Any] = {"mode": "closed", "users": 1, "duration": "5s", "warmup": "1s"}


def commented(data: Mapping[str, Any], file: str) -> str:
    """The plan of `data` (see `plan_data`) as TOML with comments; `file` is its future name."""
    top = {key: value for key, value in data.items() if key in _TOP}
    others = {
        key: value
        for key, value in data.items()
        if key not in (*_TOP, "service", "load", "conditions")
    }
    service = {key: value for key, value in data["service"].items() if key != "files"}
    load = data.get("load", {})
    load_defaults = dict(_LOAD_DEFAULTS)
    if load.get("type", DEFAULT_TYPE) == DEFAULT_TYPE:
        load_defaults["path"] = "/"
    parts = [
        _HEAD.format(file=file),
        _keys({**top, **others}, _TOP, _DEFAULTS),
        "[service]\n" + _keys(service, _SERVICE, _SERVICE_DEFAULTS),
        *_files(data["service"].get("files", {})),
        "[load]\n" + _keys(load, _LOAD, {} if load.get("type") == "command" else load_defaults),
        *map(_condition, data["conditions"]),
        _layers(),
    ]
    return "\n".join(parts)


def _keys(
    table: Mapping[str, Any], comments: Mapping[str, str], defaults: Mapping[str, Any]
) -> str:
    """Each key with its comment, those with their default value behind a #."""
    order = [*comments, *(key for key in table if key not in comments)]
    text = ""
    for key in order:
        if key in table:
            line = keys({key: table[key]})
        elif key in defaults:
            line = "# " + keys({key: defaults[key]})
        else:
            continue
        comment = "".join(f"# {part}\n" for part in comments.get(key, "").splitlines())
        text += ("\n" if text and comment else "") + comment + line
    return text


def _files(files: Mapping[str, str]) -> list[str]:
    if not files:
        return []
    comment = "".join(f"# {line}\n" for line in _SERVICE["files"].splitlines())
    return [f"{comment}[service.files]\n{keys(files)}"]


def _condition(condition: Mapping[str, Any]) -> str:
    comment = "The service with its layers; the first layer is the nearest to the service."
    if "layers" not in condition:
        comment = "The service alone."
    return f"# {comment}\n[[conditions]]\n{keys(condition)}"


def _layers() -> str:
    return (
        f"# Types of layers: {', '.join(LAYERS)}. Add a [[conditions]] for each combination of\n"
        "# layers that you want to compare.\n"
    )
