# SPDX-License-Identifier: Apache-2.0
"""Series of numbers on stdin as JSON, the changes that Apache Otava finds in each on stdout.

Run by the interpreter of Otava's own environment: its pins are not Tare's.
"""

import json
import sys

from otava.series import AnalysisOptions, Metric, Series


def changes(values: list[float]) -> list[float]:
    """The relative change at each change point, by Otava's defaults."""
    series = Series("test", None, [*range(len(values))], {"mean": Metric()}, {"mean": values}, {})
    found = series.analyze(AnalysisOptions()).change_points["mean"]
    return [point.stats.forward_rel_change() for point in found]


json.dump([changes(values) for values in json.load(sys.stdin)], sys.stdout)
