# SPDX-License-Identifier: Apache-2.0
"""Result folders whose owner puts a link in their place while a command works with them."""

from pathlib import Path
from typing import Any

import pytest
from tests.report.synthetic import Synthetic

from tare.errors import InputError
from tare.report import write as report
from tare.report.page.cards import first_screen
from tare.verdict import judge


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A folder with a result, and another folder that nothing may change."""
    Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    (tmp_path / "x").mkdir()
    return tmp_path


def test_a_folder_that_is_swapped_while_it_is_read_changes_nothing_elsewhere(
    box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, elsewhere = box / "result", box / "x"
    (elsewhere / "report.html").write_text("years")

    def swapping(*words: Any) -> Any:
        result.rename(box / "moved")
        result.symlink_to(elsewhere)
        return first_screen(*words)

    monkeypatch.setattr("tare.report.page.page.first_screen", swapping)
    report(result)
    assert (elsewhere / "report.html").read_text() == "years"
    assert "<html" in (box / "moved" / "report.html").read_text()


def test_verdicts_of_a_folder_that_is_swapped_while_it_is_judged_change_nothing_elsewhere(
    box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, elsewhere = box / "result", box / "x"
    (elsewhere / "verdicts.json").write_text("years")
    (result / "verdicts.json").unlink(missing_ok=True)

    def swapping(experiment: Any) -> Any:
        result.rename(box / "moved")
        result.symlink_to(elsewhere)
        return judge(experiment)

    monkeypatch.setattr("tare.verdict.judge", swapping)
    # The verdicts are read again by the name of the folder.
    with pytest.raises(InputError, match="not the verdicts of a result"):
        report(result)
    assert (elsewhere / "verdicts.json").read_text() == "years"
    assert "judged_by" in (box / "moved" / "verdicts.json").read_text()
