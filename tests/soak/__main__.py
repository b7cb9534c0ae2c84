# SPDX-License-Identifier: Apache-2.0
"""The long series, one after the other; each renews its section of docs/results.md."""

import argparse

from tests.soak import alike, fuzz, kills, null_and_delay

SERIES = {"fuzz": fuzz.run, "kills": kills.run, "verdicts": null_and_delay.run, "alike": alike.run}

parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
parser.add_argument("series", nargs="*", help=f"{', '.join(SERIES)}; all of them unless named")
parser.add_argument("--seconds", type=int, default=60, help="fuzz: seconds a target")
parser.add_argument("--kills", type=int, default=30, help="kills: tries of each kind")
parser.add_argument("--tries", type=int, default=10, help="verdicts: tries of each plan")
parser.add_argument("--experiments", type=int, default=100, help="alike: experiments")
options = parser.parse_args()
numbers = {
    "fuzz": options.seconds,
    "kills": options.kills,
    "verdicts": options.tries,
    "alike": options.experiments,
}
unknown = set(options.series) - set(SERIES)
if unknown:
    parser.error(f"no series {', '.join(sorted(unknown))}; expected some of {', '.join(SERIES)}")
for name in options.series or SERIES:
    SERIES[name](numbers[name])
