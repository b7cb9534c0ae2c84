# SPDX-License-Identifier: Apache-2.0
"""Kieker's binary records, as its files and its connections have them: how many are of a method."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np

OPERATION = np.dtype([("type", ">i4"), ("logged", ">i8"), ("signature", ">i4"), ("rest", "V40")])
"""kieker.common.record.controlflow.OperationExecutionRecord."""
OPERATION_NAME = ".OperationExecutionRecord"
METADATA = 49
"""Bytes of kieker.common.record.misc.KiekerMetadataRecord."""
METADATA_NAME = ".KiekerMetadataRecord"
NAME = struct.Struct(">iii")
"""-1, a text's number, its length; then the text, by whose number records name it."""


class Records:
    """A stream of records, fed in any pieces."""

    def __init__(self, method: str, names: dict[int, str] | None = None) -> None:
        self.found = 0
        """Records of executions of the method."""
        self._wanted = f".{method}("
        self._names = dict(names or {})
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. Raises ValueError where they are no records of Kieker's."""
        data = self._rest + data
        at = 0
        while size := self._next(data, at):
            at += size
        self._rest = data[at:]

    def _next(self, data: bytes, at: int) -> int:
        """Reads what begins there; its size, or 0 where the rest of it is still to come."""
        left = len(data) - at
        if left < NAME.size:
            return 0
        kind, number, length = NAME.unpack_from(data, at)
        if kind == -1:
            end = NAME.size + length
            if left >= end:
                self._names[number] = data[at + NAME.size : at + end].decode()
            return end if left >= end else 0
        name = self._names.get(kind, "")
        if name.endswith(METADATA_NAME):
            return METADATA if left >= METADATA else 0
        if not name.endswith(OPERATION_NAME):
            raise ValueError(f"Kieker: a record of type {kind} ({name or 'unknown'})")
        return self._executions(data, at, kind)

    def _executions(self, data: bytes, at: int, kind: int) -> int:
        """Reads all records of executions that follow each other; their size."""
        whole = np.frombuffer(data, OPERATION, (len(data) - at) // OPERATION.itemsize, at)
        others = np.flatnonzero(whole["type"] != kind)
        run = whole[: others[0]] if others.size else whole
        for signature, times in zip(*np.unique(run["signature"], return_counts=True), strict=True):
            if self._wanted in self._names.get(int(signature), ""):
                self.found += int(times)
        return run.size * OPERATION.itemsize


def read_names(file: Path) -> dict[int, str]:
    """The texts of a kieker.map, by their numbers."""
    lines = re.findall(r"^\$(\d+)=(.*)$", file.read_text(), re.M)
    return {int(number): text for number, text in lines}
