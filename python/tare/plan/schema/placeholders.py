# SPDX-License-Identifier: Apache-2.0
"""Placeholders in commands and files: only known names, so that other braces stay untouched."""

import re
from collections.abc import Collection, Mapping, Sequence

SERVICE_NAMES = ("address", "dir", "plan", "port")
"""What the lab fills in a service's command, variables and files, and in those of layers."""

AGENT_NAMES = (*SERVICE_NAMES, "log", "name", "pid")
"""What the lab fills in the commands of an agent."""

# Neither ${NAME} of a shell nor {{NAME}} of a template.
_NAME_IN_BRACES = re.compile(r"(?<![${])\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")

_OF_ANOTHER = re.compile(r"(?<![${])\{([A-Za-z0-9][A-Za-z0-9._-]*)\.(?:address|port)\}(?!\})")

# Of a file, any other dotted name in braces may be its own.
_PART_OF_ANOTHER = re.compile(
    r"(?<![${])\{([A-Za-z0-9][A-Za-z0-9._-]*)\.(?!(?:address|port)\})([A-Za-z_]+)\}(?!\})"
)


def services_named(text: str) -> list[str]:
    """The services whose address or port a text asks for, as in `{users.port}`."""
    return _OF_ANOTHER.findall(text)


def unknown_part(text: str, services: Collection[str]) -> tuple[str, str] | None:
    """The first name in braces that asks a known service for something else than its address or
    port, as `{users.prot}`: the service, and what it is asked for."""
    found = (match.groups() for match in _PART_OF_ANOTHER.finditer(text))
    return next(((name, part) for name, part in found if name in services), None)


def unknown_name(text: str, known: Sequence[str]) -> str | None:
    """The first name in braces of a command or variable that is not known."""
    return next((name for name in _NAME_IN_BRACES.findall(text) if name not in known), None)


def misspelt_name(text: str, known: Sequence[str]) -> tuple[str, str] | None:
    """The first name in braces of a file that must be a misspelt known name, and that known name.

    A file can have names in braces of its own, so that only an exchange of letters, or one
    missing or added letter of a long name, is taken for a mistake.
    """
    for name in _NAME_IN_BRACES.findall(text):
        for right in known:
            if name != right and name[0] == right[0] and _is_like(name, right):
                return name, right
    return None


def _is_like(name: str, right: str) -> bool:
    shorter, longer = sorted((name, right), key=len)
    one_letter = len(longer) - len(shorter) == 1 and any(
        longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer))
    )
    return sorted(name) == sorted(right) or (len(right) > 4 and one_letter)


def fill(text: str, values: Mapping[str, object]) -> str:
    """Replaces `{name}` by its value for every name in `values`, and nothing else."""
    names = "|".join(map(re.escape, values))
    return re.sub(r"\{(" + names + r")\}", lambda match: str(values[match[1]]), text)
