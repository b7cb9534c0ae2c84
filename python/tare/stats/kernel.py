# SPDX-License-Identifier: Apache-2.0
"""What crates/distances computes, called as it is."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tare.errors import TareError
from tare.native import native


@cache
def kernel() -> Any:
    """`tare_distances_add`. Raises TareError where the native parts are not built."""
    path = native("lib", "libtare_distances.so")
    try:
        add = ctypes.CDLL(path).tare_distances_add
    except OSError as error:
        raise TareError(f"{path}: cannot be loaded; `make native` builds it ({error})") from error
    size, address = ctypes.c_size_t, ctypes.c_void_p
    add.argtypes = [size, *[address] * 7, size, *[address] * 3]
    return add
