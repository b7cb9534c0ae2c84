# SPDX-License-Identifier: Apache-2.0
"""Asks other programs."""

import subprocess


def ask(*command: str, limit_s: float = 5, line: int = -1) -> tuple[bool, str]:
    """Whether a command ended well, and one line of what it said: the last, or number `line`."""
    try:
        answer = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {limit_s:g} s"
    except OSError as error:
        return False, error.strerror or str(error)
    well = answer.returncode == 0
    order = (answer.stdout, answer.stderr) if well else (answer.stderr, answer.stdout)
    said = next((text.strip() for text in order if text.strip()), "")
    return well, said.splitlines()[line][:200] if said else f"exit code {answer.returncode}"
