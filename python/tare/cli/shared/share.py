# SPDX-License-Identifier: Apache-2.0
"""Shares as options take them, in the same two forms as plans."""

import re

from tare.errors import InputError

_NUMBER = r"\s*(\d+(?:\.\d+)?|\.\d+)\s*"


def share(option: str, text: str, *, above_zero: bool = False) -> float:
    """`3%` or `0.03` as 0.03, below 1. Raises InputError for anything else."""
    found = re.fullmatch(_NUMBER + "(%?)" + r"\s*", text)
    number = float(found[1]) / (100 if found[2] else 1) if found else -1
    if not 0 <= number < 1 or (above_zero and number == 0):
        bounds = "above 0 % and below 100 %" if above_zero else "below 100 %"
        raise InputError(f"{option}: found '{text}', expected a share {bounds}, as 3% or 0.03")
    return number
