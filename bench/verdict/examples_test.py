# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from bench.verdict.examples import compared, examples

EXPECTED = {
    "2 % of requests take 4 times as long": ["shape-changed"],
    "2,000 times as slow, units stated": ["slower"],
    "three conditions, six blocks, +295 %": ["slower"] * 3,
}


@pytest.mark.parametrize("what", EXPECTED)
def test_the_command_gets_what_is_true(what: str, tmp_path: Path) -> None:
    (example,) = (example for example in examples() if example.what == what)
    found = compared(example, tmp_path)
    assert [comparison["verdict"] for comparison in found] == EXPECTED[what]
