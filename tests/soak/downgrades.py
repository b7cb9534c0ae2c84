# SPDX-License-Identifier: Apache-2.0
"""Links that go back to TCP with unread bytes, whose other end runs (tests/link/downgrades.c)."""

from collections import Counter

from bench.results import renew
from tests.link import linked, test_downgrades
from tests.once import OUT, compiled, shared

WAYS = {"exec": "`exec` of another program", "pass": "`SCM_RIGHTS`"}
UNREAD = 60_000
ROUNDS = 1000
"""Of a run, which is one process per end."""


def run(number: int) -> None:
    """Makes this number of downgrades each way and renews the section; raises AssertionError if a
    connection is reset, or if a byte is lost, doubled or wrong."""
    source = test_downgrades.HERE / "downgrades.c"
    lines = []
    with shared():
        program = str(compiled("downgrades", "cc", "-O1", "-w", "-o", OUT, source))
        for way, words in WAYS.items():
            counts, sent = Counter[str](), 0
            # A connection whose ends do not meet in time stays TCP, and is no downgrade.
            while counts["left"] < number:
                rounds = min(ROUNDS, number - counts["left"])
                done = linked.run(program, way, "rests", str(UNREAD), str(rounds))
                assert (done.code, done.errors) == (0, ""), done
                counts.update(done.counts)
                sent += int(done.output.split()[-1])
                print(way, counts["left"], counts["reset"], flush=True)
            lines.append(
                f"- {words}: {counts['left']:,} connections went back to TCP, {counts['reset']}"
                f" were reset; {sent:,} unread bytes, all read in order."
            )
            assert counts["reset"] == 0, counts
    body = "\n".join(["The other end runs, and makes no call meanwhile.", "", *lines])
    command = f"python -m tests.soak downgrades --downgrades {number}"
    renew("downgrades", "Links that go back to TCP", command, body)
