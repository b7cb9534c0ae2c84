# SPDX-License-Identifier: Apache-2.0
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tare.plan import PlanOptions, parse
from tare.plan.text.commented import commented
from tare.plan.text.options import plan_data
from tare.plan.text.toml_text import toml_text

TCP = ("type=tcp", "send=PING\\r\\n", "reply=resp")


@pytest.mark.parametrize("load", [(), ("users=3", "path=/a"), TCP])
def test_comments_change_nothing_and_defaults_are_the_defaults(
    load: Sequence[str], tmp_path: Path
) -> None:
    (tmp_path / "own.conf").write_text("listen {port};\nb\n")
    options = PlanOptions(
        service="serve {port}",
        conditions=["agent=env:A=1", "agent=hook"],
        load=load,
        files=[f"own.conf={tmp_path}/own.conf"],
    )
    data = plan_data(options)
    text = commented(data, "own.toml")
    plan = parse(toml_text(data), "plain.toml", Path()).model_dump()
    assert parse(text, "own.toml", Path()).model_dump() == plan
    uncommented, count = re.subn(r"(?m)^# (?=\w+ = )", "", text)
    assert count >= 7
    changed = parse(uncommented, "own.toml", Path()).model_dump()
    plan["load"]["users"] = plan["load"]["users"] or 1  # of a closed loop
    assert changed == plan
