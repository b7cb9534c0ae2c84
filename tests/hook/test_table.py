# SPDX-License-Identifier: Apache-2.0
"""docs/internals/hook.md says what is tested, and everything is."""

from tests.hook import table


def test_every_function_has_a_case() -> None:
    assert [symbol for symbol, names in table.cases().items() if not names] == []


def test_cases_are_about_what_the_library_stands_in_front_of() -> None:
    assert set(table.cases()) == set(table.symbols())
    assert [path.name for path in table.CASES.glob("*.c") if not table.covers(path)] == []


def test_the_page_is_up_to_date() -> None:
    page = table.PAGE.read_text()
    assert table.renewed(page) == page, "run python -m tests.hook.table"
