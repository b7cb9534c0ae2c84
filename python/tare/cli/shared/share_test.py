# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.cli.shared.share import share
from tare.errors import InputError
from tare.plan import PlanOptions, from_options


@pytest.mark.parametrize("text", ["5%", "5 %", "0.05", " 5.0% ", ".05"])
def test_a_percentage_and_a_fraction_are_the_same_share(text: str) -> None:
    assert share("--budget", text, above_zero=True) == pytest.approx(0.05)


@pytest.mark.parametrize("text", ["5%", "0.05"])
def test_run_reads_the_same_forms(text: str) -> None:
    options = PlanOptions(service="serve {port}", conditions=["a=hook"], budget=text)
    assert from_options(options, Path()).budget == pytest.approx(0.05)


@pytest.mark.parametrize("text", ["5", "0", "0%", "100%", "1", "-1%", "five", "", "nan", "0.05 %%"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--budget: found .* expected a share above 0 %"):
        share("--budget", text, above_zero=True)


def test_zero_can_be_allowed() -> None:
    assert share("--max-errors", "0%") == 0
