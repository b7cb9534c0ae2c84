# SPDX-License-Identifier: Apache-2.0
"""The rules that turn statistics into a verdict.

Each name is imported when it is first used; `judge` at once, since a module has its name."""

from typing import TYPE_CHECKING, Any

from tare.lazy import lazy
from tare.verdict.judge import judge

if TYPE_CHECKING:
    from tare.verdict.folders import judge_folders
    from tare.verdict.judgement import Comparison, Judgement, Published, PublishedBestFit
    from tare.verdict.rules.failures import without_bad_runs, without_failing

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


def __getattr__(name: str) -> Any:
    return lazy(__name__, name, _WHERE)


_WHERE = {
    "Comparison": "judgement",
    "Judgement": "judgement",
    "Published": "judgement",
    "PublishedBestFit": "judgement",
    "judge_folders": "folders",
    "without_bad_runs": "rules.failures",
    "without_failing": "rules.failures",
}
