# SPDX-License-Identifier: Apache-2.0
"""Pods as Kubernetes manifests describe them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.plan import Plan, expected, refused
from tare.untrusted import PLAN_BYTES, read_bytes

DEEPEST = 50
"""Levels of lists of objects."""
MOST = 1_000
LONGEST = 300
"""Characters of a name; Kubernetes allows 253."""
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Container:
    """A container of a pod; a container that is started before the others but stays counts, too."""

    name: str
    image: str


@dataclass(frozen=True)
class Pod:
    """What a manifest says of a pod, whatever creates it."""

    name: str
    containers: Sequence[Container] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    """Its labels and annotations, and those of its namespace."""
    nodes: frozenset[str] = frozenset()
    """The names of the nodes to which it is bound."""
    with_others: bool = False
    """Whether it must be on the node of other pods."""
    without_others: bool = False
    """Whether it must not be on the node of other pods."""


def pods(plan: Plan) -> list[Pod]:
    """The pods of all manifests of a plan. Raises InputError for what is no manifest of pods."""
    stated, found = plan.recommendations, []
    for number, name in enumerate(stated.manifests):
        mine = read(plan.folder / name)
        if isinstance(mine, str):
            raise refused(plan, ("recommendations", "manifests", number), expected(mine))
        found += mine
    for key in ("service", "generator"):
        container = getattr(stated, key)
        if container is not None and container not in names(found):
            known = ", ".join(sorted(names(found))) or "none"
            wanted = f"a container of the manifests ({known})"
            raise refused(plan, ("recommendations", key), expected(wanted))
    return found


def names(found: Sequence[Pod]) -> set[str]:
    """The names of all containers."""
    return {container.name for pod in found for container in pod.containers}


def read(path: Path) -> list[Pod] | str:
    """The pods of a manifest in YAML or JSON, or what was expected instead of the file."""
    import yaml

    try:
        text = read_bytes(path, PLAN_BYTES).decode()
        objects = [
            resource for document in yaml.safe_load_all(text) for resource in _objects(document)
        ]
        spaces = {
            _name(resource): _marks(resource)
            for resource in objects
            if resource.get("kind") == "Namespace"
        }
        found = [
            _pod(resource, *parts, spaces) for resource in objects if (parts := _template(resource))
        ]
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else _first_line(error)
        return f"a Kubernetes manifest: {path}: {why}"
    if not 0 < len(found) <= MOST:
        return f"a Kubernetes manifest with 1 to {MOST} pods: {path} has {len(found)}"
    return found


def _first_line(error: Exception) -> str:
    """One line of what a parser complains of."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    return where + str(getattr(error, "problem", None) or error).split("\n", 1)[0]


def _objects(document: Any, level: int = 0) -> Iterator[Mapping[str, Any]]:
    """The objects of a document: itself, or the items of a list."""
    if level > DEEPEST or not isinstance(document, dict):
        return
    items = document.get("items")
    if isinstance(items, list):
        for item in items[:MOST]:
            yield from _objects(item, level + 1)
    else:
        yield document


def _template(resource: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Metadata and specification of the pods that an object makes; None if it makes none."""
    kind, spec = resource.get("kind"), _table(resource, "spec")
    if kind == "Pod":
        return _table(resource, "metadata"), spec
    if kind == "CronJob":
        spec = _table(_table(spec, "jobTemplate"), "spec")
    template = _table(spec, "template")
    inner = _table(template, "spec")
    return (_table(template, "metadata"), inner) if inner.get("containers") else None


def _pod(
    resource: Mapping[str, Any],
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    spaces: Mapping[str, Mapping[str, str]],
) -> Pod:
    space = _text(_table(resource, "metadata").get("namespace")) or "default"
    affinity = _table(spec, "affinity")
    return Pod(
        name=_name(resource),
        containers=[
            Container(_text(box.get("name")), _text(box.get("image")))
            for key in ("containers", "initContainers")
            for box in _tables(spec, key)
            if key == "containers" or box.get("restartPolicy") == "Always"
        ],
        marks={**spaces.get(space, {}), **_marks(resource), **_marks({"metadata": metadata})},
        nodes=frozenset(_nodes(spec, affinity)),
        with_others=_by_host(_table(affinity, "podAffinity")),
        without_others=_by_host(_table(affinity, "podAntiAffinity")),
    )


def _nodes(spec: Mapping[str, Any], affinity: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(name := spec.get("nodeName"), str):
        yield name
    if isinstance(name := _table(spec, "nodeSelector").get(HOST), str):
        yield name
    required = _table(
        _table(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in _tables(required, "nodeSelectorTerms"):
        for key in ("matchExpressions", "matchFields"):
            for expression in _tables(term, key):
                of_host = (
                    expression.get("key") in (HOST, "metadata.name")
                    and expression.get("operator") == "In"
                )
                values = expression.get("values")
                if of_host and isinstance(values, list):
                    yield from map(_text, values)


def _by_host(affinity: Mapping[str, Any]) -> bool:
    terms = _tables(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    return any(term.get("topologyKey") == HOST for term in terms)


def _marks(resource: Mapping[str, Any]) -> dict[str, str]:
    metadata = _table(resource, "metadata")
    return {
        _text(key): _text(value)
        for name in ("labels", "annotations")
        for key, value in _table(metadata, name).items()
    }


def _name(resource: Mapping[str, Any]) -> str:
    metadata = _table(resource, "metadata")
    return _text(metadata.get("name")) or _text(metadata.get("generateName")) or "without a name"


def _text(value: Any) -> str:
    """A short text; empty for a list or a table, whose text could be endless."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:LONGEST] if isinstance(value, str | int | float) else ""


def _table(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _tables(of: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = of.get(key)
    return [table for table in found if isinstance(table, dict)] if isinstance(found, list) else []
