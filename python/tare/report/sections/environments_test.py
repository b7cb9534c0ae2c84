# SPDX-License-Identifier: Apache-2.0
from tare.report.sections.environments import short
from tare.samples.manifest import Manifest


def with_fingerprints(found: dict[str, dict[str, float]]) -> Manifest:
    return Manifest(baseline="host", budget=0.03, runs=[], fingerprints=found)


def test_a_terminal_shows_environments_beside_each_other() -> None:
    # The baseline comes first.
    found = {
        "vm-uml": {"system_call_ns": 1640.0, "flops_per_second": 9.6e9, "cpu_share": 0.5},
        "host": {"system_call_ns": 164.0, "flops_per_second": 9.6e9, "cpu_share": 0.66},
    }
    lines = [line.replace("\u00a0", " ") for line in short(with_fingerprints(found))]
    assert lines[:3] == [
        "environments, measured inside:",
        "                      host         vm-uml",
        "  system call         164 ns       1.64 µs (×10)",
    ]
    assert lines[-1] == "  CPU of Linpack      66.0 %       50.0 %"
    assert len(lines) == 2 + 9
    assert short(with_fingerprints({})) == []


def test_the_name_of_an_environment_is_shown_with_escapes() -> None:
    lines = short(with_fingerprints({"a\x1b[2J": {"system_call_ns": 164.0}}))
    assert lines[1].split() == [r"a\x1b[2J"]
