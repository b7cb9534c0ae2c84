# SPDX-License-Identifier: Apache-2.0
"""The long series, one after the other; each renews its section of docs/results.md."""

import argparse
from collections.abc import Callable

from tests.soak import (
    alike,
    asan,
    downgrades,
    fuzz,
    hog,
    kills,
    link,
    link_kills,
    log,
    map,
    mutations,
    null_and_delay,
    suite,
)

SERIES: dict[str, Callable[..., None]] = {
    "asan": asan.run,
    "downgrades": downgrades.run,
    "fuzz": fuzz.run,
    "kills": kills.run,
    "link": link.run,
    "link-kills": link_kills.run,
    "link-mutations": mutations.link,
    "log": log.run,
    "log-mutations": mutations.log,
    "map": map.run,
    "verdicts": null_and_delay.run,
    "alike": alike.run,
    "hog": hog.run,
    "suite": suite.run,
}

parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
parser.add_argument("series", nargs="*", help=f"{', '.join(SERIES)}; all of them unless named")
parser.add_argument("--seconds", type=int, default=60, help="fuzz: seconds a target")
parser.add_argument(
    "--file-seconds", type=int, default=1800, help="fuzz: seconds of the target of log files"
)
parser.add_argument(
    "--mutations",
    type=int,
    default=10_000_000,
    help="fuzz, link-mutations, log-mutations: of a live segment; fuzz of 0: --seconds",
)
parser.add_argument("--kills", type=int, default=30, help="kills, link-kills: tries of each kind")
parser.add_argument("--downgrades", type=int, default=10_000, help="downgrades: of each way")
parser.add_argument(
    "--log-kills", type=int, default=200, help="log: of the program; of the collector a quarter"
)
parser.add_argument(
    "--operations", type=int, default=1_000_000, help="link: operations that are compared"
)
parser.add_argument("--minutes", type=float, default=20, help="map: length of the churn")
parser.add_argument("--tries", type=int, default=10, help="verdicts: tries of each plan")
parser.add_argument("--experiments", type=int, default=100, help="alike: experiments")
parser.add_argument("--hogs", type=int, default=10, help="hog: experiments of each kind")
parser.add_argument("--runs", type=int, default=10, help="suite: further runs of the whole suite")
parser.add_argument(
    "--tests", action="append", default=[], metavar="PATH", help="suite: this part of it alone"
)
options = parser.parse_args()
numbers: dict[str, tuple[object, ...]] = {
    "asan": (),
    "downgrades": (options.downgrades,),
    "fuzz": (options.seconds, options.file_seconds, options.mutations),
    "kills": (options.kills,),
    "link": (options.operations,),
    "link-kills": (options.kills,),
    "link-mutations": (options.mutations,),
    "log": (options.log_kills,),
    "log-mutations": (options.mutations,),
    "map": (options.minutes,),
    "verdicts": (options.tries,),
    "alike": (options.experiments,),
    "hog": (options.hogs,),
    "suite": (options.runs, options.tests),
}
unknown = set(options.series) - set(SERIES)
if unknown:
    parser.error(f"no series {', '.join(sorted(unknown))}; expected some of {', '.join(SERIES)}")
for name in options.series or SERIES:
    SERIES[name](*numbers[name])
