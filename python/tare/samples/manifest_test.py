# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.samples.manifest import read_manifest


@pytest.mark.parametrize("looks", [[16, 8], [8, 8], [0], [8.5], ["8"], [True], [[8]]])
def test_looks_are_growing_numbers_of_blocks(looks: list[object], tmp_path: Path) -> None:
    manifest = {"runs": [], "baseline": "a", "budget": 0.03, "looks": looks}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"looks.*: found .*, expected"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"looks": [8, 16]}))
    assert read_manifest(tmp_path).looks == [8, 16]


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"number": 11},
        {"number": True},
        {"answer": "fine"},
        {"evidence": "text"},
        {"evidence": ["x" * 1_001]},
        {"evidence": [""] * 21},
    ],
)
def test_a_recommendation_of_another_form_is_refused_in_one_line(
    wrong: dict[str, object], tmp_path: Path
) -> None:
    right = {"number": 8, "answer": "kept", "evidence": ["read"]}
    run = {"run": 1, "block": 1, "environment": "host", "condition": "a", "valid": True}

    def put(recommendation: dict[str, object]) -> None:
        runs = [{**run, "recommendations": [recommendation]}]
        manifest = {"runs": runs, "baseline": "a", "budget": 0.03}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))

    put(right | wrong)
    with pytest.raises(InputError, match=r"runs.*recommendations.*: found .*, expected") as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)
    put(right)
    assert read_manifest(tmp_path).runs[0].recommendations[0].answer == "kept"


def test_environments_that_are_compared_have_the_names_of_conditions(tmp_path: Path) -> None:
    run = {"run": 1, "block": 1, "environment": "a/b", "condition": "plain", "valid": True}
    manifest = {"runs": [run], "baseline": "host", "budget": 0.03, "environments": ["a/b"]}
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest))
    assert read_manifest(tmp_path).runs[0].environment == "a/b"
    file.write_text(json.dumps(manifest | {"compare": "environments"}))
    with pytest.raises(InputError, match="a name without / and ="):
        read_manifest(tmp_path)
    file.write_text(json.dumps(manifest | {"compare": "environments"}).replace("a/b", "netns"))
    swapped = read_manifest(tmp_path).as_compared()
    assert (swapped.runs[0].condition, swapped.runs[0].environment) == ("netns", "plain")
    assert [condition.name for condition in swapped.conditions] == ["netns"]
