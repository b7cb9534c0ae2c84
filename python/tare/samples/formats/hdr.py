# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram's interval logs: histograms in the V2 encoding, compressed, one a line.

Encoding: HdrHistogram 2, AbstractHistogram.encodeIntoCompressedByteBuffer, and
HistogramLogWriter for the lines. The values of a log have no unit.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.errors import InputError, NoRequestsError
from tare.samples.counted import Counted, Histogram
from tare.samples.formats.asked import Asked
from tare.samples.formats.csv_file import UNREADABLE, opened
from tare.samples.formats.times import NANOSECONDS
from tare.samples.model import REQUEST

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

COMPRESSED, PLAIN = 0x1C849304, 0x1C849303
KIND = 0xFFFFFF0F
"""The bits of a cookie that tell the encoding; the others tell the size of a word."""
LARGEST = 1 << 26
_LINE = re.compile(r"^(?:Tag=([^,]*),)?([\d.]+),([\d.]+),[^,]*,\"?([A-Za-z0-9+/=]+)\"?$")
_TIME = re.compile(r"^#\[(StartTime|BaseTime): ([\d.]+)")
BAD = (ValueError, binascii.Error, zlib.error, struct.error, IndexError)


def read(backend: Backend, path: Path, asked: Asked) -> Counted:  # noqa: ARG001
    """Adds up the intervals of each tag, which is a span; without a tag they are requests."""
    if asked.unit is None:
        raise InputError(
            f"{path}: an HdrHistogram log does not state its unit; add --unit ns|us|ms|s"
        )
    scale = NANOSECONDS[asked.unit]
    found: dict[str, dict[tuple[int, int], int]] = {}
    times: dict[str, float] = {}
    spans: list[tuple[float, float]] = []
    bad = 0
    try:
        with opened(path) as file:
            for raw in file:
                line = raw.decode(errors="replace").strip()
                if time := _TIME.match(line):
                    times[time[1]] = float(time[2])
                if not line or line.startswith(("#", '"StartTimestamp"')):
                    continue
                interval = _LINE.match(line)
                try:
                    bins = _decode(base64.b64decode(interval[4], validate=True)) if interval else {}
                except BAD:
                    interval = None
                if interval is None:
                    bad += 1
                    continue
                spans.append((float(interval[2]), float(interval[3])))
                sums = found.setdefault(interval[1] or REQUEST, {})
                for place, count in bins.items():
                    sums[place] = sums.get(place, 0) + count
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not found:
        raise NoRequestsError(
            f"{path}: no interval of {bad} could be read; expected histograms in the encoding V2"
        )
    ends = _ends(spans, times)
    notes = (f"{bad} intervals could not be read: left out",) if bad else ()
    histograms = tuple(_histogram(sums, scale, span, *ends) for span, sums in found.items())
    return Counted(histograms, notes)


def _histogram(
    sums: dict[tuple[int, int], int], scale: int, span: str, start: int | None, end: int | None
) -> Histogram:
    places = sorted(sums)
    low, high = (np.array([one[edge] * scale for one in places], np.float64) for edge in (0, 1))
    requests = np.array([sums[one] for one in places], np.int64)
    return Histogram(low, high, requests, span=span, started_ns=start, ended_ns=end)


def _ends(spans: list[tuple[float, float]], times: dict[str, float]) -> tuple[Any, Any]:
    """When the first interval began and the last one ended, in ns; None where nothing says it."""
    first = min(start for start, _ in spans)
    base = times.get("BaseTime", 0.0)
    if "BaseTime" not in times and first < times.get("StartTime", 0.0) - 365 * 86_400:
        base = times["StartTime"]
    if base + first < 1e9:
        return None, None
    last = max(start + length for start, length in spans)
    return round((base + first) * 1e9), round((base + last) * 1e9)


def _decode(packed: bytes) -> dict[tuple[int, int], int]:
    """The counts of one histogram by the lowest and highest value that a bin stands for."""
    kind, length = struct.unpack_from(">II", packed)
    if kind & KIND != COMPRESSED or length > len(packed) - 8:
        raise ValueError("another encoding")
    decompressor = zlib.decompressobj()
    plain = decompressor.decompress(packed[8 : 8 + length], LARGEST)
    kind, size, shift, digits, least, _, _ = struct.unpack_from(">IIiiqqd", plain)
    if kind & KIND != PLAIN or shift or not 0 <= digits <= 5 or least < 1:
        raise ValueError("another encoding")
    counts, places = _counts(np.frombuffer(plain, np.uint8, size, 40))
    return _values(counts, places, digits, least)


def _counts(data: Any) -> tuple[Any, Any]:
    """Counts above zero and their places, from ZigZag LEB128 numbers; a negative one skips."""
    ends = np.flatnonzero(data < 0x80)
    if not ends.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    sizes = ends - starts + 1
    if sizes.max() > 8 or ends[-1] != data.size - 1:
        raise ValueError("counts beyond any load test")
    nth = np.arange(data.size) - np.repeat(starts, sizes)
    numbers = np.add.reduceat((data & 0x7F).astype(np.int64) << (7 * nth), starts)
    signed = (numbers >> 1) ^ -(numbers & 1)
    steps = np.where(signed < 0, -signed, 1)
    places = np.cumsum(steps) - steps
    return signed[signed > 0], places[signed > 0]


def _values(counts: Any, places: Any, digits: int, least: int) -> dict[tuple[int, int], int]:
    unit = least.bit_length() - 1
    half = (2 * 10**digits - 1).bit_length() - 1
    bucket = (places >> half) - 1
    below = bucket < 0
    sub = (places & ((1 << half) - 1)) + np.where(below, 0, 1 << half)
    shifts = np.where(below, 0, bucket) + unit
    if shifts.size and int(shifts.max()) + half + 1 > 62:
        raise ValueError("values beyond 64 bits")
    low = sub << shifts
    high = low + (np.int64(1) << shifts) - 1
    return dict(zip(zip(low.tolist(), high.tolist(), strict=True), counts.tolist(), strict=True))
