# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one end of a link in the middle of a stream (tests/link/killed.py), many times."""

from statistics import median

from bench.results import renew
from tests.link import killed
from tests.once import shared

LATEST_MS = 10
"""From the end of the killed process to what the survivor sees."""


UNREAD = {
    "sends": {
        killed.IN_RING: "sender, ring not full",
        0: "sender, ring full",
        killed.TAKEN_BACK: "sender, ring and TCP full",
    },
    "receives": {0: "receiver"},
}


def run(kills: int) -> None:
    """Kills this number of each kind and renews the section; raises AssertionError if a byte was
    lost, or if a survivor saw it later than it may."""
    lines = [
        "| killed | the other end waits in | kills | with lost bytes | median, ms | most, ms |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    most, lost = 0.0, 0
    with shared():
        for victim, kinds in UNREAD.items():
            for unread, kind in kinds.items():
                for wait in killed.WAITS:
                    seen = [killed.kill(victim, wait, unread) for _ in range(kills)]
                    late = [one.after_ms for one in seen]
                    losses = sum(victim == "sends" and one.received < one.sent for one in seen)
                    most, lost = max(most, *late), lost + losses
                    call = "a call that blocks" if wait == "call" else f"`{wait}`"
                    times = f"{median(late):.2f} | {max(late):.2f}"
                    lines.append(f"| {kind} | {call} | {kills} | {losses} | {times} |")
                    print(lines[-1], flush=True)
    lines += [
        "",
        "Time from the end of the killed process until the other end saw it, after all bytes that"
        f" it received: at most {LATEST_MS} ms wanted. A killed receiver may leave bytes unread.",
    ]
    renew(
        "link-kills",
        "kill -9 of one end of a link",
        f"python -m tests.soak link-kills --kills {kills}",
        "\n".join(lines),
    )
    assert lost == 0, f"bytes were lost in {lost} kills"
    assert most <= LATEST_MS, f"{most:.2f} ms (at most {LATEST_MS} ms)"
