# SPDX-License-Identifier: Apache-2.0
"""pyarrow and DuckDB import pandas where it is installed: a third of the time of `tare compare`."""

import sys
from collections.abc import Sequence
from types import ModuleType


class WithoutPandas:
    """A finder for `sys.meta_path`, with which pandas is as if it were not installed."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG004
        target: ModuleType | None = None,  # noqa: ARG004
    ) -> None:
        """Raises ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("Tare does without it", name=name)


def leave_out(arguments: Sequence[str]) -> None:
    """Leaves pandas out of this process, unless the command has an engine, which may use it."""
    if not any(word.startswith("--engine") for word in arguments):
        sys.meta_path.insert(0, WithoutPandas)
