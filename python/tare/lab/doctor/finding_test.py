# SPDX-License-Identifier: Apache-2.0
from tare.lab.doctor import Finding, State, summary


def findings(**states: State) -> list[Finding]:
    return [Finding("group", name, state, "", "", "", {}) for name, state in states.items()]


def test_the_summary_names_what_does_not_work() -> None:
    assert summary(findings(a="yes", b="yes")) == "All 2 features work."
    some = findings(a="partly", b="yes", c="no", d="no")
    assert summary(some) == "1 of 4 features work. Missing: c, d. Only in part: a."
    assert summary(findings(a="partly")) == "0 of 1 features work. Only in part: a."
