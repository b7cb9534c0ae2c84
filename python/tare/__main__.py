# SPDX-License-Identifier: Apache-2.0
"""The `tare` command: native commands replace this process before anything else is imported."""

import os
import signal
import sys

from tare.native import native

NATIVE_COMMANDS = {"hook": "tare-hook", "load": "tare-load"}


def main() -> None:
    """Runs `tare`; leaves by an exit code of the contract."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line can say it in one line
    program = NATIVE_COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if program is None:
        from tare.cli import main as command_line

        sys.exit(command_line())
    path = native("bin", program)
    try:
        os.execv(path, [program, *sys.argv[2:]])
    except OSError as error:
        message = f"{path}: {error.strerror}; build the native parts with 'make native'"
        print(f"tare {sys.argv[1]}: {message}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
