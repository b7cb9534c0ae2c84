# SPDX-License-Identifier: Apache-2.0
"""Damaged files, and those made to do damage: one line says what a reader stumbled over."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import InputError
from tare.samples.sql.engine import first_line, of_engine

SHOWN = 200
_ENGINES = ("duckdb", "_duckdb", "pyarrow")
_OF_BYTES = (
    ArithmeticError, ValueError, TypeError, LookupError, AttributeError, EOFError, MemoryError,
    RecursionError, struct.error, zlib.error,
)  # fmt: skip


@contextmanager
def refused(path: Path, name: str) -> Iterator[None]:
    """Turns what bytes can raise in the reader of the format `name` into an InputError.

    NumPy raises, too, where it would warn and go on with a wrong number.
    """
    import numpy as np

    try:
        with np.errstate(all="raise", under="ignore"):
            yield
    except Exception as error:
        # Importing PyArrow only to name its errors would take a tenth of a second.
        if not isinstance(error, _OF_BYTES) and of_engine(error) not in _ENGINES:
            raise
        why = f"{type(error).__name__}: {first_line(error)}"[:SHOWN]
        raise InputError(
            f"{path}: cannot be read as {name}: it is damaged, or has numbers beyond any load test"
            f" ({why}); record it again"
        ) from error
