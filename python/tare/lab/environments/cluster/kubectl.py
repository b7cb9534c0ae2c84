# SPDX-License-Identifier: Apache-2.0
"""Calls kubectl, and reads what it knows of nodes and pods."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tare.lab.environments.cluster.client import TERMINATED
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import find, variables_of

QUESTION_S, COMMAND_S = 5, 120
"""For an answer of the cluster, and for a command in one of its containers."""
_PREFIXES = ("error: ", "Error from server ")
_REPELLING = ("NoSchedule", "NoExecute")


def kubectl(context: str | None, namespace: str | None) -> list[str]:
    """The words that call kubectl with a cluster and a namespace."""
    options = {"context": context, "namespace": namespace}
    given = [f"--{key}={text}" for key, text in options.items() if text]
    return [find("kubectl") or "kubectl", *given]


def printed(words: Sequence[str], limit_s: float = COMMAND_S, named: Sequence[str] = ()) -> str:
    """What a command of kubectl prints. Raises RunError with its complaint, and with other words
    for the command if they are given."""
    done = call(words, limit_s)
    if done.returncode:
        why = complaint(done.stderr) or f"exit code {done.returncode}"
        raise RunError(f"{' '.join(named) or 'kubectl'}: {why}")
    return done.stdout


def call(words: Sequence[str], limit_s: float = COMMAND_S) -> "subprocess.CompletedProcess[str]":
    """Runs a command of kubectl to its end. Raises RunError if it does not end in time."""
    try:
        return subprocess.run(
            words,
            env=variables_of({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"kubectl: no answer within {limit_s:g} s") from error
    except OSError as error:
        raise RunError(f"{words[0]}: {error.strerror}") from error


def complaint(text: str) -> str:
    """The line that says what is wrong: the last of kubectl's, or of a command in a container."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(TERMINATED)]
    last = said[-1] if said else ""
    for prefix in _PREFIXES:
        last = last.removeprefix(prefix)
    return last


def resolved(settings: Any) -> list[str]:
    """The words that call kubectl with today's cluster and namespace of some settings, also if the
    user chooses others later. Raises RunError with kubectl's complaint."""
    context = settings.context
    config = [*kubectl(context, None), "config", "view", "--output=json"]
    try:
        found = json.loads(printed(config, QUESTION_S))
        # In a pod of the cluster itself, kubectl has no contexts.
        context = context or found.get("current-context") or None
        known = {each["name"]: each.get("context") or {} for each in found.get("contexts") or ()}
    except (ValueError, KeyError, AttributeError) as error:
        raise RunError(f"kubectl: its configuration cannot be read: {error}") from error
    return kubectl(context, settings.namespace or known.get(context, {}).get("namespace"))


def to_keep(words: Sequence[str]) -> list[str]:
    """The same command for a process that has other variables."""
    kept = [f"{name}={os.environ[name]}" for name in ("HOME", "KUBECONFIG") if name in os.environ]
    return ["env", *kept, *words]


def nodes(words: Sequence[str]) -> dict[str, bool]:
    """The nodes of the cluster, and whether each takes any pod now.

    Raises RunError with kubectl's complaint.
    """
    asked = [*words, "get", "nodes", "--output=json", f"--request-timeout={QUESTION_S}s"]
    try:
        items = json.loads(printed(asked, QUESTION_S + 1))["items"]
        return {item["metadata"]["name"]: _takes_pods(item) for item in items}
    except (ValueError, KeyError) as error:
        raise RunError(f"kubectl: its list of nodes cannot be read: {error}") from error


def _takes_pods(node: Mapping[str, Any]) -> bool:
    spec, conditions = node.get("spec") or {}, node.get("status", {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    repels = any(taint.get("effect") in _REPELLING for taint in spec.get("taints") or ())
    return ready and not repels and not spec.get("unschedulable")


def may_not(words: Sequence[str]) -> str | None:
    """What this user may not do in the namespace, of all that an environment needs."""
    for verb, resource in (("create", "pods"), ("create", "pods/exec"), ("delete", "pods")):
        # After a slash, kubectl expects the name of an object.
        kind, _, part = resource.partition("/")
        asked = [*words, "auth", "can-i", verb, kind, f"--request-timeout={QUESTION_S}s"]
        asked += [f"--subresource={part}"] if part else []
        try:
            printed(asked, QUESTION_S + 1)
        except RunError:  # it prints "no", and the exit code is 1
            return f"{verb} {resource}"
    return None
