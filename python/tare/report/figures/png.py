# SPDX-License-Identifier: Apache-2.0
"""PNG images of one colour in a few strengths (PNG specification, third edition, 2025)."""

import base64
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tare.stats.arrays import Array

STRENGTHS = 8
PALEST = 0.06
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE = 3
"""Colour type: each pixel is a number in a table of colours."""


def shades(strengths: "Array", colour: str, *, empty: bool = False) -> str:
    """Base64 of an image (rows, columns) of strengths from 0 to 1; what is not finite is clear.

    Strength 0 is clear where `empty` is true, and the palest shade otherwise.
    """
    import numpy as np

    known = np.isfinite(strengths)
    scaled = np.where(known, strengths, 0).clip(0, 1) * (STRENGTHS - 1)
    places = (np.ceil if empty else np.rint)(scaled).astype(np.uint8) + 1
    places[~known | (empty & (scaled == 0))] = 0
    alphas = [0, *(round(255 * alpha) for alpha in np.linspace(PALEST, 1, STRENGTHS))]
    hue = bytes.fromhex(colour.removeprefix("#"))
    rows, columns = places.shape
    lines = np.zeros((rows, columns + 1), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = places
    header = struct.pack(">IIBBBBB", columns, rows, 8, _PALETTE, 0, 0, 0)
    image = b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", hue * len(alphas)),
            _chunk(b"tRNS", bytes(alphas)),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )
    return base64.b64encode(image).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
