# SPDX-License-Identifier: Apache-2.0
"""A report has a size that can be sent, whatever was measured."""

from pathlib import Path

import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic

MEBIBYTE = 1 << 20


@pytest.mark.exhaustive
def test_small_whatever_the_amount_of_data(tmp_path: Path) -> None:
    made_up = Synthetic(requests=84_000)
    assert 3 * made_up.blocks * made_up.requests > 2_000_000
    html, _ = written(made_up, tmp_path / "result")
    assert len(html.encode()) < 3 * MEBIBYTE


@pytest.mark.exhaustive
def test_small_with_many_conditions(tmp_path: Path) -> None:
    made_up = Synthetic(
        effects={f"c{number}": 0.01 * number for number in range(6)},
        environments=("host", "vm"),
        requests=10_000,
        blocks=2,
        design="blocks",
        readings=60,
        hooked=("c1", "c2"),
    )
    html, _ = written(made_up, tmp_path / "result")
    assert len(html.encode()) < 3 * MEBIBYTE
