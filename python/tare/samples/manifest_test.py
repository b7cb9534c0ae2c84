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
