# SPDX-License-Identifier: Apache-2.0
"""docs/link.md says what is tested."""

import re

from tests.link import support_table


def test_every_case_says_what_it_is_about_and_does_it() -> None:
    found = list(support_table.cases())
    assert len(found) > 20
    for case in found:
        assert case.covers, case.name
        assert case.covers.keys() <= support_table.WAYS.keys(), case.name
        words = [word for words in case.covers.values() for word in words]
        assert [word for word in words if not re.search(rf"\b{word}\b", case.text)] == [], case.name


def test_the_page_is_up_to_date() -> None:
    page = support_table.PAGE.read_text()
    assert support_table.renewed(page) == page, "run python -m tests.link.support_table"
