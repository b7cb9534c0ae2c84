# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram's interval logs: histograms in the V2 encoding, compressed, a histogram a line.

Encoding: HdrHistogram 2, AbstractHistogram.encodeIntoCompressedByteBuffer, and
HistogramLogWriter for the lines. The values of a log have no unit.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.errors import InputError, NoRequestsError
from tare.samples.counted import Counted, Histogram
from tare.samples.formats import bins
from tare.samples.formats.csv_file import UNREADABLE, opened
from tare.samples.formats.import_options import ImportOptions
from tare.samples.formats.lines import lines
from tare.samples.formats.times import NANOSECONDS
from tare.samples.model import MOST_SPANS, REQUEST

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

COMPRESSED, PLAIN = 0x1C849304, 0x1C849303
KIND = 0xFFFFFF0F
"""The bits of a cookie that tell the encoding; the others tell the size of a word."""
LARGEST = 4 << 20
"""Bytes of an interval, unpacked: a million counts, of which many are above 16,383."""
MOST_BINS = 1 << 20
"""Of all tags. 5 digits of an hour in ns have 3.4 million bins; few of them have requests."""
_LINE = re.compile(r"^(?:Tag=([^,]*),)?([\d.]+),([\d.]+),[^,]*,\"?([A-Za-z0-9+/=]+)\"?$")
_TIME = re.compile(r"^#\[(StartTime|BaseTime): ([\d.]+)")
BAD = (ValueError, binascii.Error, zlib.error, struct.error, IndexError)


class _Intervals:
    """What the lines of a log say together."""

    def __init__(self) -> None:
        self.bins = bins.Bins(MOST_BINS)
        self.times: dict[str, float] = {}
        self.first, self.last = inf, -inf
        self.bad = 0

    def add(self, raw: bytes | None) -> None:
        """A line, counted if it cannot be read. Raises OverflowError where the log is too large."""
        line = "a line without end" if raw is None else raw.decode(errors="replace").strip()
        try:
            if time := _TIME.match(line):
                self.times[time[1]] = float(time[2])
            if not line or line.startswith(("#", '"StartTimestamp"')):
                return
            interval = _LINE.match(line)
            if interval is None:
                raise ValueError("no interval")
            start, end = float(interval[2]), float(interval[2]) + float(interval[3])
            if not isfinite(end):
                raise ValueError("no time")
            found = _decode(base64.b64decode(interval[4], validate=True))
        except BAD:
            self.bad += 1
            return
        self.first, self.last = min(self.first, start), max(self.last, end)
        self.bins.add(interval[1] or REQUEST, found)
        if len(self.bins) > MOST_SPANS:
            raise OverflowError(f"more than {MOST_SPANS:,} tags")

    def ends(self) -> tuple[Any, Any]:
        """When the first interval began and the last ended, in ns; None if nothing says it."""
        base = self.times.get("BaseTime", 0.0)
        start = self.times.get("StartTime", 0.0)
        if "BaseTime" not in self.times and self.first < start - 365 * 86_400:
            base = start
        if base + self.first < 1e9:
            return None, None
        return round((base + self.first) * 1e9), round((base + self.last) * 1e9)


def read(backend: Database, path: Path, options: ImportOptions) -> Counted:  # noqa: ARG001
    """Adds up the intervals of each tag, which is a span; without a tag they are requests."""
    if options.unit is None:
        raise InputError(
            f"{path}: an HdrHistogram log does not state its unit; add --unit ns|us|ms|s"
        )
    scale = float(NANOSECONDS[options.unit])
    log = _Intervals()
    try:
        with opened(path) as file:
            for line in lines(file):
                log.add(line)
        found = log.bins.sums()
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except OverflowError as error:
        raise InputError(
            f"{path}: has {error}; record with fewer digits, or keep the lines of fewer tags"
        ) from error
    if not found:
        raise NoRequestsError(
            f"{path}: no interval of {log.bad} could be read; expected histograms in the"
            " encoding V2"
        )
    start, end = log.ends()
    notes = (f"{log.bad} intervals could not be read: left out",) if log.bad else ()
    histograms = tuple(
        Histogram(low * scale, high * scale, requests, span=span, started_ns=start, ended_ns=end)
        for span, (low, high, requests) in found.items()
    )
    return Counted(histograms, notes)


def _decode(packed: bytes) -> Any:
    """The bins of one histogram: lowest and highest value and count, of shape (3, n)."""
    kind, length = struct.unpack_from(">II", packed)
    if kind & KIND != COMPRESSED or length > len(packed) - 8:
        raise ValueError("another encoding")
    decompressor = zlib.decompressobj()
    plain = decompressor.decompress(packed[8 : 8 + length], LARGEST)
    if decompressor.unconsumed_tail:
        raise OverflowError(f"an interval of more than {LARGEST:,} bytes")
    kind, size, shift, digits, least, _, _ = struct.unpack_from(">IIiiqqd", plain)
    if kind & KIND != PLAIN or shift or not 0 <= digits <= 5 or least < 1:
        raise ValueError("another encoding")
    counts, places = _counts(np.frombuffer(plain, np.uint8, size, 40))
    return _values(counts, places, digits, least)


def _counts(data: Any) -> tuple[Any, Any]:
    """Counts above zero and their places, from ZigZag LEB128 numbers; a negative number skips."""
    ends = np.flatnonzero(data < 0x80)
    if not ends.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if ends.size > MOST_BINS:
        raise OverflowError(f"an interval of more than {MOST_BINS:,} bins")
    starts = np.concatenate(([0], ends[:-1] + 1))
    sizes = ends - starts + 1
    if sizes.max() > 8 or ends[-1] != data.size - 1:
        raise ValueError("counts beyond any load test")
    nth = np.arange(data.size) - np.repeat(starts, sizes)
    numbers = np.add.reduceat((data & 0x7F).astype(np.int64) << (7 * nth), starts)
    signed = (numbers >> 1) ^ -(numbers & 1)
    steps = np.where(signed < 0, -signed, 1)
    places = np.cumsum(steps) - steps
    if signed.max() > bins.LARGEST or places.min() < 0:
        raise ValueError("counts beyond any load test")
    return signed[signed > 0], places[signed > 0]


def _values(counts: Any, places: Any, digits: int, least: int) -> Any:
    unit = least.bit_length() - 1
    half = (2 * 10**digits - 1).bit_length() - 1
    bucket = (places >> half) - 1
    below = bucket < 0
    sub = (places & ((1 << half) - 1)) + np.where(below, 0, 1 << half)
    shifts = np.where(below, 0, bucket) + unit
    if shifts.size and int(shifts.max()) + half + 1 > 62:
        raise ValueError("values beyond 64 bits")
    low = sub << shifts
    return np.stack([low, low + (np.int64(1) << shifts) - 1, counts])
