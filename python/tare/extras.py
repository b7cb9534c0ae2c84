# SPDX-License-Identifier: Apache-2.0
"""Packages that only a few commands need: they are installed as extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tare.errors import InputError


def extra(name: str, module: str, what: str) -> Any:
    """The module of the extra `name`, which `what` needs: an option, a command or a format.

    Raises InputError where it is not installed, with the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"{what}: needs {module.partition('.')[0]}, which is not installed;"
            f" pip install 'tare[{name}]'"
        ) from error
