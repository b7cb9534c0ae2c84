# SPDX-License-Identifier: Apache-2.0
"""`tare init` on a terminal asks for what is missing."""

import io
import sys
from pathlib import Path

import pytest

from tare.cli import main
from tare.plan import TcpLoad, load


class Terminal(io.StringIO):
    """Answers to questions."""

    def isatty(self) -> bool:
        return True


def answer(
    monkeypatch: pytest.MonkeyPatch, folder: Path, answers: str, *words: str
) -> tuple[int, Path]:
    plan = folder / "new.toml"
    monkeypatch.setattr(sys, "stdin", Terminal(answers))
    monkeypatch.setattr(sys, "argv", ["tare", "init", str(plan), *words])
    return main(), plan


def test_answers_make_a_plan_over_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = "redis-server --port {port}\ntcp\nPING\\r\\n\n\n\n5%\n"
    code, file = answer(monkeypatch, tmp_path, answers)
    assert code == 0, capsys.readouterr()
    plan = load(file)
    assert isinstance(plan.load, TcpLoad)
    assert (plan.load.send, plan.load.reply, plan.budget) == ("PING\\r\\n", "resp", 0.05)
    assert [layer.type for layer in plan.conditions[1].layers] == ["hook"]


def test_only_what_is_missing_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--condition", "a=env:A=1", "--load", "path=/x", "--budget", "2%")
    code, file = answer(monkeypatch, tmp_path, "serve {port}\n", *words)
    assert code == 0, capsys.readouterr()
    assert load(file).service.command == ["serve", "{port}"]


def test_printed_commands_name_a_file_with_spaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my plans"
    folder.mkdir()
    words = ("--service", "serve {port}", "--condition", "a=hook")
    code, file = answer(monkeypatch, folder, "", *words)
    assert code == 0
    assert f"measure with: tare run '{file}'\n" in capsys.readouterr().out


def test_a_plan_that_cannot_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--service", "serve {prot}", "--condition", "a=hook")
    code, file = answer(monkeypatch, tmp_path, "", *words)
    assert code == 2
    assert "instead of {prot}" in capsys.readouterr().err
    assert not file.exists()


def test_a_wrong_answer_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["serve {prot}", "serve {port}", "/", "env:A", "env:A=1", "much", "2%"]
    code, file = answer(monkeypatch, tmp_path, "".join(f"{line}\n" for line in answers))
    assert code == 0, capsys.readouterr()
    said = capsys.readouterr().err
    assert said.count("Command that starts the service") == 2, said
    assert "instead of {prot}" in said
    assert load(file).budget == 0.02
