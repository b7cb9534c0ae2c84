# SPDX-License-Identifier: Apache-2.0
"""The page of tare map shows the library by an example that cargo compiles."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_example_on_the_page_is_part_of_the_compiled_example() -> None:
    page = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```rust\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    compiled = iter((ROOT / "crates/map/examples/edges.rs").read_text().splitlines())
    # In this order; what the page leaves out does not matter.
    missing = [line for line in shown.splitlines() if line not in compiled]
    assert not missing
