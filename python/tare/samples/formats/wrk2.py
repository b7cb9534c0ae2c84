# SPDX-License-Identifier: Apache-2.0
"""wrk2's printed percentile table (`wrk --latency`, HdrHistogram text): counted values in ms.

The table has cumulative counts at rising values; what lies between two lines is counted at the
upper line, so quantiles are never too low and at most one line too high.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tare.errors import InputError
from tare.samples.counted import Counted, Histogram, points
from tare.samples.formats.csv_file import UNREADABLE, opened

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

LARGEST = 4 << 20
_LINE = re.compile(r"^\s*(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|inf)\s*$")
_REFUSED = re.compile(r"^\s*Non-2xx or 3xx responses: (\d+)", re.MULTILINE)
_SOCKET = re.compile(r"^\s*Socket errors: (.*)$", re.MULTILINE)


def read(backend: Database, path: Path) -> Counted:  # noqa: ARG001
    """Reads the first table of the output: recorded latency, corrected for late sending."""
    try:
        with opened(path) as file:
            output = file.read(LARGEST + 1)
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if len(output) > LARGEST:
        most = f"{LARGEST >> 20} MiB"
        raise InputError(f"{path}: is larger than {most}; expected what one run of wrk2 prints")
    text = output.decode(errors="replace")
    counted, whole = _counted(text)
    if not counted:
        raise InputError(f"{path}: no percentile table; run wrk2 with --latency")
    if not whole:
        raise InputError(f"{path}: its percentile table breaks off; was the output cut?")
    values, requests = zip(*counted, strict=True)
    refused = min(sum(map(int, _REFUSED.findall(text))), sum(requests))
    lost = sum(int(number) for line in _SOCKET.findall(text) for number in re.findall(r"\d+", line))
    note = f"{refused:,} answers other than 2xx and 3xx are among wrk2's latencies"
    bins = Histogram(**points(values, _thinned(requests, refused)), errors=refused + lost)
    return Counted((bins,), (note,) if refused else ())


def _thinned(requests: Sequence[int], refused: int) -> npt.NDArray[np.int64]:
    """Counts without the failed requests, evenly: nobody knows which latencies are theirs."""
    until = np.cumsum(requests)
    kept: npt.NDArray[np.int64] = np.round(until * (1 - refused / until[-1])).astype(np.int64)
    return np.diff(kept, prepend=0)


def _counted(text: str) -> tuple[list[tuple[int, int]], bool]:
    """Values and their counts, and whether the table goes on to the slowest request."""
    counted: list[tuple[int, int]] = []
    before = 0
    for line in io.StringIO(text, newline=None):
        found = _LINE.match(line)
        if found:
            value, total = round(float(found.group(1)) * 1e6), int(found.group(3))
            if total > before:
                counted.append((value, total - before))
            before = total
            if found.group(4) == "inf":
                return counted, True
    return counted, False
