# SPDX-License-Identifier: Apache-2.0
"""Records of what environments have made, that other processes of this user have written."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.rights import may_make_namespaces
from tests.running.test_ps_and_clean import abandon, directory
from tests.waiting import SECONDS, wait_for

from tare.running import created_resources

__all__ = ["directory"]


@pytest.mark.usefixtures("directory")
def test_what_an_owner_in_another_pid_namespace_made_is_in_use_until_that_has_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container with the same runtime directory: its PIDs are other processes here."""
    if not may_make_namespaces():
        pytest.skip("only root can make a PID namespace")
    command = ["unshare", "--pid", "--fork", "--kill-child", "sleep", str(2 * SECONDS)]
    with subprocess.Popen(command) as container:
        try:
            children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
            wait_for(children.read_text)
            inside = int(children.read_text())
            path = created_resources.record("bridge", "thing", [("true",)]).path
            namespace = Path(f"/proc/{inside}/ns/pid").stat().st_ino
            path.write_text(json.dumps(json.loads(path.read_text()) | {"namespace": namespace}))
            abandon(path)
            own = Path("/proc/self/ns/pid").stat().st_ino
            monkeypatch.setattr(created_resources, "_FIRST_PID_NAMESPACE", own)
            assert created_resources.made_things()[0].in_use
            assert [*created_resources.remove_abandoned()] == []
        finally:
            container.kill()
    wait_for(lambda: not Path(f"/proc/{inside}").exists())
    monkeypatch.setattr(created_resources, "_FIRST_PID_NAMESPACE", 0)
    assert created_resources.made_things()[0].in_use, "it may be where this process sees nothing"
    monkeypatch.setattr(created_resources, "_FIRST_PID_NAMESPACE", own)
    assert [*created_resources.remove_abandoned()] == [path]


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "changed",
    [
        {"name": 5},
        {"type": {}},
        {"owner": "../self"},
        {"owner": True},
        {"undo": 5},
        {"undo": [[1]]},
        {"undo": [[]]},
        {"undo": [["a\0b"]]},
        {"surplus": 1},
        "[" * 200_000,
        "[1, 2]",
        "{",
        "9" * 5_000,
    ],
    ids=lambda changed: str(changed)[:20],
)
def test_damaged_record_is_left_and_others_are_carried_out(changed: dict[str, Any] | str) -> None:
    damaged, whole = (
        created_resources.record("bridge", name, [("true",)]).path for name in ("1", "2")
    )
    for path in (damaged, whole):
        abandon(path)
    record = json.loads(damaged.read_text())
    text = changed if isinstance(changed, str) else json.dumps(record | changed)
    damaged.write_text(text)
    assert "2" in [made.name for made in created_resources.made_things()]
    assert [*created_resources.remove_abandoned()] == [whole]
    assert damaged.read_text() == text
