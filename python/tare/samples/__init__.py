# SPDX-License-Identifier: Apache-2.0
"""Samples: readers of files and of result folders; each gives an `Experiment` of runs.

Each name is imported when it is first used: comparing files needs no reader of results.
"""

from typing import TYPE_CHECKING, Any

from tare.lazy import lazy

if TYPE_CHECKING:
    from tare.samples.formats import NAMES as FORMATS
    from tare.samples.formats.import_options import ROLES, ImportOptions, parse_columns, parse_units
    from tare.samples.model import Experiment, Run
    from tare.samples.read.file_runs import read_files
    from tare.samples.read.load_output import read_load_output
    from tare.samples.read.result import open_result
    from tare.samples.read.result_folders import read_both, read_result

__all__ = [
    "FORMATS",
    "ROLES",
    "Experiment",
    "ImportOptions",
    "Run",
    "open_result",
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
    "ROLES": "formats.import_options",
    "ImportOptions": "formats.import_options",
    "Experiment": "model",
    "Run": "model",
    "open_result": "read.result",
    "parse_columns": "formats.import_options",
    "parse_units": "formats.import_options",
    "read_both": "read.result_folders",
    "read_files": "read.file_runs",
    "read_load_output": "read.load_output",
    "read_result": "read.result_folders",
}
