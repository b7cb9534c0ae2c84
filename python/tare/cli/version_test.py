# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare import native as place
from tare.cli.version import version_text


def test_version_has_commit_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_FOLDER", str(tmp_path))
    assert (
        "(commit unknown)\nnot built: hook, link, load, log, map, spans, log for Java"
        in version_text()
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tare-load").touch()
    (tmp_path / "commit").write_text("0123456789ab+\n")
    first, built, missing = version_text().splitlines()
    assert first.endswith("(commit 0123456789ab+)")
    assert (built, missing) == (
        "parts: load",
        "not built: hook, link, log, map, spans, log for Java",
    )
