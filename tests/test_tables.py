# SPDX-License-Identifier: Apache-2.0
"""What the native programs say that they write is what tables/*.toml declares."""

import json
import subprocess

import pytest

from tare.__main__ import NATIVE_COMMANDS
from tare.native import native
from tare.tables import table


@pytest.mark.parametrize("program", sorted({*NATIVE_COMMANDS.values()}))
def test_a_program_writes_columns_of_the_declared_tables(program: str) -> None:
    printed = subprocess.check_output([native("bin", program), "schema", "--json"])
    written = json.loads(printed)["tables"]
    assert written or program == "tare-log", "its files are made of blocks"
    for each in written:
        declared = {column.name: column.type for column in table(each["name"]).columns}
        for column in each["columns"]:
            assert declared[column["name"]] == column["type"]
