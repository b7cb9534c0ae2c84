# SPDX-License-Identifier: Apache-2.0
"""`tare link check`, and the hook and the log around linked programs."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND as HOOK
from tests.link.linked import LINK, assert_carried
from tests.log.conftest import TARE_LOG, dump
from tests.once import OUT, compiled
from tests.waiting import SECONDS

LOADER = rb"/lib\d*/ld-linux[\w.-]*\0"


def check(*words: str | Path, user: int | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [LINK, "check", *words],
        check=False,
        capture_output=True,
        text=True,
        user=user,
        timeout=SECONDS,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def changed(folder: Path, name: str, old: bytes, new: bytes) -> Path:
    """A copy of a program with other bytes in one place."""
    program = folder / name
    content, count = re.subn(old, lambda _: new, Path("/bin/true").read_bytes(), count=1)
    assert count == 1
    program.write_bytes(content)
    program.chmod(0o755)
    return program


def test_check_prints_whether_and_why_not(tmp_path: Path) -> None:
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    static = compiled("static", "cc", "-static", "-o", OUT, source)
    script = tmp_path / "script"
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    musl = changed(tmp_path, "musl", LOADER, b"/lib/ld-musl-x86_64.so.1\0")
    # A note of Go's linker instead of the build ID.
    header = struct.pack("<I", 4) + b".{4}" + struct.pack("<I", 3) + rb"GNU\0"
    go = changed(tmp_path, "go", b"(?s)" + header, struct.pack("<III", 4, 20, 4) + b"Go\0\0")

    assert check("true")[0] == 0
    assert check("/bin/true") == (0, "/bin/true: can be linked\n")
    for program, reason in (
        (static, "it is statically linked"),
        (script, f"its interpreter is {static}, and it is statically linked"),
        (musl, "it is linked with musl, not with glibc"),
        (go, "it is a Go program, which makes system calls without libc"),
    ):
        code, text = check(program)
        assert (code, text.startswith(f"{program}: cannot be linked: {reason}")) == (1, True), text
    answer = json.loads(check("--json", static)[1])
    assert (answer["program"], answer["can_be_linked"]) == (str(static), False)


def test_check_looks_at_rights(readable: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can make programs of other users")
    unreadable, setuid = readable / "unreadable", readable / "setuid"
    for program, mode in ((unreadable, 0o711), (setuid, 0o4755)):
        shutil.copy("/bin/true", program)
        program.chmod(mode)
    assert check(setuid)[0] == 0
    code, text = check(setuid, user=65534)
    assert (code, "it is setuid" in text) == (1, True)
    code, text = check(unreadable, user=65534)
    assert (code, "this user may not read it" in text) == (1, True)


TALK = """
import socket
from tare.log import Channel
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
log = Channel("received")
for _ in range(100):
    near.sendall(b"with a needle")
    log.log(len(far.recv(100)))
    far.sendall(b"reply")
    assert near.recv(100) == b"reply"
"""


@pytest.mark.parametrize("order", list(permutations(("hook", "link", "log"))), ids=":".join)
def test_hook_and_log_see_linked_streams_in_every_order(
    order: tuple[str, ...], tmp_path: Path
) -> None:
    events, counts, log = (tmp_path / name for name in ("events", "counts", "log"))
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nkeywords = ["needle"]\nscope = "tcp"\ndirection = "both"\n'
    )
    around = {
        "hook": [HOOK, "--rules", str(tmp_path / "rules.toml"), "--events", str(events)],
        "link": ["sh", "-c", f'exec {LINK} --eager --json "$@" 2>{counts}', "sh"],
        "log": [TARE_LOG, "run", "--out", str(log)],
    }
    command = [word for layer in order for word in (*around[layer], "--")]
    subprocess.run([*command, sys.executable, "-c", TALK], check=True, timeout=SECONDS)
    found = [json.loads(line) for line in events.read_text().splitlines()]
    for direction in ("in", "out"):
        offsets = [event["offset"] for event in found if event["direction"] == direction]
        assert offsets == [7 + 13 * number for number in range(100)]
    counted = json.loads(counts.read_text())
    # The ends meet during the first exchange.
    assert_carried(counted, 2)
    assert [int(row.payload) for row in dump(log)] == [13] * 100
