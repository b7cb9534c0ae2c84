# SPDX-License-Identifier: Apache-2.0
"""Engines that count samples where they lie: DuckDB, Spark, ClickHouse, Trino, through Ibis."""

from tare.samples.engines.describing import describe, describe_each, histogram_of
from tare.samples.engines.description import Described, Description
from tare.samples.engines.engine_by_name import Engine, open_engine
from tare.samples.engines.exact import Extent
from tare.samples.engines.from_histogram import describe_histogram
from tare.samples.engines.histogram import histogram
from tare.samples.engines.stored_histograms import StoredHistograms

__all__ = [
    "Described",
    "Description",
    "Engine",
    "Extent",
    "StoredHistograms",
    "describe",
    "describe_each",
    "describe_histogram",
    "histogram",
    "histogram_of",
    "open_engine",
]
