# SPDX-License-Identifier: Apache-2.0
"""Samples: readers of files and of result folders; each gives an `Experiment` of runs.

Each name is imported when it is first used: comparing files needs no reader of results.
"""

from typing import TYPE_CHECKING, Any

from tare.lazy import lazy

if TYPE_CHECKING:
    from tare.samples.file_runs import read_files
    from tare.samples.formats import NAMES as FORMATS
    from tare.samples.formats.asked import ROLES, Asked, parse_columns, parse_units
    from tare.samples.load_output import read_load_output
    from tare.samples.measured import read_both, read_result
    from tare.samples.model import Experiment, Run

__all__ = [
    "FORMATS",
    "ROLES",
    "Asked",
    "Experiment",
    "Run",
    "parse_columns",
    "parse_units",
    "read_both",
    "read_files",
    "read_load_output",
    "read_result",
]


def __getattr__(name: str) -> Any:
    return lazy(__name__, name, _WHERE)


_WHERE = {
    "FORMATS": "formats:NAMES",
    "ROLES": "formats.asked",
    "Asked": "formats.asked",
    "Experiment": "model",
    "Run": "model",
    "parse_columns": "formats.asked",
    "parse_units": "formats.asked",
    "read_both": "measured",
    "read_files": "file_runs",
    "read_load_output": "load_output",
    "read_result": "measured",
}
