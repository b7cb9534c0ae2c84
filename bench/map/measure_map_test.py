# SPDX-License-Identifier: Apache-2.0
from bench.map.cells import Cell, Measured, Run
from bench.map.completeness import Shares
from bench.map.load import Done, Load
from bench.map.measure import cases, table


def measured(x: int, rate: float, total: float, method: str = "bundle") -> Measured:
    run = Run(Cell("udp", x, Load("udp", x)), method)
    done = Done(rate=rate, latency_us=10, errors=0, services={})
    shares = Shares(100, None, 100) if method == "bundle" else Shares(50, None, None)
    return Measured(run, done, process=total / 2, programs=total / 2, shares=shares)


def test_the_total_is_judged_at_the_highest_rate_that_was_measured() -> None:
    # The load did not reach what was asked of it last.
    results = [measured(5_000, 5_000, 1), measured(20_000, 19_900, 2), measured(20_000, 19_800, 3)]
    results.append(measured(35_000, 19_000, 9))
    (total,) = [case for case in cases(results, []) if case.name == "udp-total"]
    assert total.values == [2, 3]


def test_what_a_peer_found_is_in_the_table() -> None:
    bundle, ss = table([measured(5_000, 5_000, 1, "ss"), measured(5_000, 5_000, 1)]).splitlines()[
        2:4
    ]
    assert bundle.split("|")[11:15] == [" 100 ", " - ", " 100 ", " 0 "]
    assert ss.split("|")[11:15] == [" 50 ", " - ", " - ", " - "]
    assert ss.split("|")[7:9] == [" 0.5 ", " - "]
