# SPDX-License-Identifier: Apache-2.0
"""The errors that reach the user, each one line: what is wrong, where, what to do."""


class TareError(Exception):
    """The work itself failed: exit code 1."""

    exit_code = 1


class InputError(TareError):
    """Wrong arguments or bad input: exit code 2."""

    exit_code = 2


class NoRequestsError(InputError):
    """A file without a request: among others of its condition, its run alone does not count."""


class InterruptionError(TareError):
    """Ctrl-C, with something to say about it: exit code 130."""

    exit_code = 130


class GateError(TareError):
    """A verdict that `--fail-on` asked for: exit code 3, after everything was printed."""

    exit_code = 3
