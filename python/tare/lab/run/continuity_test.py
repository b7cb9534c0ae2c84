# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError
from tare.lab.run.continuity import changes, file_hashes
from tare.plan import parse
from tare.samples.manifest import Manifest

BEGUN: dict[str, Any] = {
    "baseline": "plain",
    "budget": 0.03,
    "runs": [],
    "blocks": 8,
    "experiment": "try-1",
    "seed": 1,
    "order": [],
    "load": {},
    "machine": {"machine": "a1", "cpu_model": "one", "cpus": 2, "kernel": "6.1", "steal_now": 0.1},
    "placement": {"service": [1], "generator": [1], "why": "said so"},
    "files": {"rules.toml": "12ab"},
}
PLAN = """\
name = "try"
budget = "3%"
service = { command = "serve {port}" }
[[conditions]]
name = "plain"
[[conditions]]
name = "layered"
layers = [
  { type = "hook", rules = "rules.toml" },
  { type = "proxy", program = "nginx" },
  { type = "proxy", program = "nginx", config = "own.conf" },
]
"""


def now(table: str, key: str, value: object) -> Manifest:
    return Manifest.model_validate(BEGUN | {table: BEGUN[table] | {key: value}})


def test_a_manifest_that_lacks_something_is_refused() -> None:
    lacking = {key: BEGUN[key] for key in BEGUN if key not in ("files", "placement")}
    begun, fresh = Manifest.model_validate(lacking), Manifest.model_validate(BEGUN)
    with pytest.raises(
        InputError, match=r"manifest\.json has no files, placement; start a new experiment"
    ):
        changes(begun, fresh)


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("machine", "machine", "b2", "began on another machine (machine: a1, here b2)"),
        ("machine", "cpus", None, "began on another machine (cpus: 2, here None)"),
        (
            "placement",
            "service",
            [0],
            "with the service on CPUs [1], but now only [0] can be used",
        ),
        ("files", "rules.toml", "34cd", "began with another version of rules.toml"),
    ],
)
def test_what_makes_another_experiment_is_refused(
    table: str, key: str, value: object, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        changes(Manifest.model_validate(BEGUN), now(table, key, value))
    assert message in str(caught.value)


def test_what_can_matter_is_said_and_what_always_changes_is_not() -> None:
    begun = Manifest.model_validate(BEGUN)
    assert changes(begun, now("machine", "steal_now", 0.5)) == []
    told = changes(begun, now("machine", "kernel", "6.9"))
    assert told == ["resumed with another kernel: was 6.1, now 6.9"]


def test_every_file_of_a_layer_has_its_hash(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("one")
    (tmp_path / "own.conf").write_text("two")
    plan = parse(PLAN, "try.toml", tmp_path)
    before = file_hashes(plan)
    assert list(before) == ["own.conf", "rules.toml"]
    (tmp_path / "rules.toml").write_text("another")
    after = file_hashes(plan)
    assert before["own.conf"] == after["own.conf"]
    assert before["rules.toml"] != after["rules.toml"]
