# SPDX-License-Identifier: Apache-2.0
"""The detection limits that calibrations measured on this machine, for later verdicts.

`$XDG_STATE_HOME/tare/calibration.json` holds one entry for each machine, service, environment,
span and statistic: the latest.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tare.atomic_files import regular_file, replace
from tare.errors import InputError, TareError
from tare.samples.manifest import DetectionLimit
from tare.state import state_folder
from tare.untrusted import read_bytes

NAME = "calibration.json"
FORMAT = 1
_MOST_BYTES = 64 << 20
_KEY = ("machine", "service", "environment", "span", "statistic")


@dataclass(frozen=True)
class Limit:
    """What was measured of one statistic."""

    machine: str
    """As the fingerprint in a manifest calls it."""
    service: str
    environment: str
    span: str
    statistic: str
    """`p50`, `p95`, `p99`, `mean`, `ks`, `ad`."""
    undetected_ns: int | None
    """Smaller differences are not detected reliably; None where no delay at all is detected, too:
    the statistic raises false alarms."""
    level_ns: float
    """The median latency that this holds for."""
    blocks: int
    """Of one comparison."""
    repetitions: int
    shares: dict[str, float]
    """Of repetitions that detected it, by delay in ns."""
    date: str
    version: str
    """Of Tare."""


def remember(limits: Sequence[Limit]) -> Path:
    """Puts limits in the place of earlier limits of the same thing; returns the file.

    Two at once wait for each other. Raises TareError where nothing can be written; what was there
    stays then.
    """
    fresh = {_key(limit): limit for limit in limits}
    try:
        path = state_folder() / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = regular_file(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
        with os.fdopen(descriptor, "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known, damage = _read(path)
            if damage:
                path.replace(path.with_suffix(".damaged"))
            kept = {_key(limit): limit for limit in known} | fresh
            entries = [asdict(kept[key]) for key in sorted(kept)]
            replace(path, json.dumps({"format": FORMAT, "limits": entries}, indent=2) + "\n")
    except (OSError, RuntimeError, InputError) as error:  # a full disk, no right, or no home
        why = f"{error.filename or path}: {error.strerror}" if isinstance(error, OSError) else error
        raise TareError(
            f"{why}; the limits were not stored for later verdicts; set XDG_STATE_HOME to a"
            " writable folder"
        ) from error
    return path


def detection_limits(machine: str, service: str) -> tuple[list[Limit], tuple[str, ...]]:
    """What is not detected reliably of a service on a machine, and warnings.

    A damaged file holds no limits, and is warned of.
    """
    try:
        limits, damage = _read(state_folder() / NAME)
    except RuntimeError as error:  # a user without a home
        return [], (f"no detection limit is known: {error}",)
    found = [limit for limit in limits if (limit.machine, limit.service) == (machine, service)]
    return found, (damage,) if damage else ()


def _key(limit: Limit) -> tuple[str, ...]:
    return tuple(getattr(limit, name) for name in _KEY)


def _read(path: Path) -> tuple[list[Limit], str]:
    """The entries, and what is wrong with the file."""
    try:
        held = json.loads(read_bytes(path, _MOST_BYTES, follow=True))
        if held["format"] != FORMAT:
            return [], _damage(path, f"is of format {held['format']}, expected {FORMAT}")
        return [_limit(entry) for entry in held["limits"]], ""
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], _damage(path, f"{error.strerror}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return [], _damage(path, f"cannot be understood ({type(error).__name__})")


def _damage(path: Path, what: str) -> str:
    return f"{path}: {what}: no detection limit is known; repeat 'tare calibrate'"


def _limit(entry: dict[str, Any]) -> Limit:
    """Raises KeyError, TypeError or ValueError for what no calibration wrote."""
    DetectionLimit.model_validate(entry)
    limit = Limit(**{field.name: entry[field.name] for field in fields(Limit)})
    undetected = limit.undetected_ns
    if undetected is not None and not (isinstance(undetected, int) and undetected > 0):
        raise ValueError("expected a duration above zero")
    return limit
