# SPDX-License-Identifier: Apache-2.0
import re

from bench.map.tracing import BY_TRACER, outside
from bench.results import ROOT

BPF = ROOT / "crates" / "map" / "bpf"


def test_iterators_run_in_the_process_and_are_not_counted_twice() -> None:
    iterators = [
        name
        for file in BPF.glob("*.h")
        for name in re.findall(r'^SEC\("iter/\w+"\)\nint (\w+)\(', file.read_text(), re.MULTILINE)
    ]
    assert sorted(iterators) == sorted(BY_TRACER)


def test_programs_that_others_run_are_added_up() -> None:
    programs = {
        "tcp_state": {"runs": 2, "nanoseconds": 300},
        "udp_sent": {"runs": 1, "nanoseconds": 50},
        "count_open": {"runs": 1, "nanoseconds": 9000},
    }
    assert outside(programs) == 350
