# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import pytest

from tare.lab.doctor import finding, parts
from tare.lab.doctor.probes import PROBES
from tare.plan.schema.environments import ENVIRONMENTS


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of parts that are missing; all others work."""
    names: set[str] = set()

    def problem(path: str) -> str | None:
        return "not built" if Path(path).name in names else None

    for kind in ("command", "library", "jar"):
        monkeypatch.setattr(parts, f"_{kind}_problem", problem)
    return names


@pytest.mark.parametrize(
    ("names", "affects", "get"),
    [
        ({"tare-map"}, "tare map", "apt-get install clang libbpf-dev, then make native"),
        (
            {"tare-log.jar", "tare-log-agent.jar"},
            "tare log in Java",
            "apt-get install openjdk-17-jdk-headless maven, then make native",
        ),
        ({"tare-map", "tare-hook"}, "tare hook, tare map", "make native, or install the wheel"),
    ],
    ids=["map", "jars", "two parts"],
)
def test_only_what_needs_the_missing_part_is_affected(
    missing: set[str], names: set[str], affects: str, get: str
) -> None:
    missing.update(names)
    found = parts.native_parts()
    (probe,) = [probe for probe in PROBES if probe.name == "native parts"]
    told = finding.finding(probe, found)
    assert (told.state, told.switches_off, told.get) == ("partly", affects, get)


def test_no_probe_names_an_environment_that_plans_do_not_have() -> None:
    words = [f"{probe.switches_off} {probe.get}" for probe in PROBES]
    named = {name for text in words for name in re.findall(r"environments? ([\w-]+)", text)}
    assert named <= ENVIRONMENTS.keys()
