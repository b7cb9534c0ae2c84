# SPDX-License-Identifier: Apache-2.0
from tare.report.environments import short


def test_a_terminal_shows_environments_beside_each_other() -> None:
    found = {
        "host": {"system_call_ns": 164.0, "flops_per_second": 9.6e9, "cpu_share": 0.66},
        "vm-uml": {"system_call_ns": 1640.0, "flops_per_second": 9.6e9, "cpu_share": 0.5},
    }
    lines = [line.replace("\u00a0", " ") for line in short(found)]
    assert lines[:3] == [
        "environments, measured inside:",
        "                      host         vm-uml",
        "  system call         164 ns       1.64 µs (×10)",
    ]
    assert lines[-1] == "  CPU of Linpack      66.0 %       50.0 %"
    assert len(lines) == 2 + 8
    assert short({}) == []
