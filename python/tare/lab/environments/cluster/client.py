# SPDX-License-Identifier: Apache-2.0
"""Represents a program of a pod on this host: passes signals on, and ends as it ends.

It runs as a script, with the standard library alone: `client.py WORDS`, where the words call
`kubectl exec --stdin` with the shell scripts `RUN` and `BEGIN`.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGCONT, signal.SIGWINCH,
)  # fmt: skip
TERMINATED = "command terminated with exit code "
"""What kubectl prints when a program in a container has failed."""
_MARK = TERMINATED.encode()

RUN = 'sh -c "$0" "$@"; code=$?; kill -9 -1; exit "$code"'
"""Runs the script `BEGIN` to the end of its program, and kills what the program left: in a
container, -1 is every process but the first and this one."""
BEGIN = """\
exec 3<&0 </dev/null
( (while read -r number; do kill -"$number" $$; done; kill -9 -1) <&3 >/dev/null 2>&1 & )
exec 3<&-
cd "$0" || exit
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"
"""
"""Becomes a program: `BEGIN FOLDER NAME=VALUE ... -- PROGRAM ARGUMENTS`. Each line of standard
input is the number of a signal to it; at the end of standard input, it is killed. The process that
reads these lines is no child of the program, which may wait for its children."""


def main(*words: str) -> None:
    """Ends with the exit code of the program; 128 + N if signal N ended it."""
    # kubectl inherits that they are blocked: it must not end by a signal that the program handles.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    kubectl = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert kubectl.stdin is not None
    assert kubectl.stderr is not None
    signals = kubectl.stdin.fileno()

    def forward(number: int, _frame: object) -> None:
        with suppress(OSError):  # it has ended
            os.write(signals, b"%d\n" % number)

    for number in FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    copy_without_mark(kubectl.stderr.fileno(), sys.stderr.fileno())
    code = kubectl.wait()
    sys.exit(code if code >= 0 else 128 - code)


def copy_without_mark(source: int, target: int) -> None:
    """Copies what is written to one descriptor to another, but not kubectl's last line about the
    exit code: the last line of the log is the program's."""
    held = b""
    while chunk := os.read(source, 65536):
        held += chunk
        last = held.rfind(b"\n", 0, len(held) - 1) + 1
        ready = last if _MARK.startswith(held[last : last + len(_MARK)]) else len(held)
        _write(target, held[:ready])
        held = held[ready:]
    if not re.fullmatch(_MARK + rb"\d+\n?", held):
        _write(target, held)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
