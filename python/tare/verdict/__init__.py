# SPDX-License-Identifier: Apache-2.0
"""The rules that turn statistics into a verdict."""

from tare.verdict.failures import without_bad_runs, without_failing
from tare.verdict.folders import judge_folders
from tare.verdict.judge import judge
from tare.verdict.judgement import Comparison, Judgement, Published, PublishedBestFit

__all__ = [
    "Comparison",
    "Judgement",
    "Published",
    "PublishedBestFit",
    "judge",
    "judge_folders",
    "without_bad_runs",
    "without_failing",
]
