# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from bench.plans import changed
from bench.results import ROOT
from bench.verdict import slices
from tests.soak import alike


def test_a_line_is_replaced_or_missed(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("blocks = 8\nblocks_of = 8\n")
    assert changed(plan, {"blocks = 8": "blocks = 2"}) == "blocks = 2\nblocks_of = 8\n"
    with pytest.raises(SystemExit, match="expected one line 'blocks = 9', found 0"):
        changed(plan, {"blocks = 9": ""})


def test_the_plans_that_are_changed_have_these_lines() -> None:
    assert "blocks = 6" in changed(ROOT / "plans" / "null-nginx.toml", alike.SHORTER)
    assert 'slice = "20ms"' in slices.plan("20ms")
