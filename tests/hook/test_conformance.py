# SPDX-License-Identifier: Apache-2.0
"""Every case prints the result and errno of every call: the same with and without the hook."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.hook.conftest import CASES, Compile
from tests.hook.hooked import hooked, inert, plain, rules
from tests.hook.table import covers, uncounted

# Traces what occurs everywhere, and looks ahead of every write for what never occurs.
RULES = rules("a", "e", "0", scope="all", direction="both") + rules(
    "occurs in no case", scope="all", direction="both", action="block"
)


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.c")))
def test_a_call_does_what_it_does_without_the_hook(
    name: str, compile_case: Compile, tmp_path: Path
) -> None:
    program = compile_case(name)
    expected = plain([program], tmp_path)
    assert expected.code != 99, expected.err
    assert inert([program], tmp_path) == expected
    seen = hooked([program], tmp_path, RULES)
    assert seen.behaviour == expected
    about = covers(CASES / f"{name}.c")
    rows = seen.stats["functions"]
    counted = {row["function"] for row in rows if row["calls_socket"] + row["calls_other"]}
    assert about - uncounted() <= counted, "the case does not call what it says it covers"
    asked_for = subprocess.check_output(["nm", "--dynamic", "--undefined-only", program], text=True)
    assert about & uncounted() <= set(re.findall(r"(\w+)@", asked_for))


@pytest.mark.parametrize("length", ["4", "8", "9"])
def test_a_checked_form_that_overflows_ends_as_it_does_without_the_hook(
    length: str, compile_case: Compile, tmp_path: Path
) -> None:
    command = [str(compile_case("fortified")), length]
    expected = plain(command, tmp_path)
    assert hooked(command, tmp_path, RULES).behaviour == expected
