# SPDX-License-Identifier: Apache-2.0
"""More requests failed than the plan allows, or none was answered."""

from tare.lab.result.measured import Measured
from tare.lab.validity.error_hints import most_frequent
from tare.plan import CommandLoad, OwnLoad


def invalid_reason(found: Measured, load: OwnLoad | CommandLoad) -> str | None:
    """With the most frequent error, if its kind is known."""
    if found.requests == 0:
        return "no request was answered within the window"
    share, limit = found.errors / found.requests, load.max_errors
    if share <= limit:
        return None
    most = most_frequent(found, load)
    why = f"; most often: {most}" if most else ""
    return f"{share:.2%} of the requests failed, above the limit of {limit:.2%}{why}"
