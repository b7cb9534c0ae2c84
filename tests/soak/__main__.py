# SPDX-License-Identifier: Apache-2.0
"""The long series of `make soak`, one after the other: python -m tests.soak [--tries N]."""

import argparse

from tests.soak import null_and_delay

parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
parser.add_argument("--tries", type=int, default=10, help="tries of each plan")
null_and_delay.run(parser.parse_args().tries)
