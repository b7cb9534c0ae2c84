# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

from tare.cli import main


def test_a_plan_that_may_not_be_read_is_told_in_the_words_of_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    # Root may read everything, so what the kernel tells others is put in its place.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(sys, "argv", ["tare", "run", str(plan)])
    assert main() == 2
    error = f"tare: {plan}: Permission denied; give the path of a plan\n"
    assert capsys.readouterr().err == error
