# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are imported when they are first used (PEP 562)."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, name: str, where: Mapping[str, str]) -> Any:
    """What `name` is in the module of `package` that `where` names, as `module` or `module:other`.

    Raises AttributeError for a name that is not in `where`.
    """
    if name not in where:
        raise AttributeError(f"module {package} has no attribute {name}")
    module, _, other = where[name].partition(":")
    return getattr(import_module(f"{package}.{module}"), other or name)
