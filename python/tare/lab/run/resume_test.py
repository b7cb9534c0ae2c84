# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.run.resume import resumable


def test_a_result_may_not_name_the_folder_of_a_stranger(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder to another user")
    stranger, result = tmp_path / "stranger", tmp_path / "result"
    stranger.mkdir()
    os.chown(stranger, 65_534, 65_534)
    result.mkdir()
    (result / "plan.toml").write_text("")
    for place, why in ((stranger, "which belongs to user 65534"), (tmp_path / "none", "restore")):
        manifest = {"budget": 0.03, "baseline": "a", "runs": [], "plan_folder": str(place)}
        (result / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=why):
            resumable(None, result)
