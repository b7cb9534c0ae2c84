# SPDX-License-Identifier: Apache-2.0
"""Engines that count samples where they lie: DuckDB, Spark, ClickHouse, Trino, through Ibis."""

from tare.samples.engines.binned import describe_histogram
from tare.samples.engines.describing import describe, describe_each, histogram_of
from tare.samples.engines.description import Described, Description
from tare.samples.engines.exact import Extent
from tare.samples.engines.histogram import histogram
from tare.samples.engines.kept import Kept
from tare.samples.engines.opened import Engine, open_engine

__all__ = [
    "Described",
    "Description",
    "Engine",
    "Extent",
    "Kept",
    "describe",
    "describe_each",
    "describe_histogram",
    "histogram",
    "histogram_of",
    "open_engine",
]
