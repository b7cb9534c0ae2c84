# SPDX-License-Identifier: Apache-2.0
"""The `tare` command: native commands replace this process before anything else is imported."""

import os
import signal
import sys

from tare.native import native

NATIVE_COMMANDS = {
    "hook": "tare-hook",
    "link": "tare-link",
    "load": "tare-load",
    "log": "tare-log",
    "map": "tare-map",
    "spans receive": "tare-spans",
    "spans run": "tare-spans",
    "spans schema": "tare-spans",
}


def main() -> None:
    """Runs `tare`; leaves by an exit code of the contract."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line can say it in one line
    # `tare -- hook` means `tare hook`, as it would with any other command.
    words = sys.argv[2 if sys.argv[1:2] == ["--"] else 1 :] or [""]
    arguments = words[1:]
    name = words[0] if words[0] in NATIVE_COMMANDS else " ".join(words[:2])
    if name not in NATIVE_COMMANDS:
        from tare.cli import main as command_line
        from tare.without_pandas import leave_out

        leave_out(arguments)
        sys.exit(command_line())
    # Python ignores these two, and what is ignored stays so in every program that is run from here.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    path = native("bin", NATIVE_COMMANDS[name])
    try:
        os.execv(path, [NATIVE_COMMANDS[name], *arguments])
    except OSError as error:
        message = f"{path}: {error.strerror}; build the native parts with 'make native'"
        print(f"tare {name}: {message}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
