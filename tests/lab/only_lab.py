# SPDX-License-Identifier: Apache-2.0
"""`tare run` without verdict and report, which take longer than a short experiment."""

import sys
from pathlib import Path

from tare.cli.run import Lines
from tare.errors import TareError
from tare.lab import carry_out
from tare.plan import load

plan, folder, *blocks = sys.argv[1:]
try:
    settings = {"blocks": int(blocks[0])} if blocks else {}
    carry_out(load(Path(plan), settings), Path(folder), Lines())
except TareError as error:
    print(f"tare: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
