# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

from tare.cli import main
from tare.plan.schema.layers import LAYERS


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


def test_help_lists_every_layers_shorthand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tare", "run", "--help"])
    main()
    text = capsys.readouterr().out
    for layer in LAYERS.values():
        assert f"\n    {layer.SHORTHAND}  " in text


def test_the_first_screen_of_help_has_whole_descriptions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["-h"], ["--help"]):
        monkeypatch.setattr(sys, "argv", ["tare", *words])
        assert main() == 0
        text = capsys.readouterr().out
        assert "..." not in text.split("Commands:")[1]
        assert "tare run --service" in text
        assert len(text.splitlines()) <= 30
