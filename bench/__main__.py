# SPDX-License-Identifier: Apache-2.0
"""Tare beside its peers and the bare limit, interleaved in one run: python -m bench PART..."""

import argparse
import os
import sys

from bench.hard import measure as hard
from bench.hook import measure as hook
from bench.link import measure as link
from bench.load import measure as load
from bench.log import measure as log
from bench.map import measure as map_bench
from bench.scale import measure as scale
from bench.spans import measure as spans
from bench.verdict import measure as verdict

PARTS = {
    "hook": hook.run,
    "link": link.run,
    "load": load.run,
    "log": log.run,
    "map": map_bench.run,
    "spans": spans.run,
    "hard": hard.run,
    "verdict": verdict.run,
    "scale": scale.run,
}

parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
parts = parser.parse_args().parts or [*PARTS]
quick = os.environ.get("BENCH") == "quick"
met = [PARTS[part](quick) for part in parts]
sys.exit(0 if all(met) else 1)
