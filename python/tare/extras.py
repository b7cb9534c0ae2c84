# SPDX-License-Identifier: Apache-2.0
"""Packages that only a few commands need: they are installed as extras."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tare.errors import InputError


def extra(name: str, module: str, what: str) -> Any:
    """The module of the extra `name`, which `what` needs: an option, a command or a format.

    Raises InputError where it is not installed, with the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(name, module, what) from error


def require_extra(name: str, module: str, what: str) -> None:
    """The same check without the import, which takes time, for what is needed later."""
    if find_spec(module.partition(".")[0]) is None:
        raise _missing(name, module, what)


def _missing(name: str, module: str, what: str) -> InputError:
    package = module.partition(".")[0]
    return InputError(
        f"{what}: needs {package}, which is not installed; pip install 'tare[{name}]'"
    )
