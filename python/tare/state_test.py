# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.state import state_folder


@pytest.mark.parametrize(
    ("said", "folder"),
    [
        ("/var/state", "/var/state/tare"),
        ("", "/home/of/user/.local/state/tare"),
        ("relative", "/home/of/user/.local/state/tare"),
        (None, "/home/of/user/.local/state/tare"),
    ],
)
def test_state_stands_where_the_specification_says(
    said: str | None, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/of/user")
    if said is None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", said)
    assert state_folder() == Path(folder)
