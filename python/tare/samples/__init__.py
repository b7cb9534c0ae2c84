# SPDX-License-Identifier: Apache-2.0
"""Samples: readers of files and of result folders; each gives an `Experiment` of runs."""

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
