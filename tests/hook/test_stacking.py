# SPDX-License-Identifier: Apache-2.0
"""libfaketime, and a library that counts calls: preloaded in front of the hook and behind it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.hook.conftest import CASES, Compile
from tests.hook.hooked import LIBRARY, Behaviour, Seen, hooked, plain, rules
from tests.hook.programs.ways import need

FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
MOMENT = "2001-02-03 04:05:06"
RULES = rules("needle", scope="all", direction="both")
# Runs a command with libraries preloaded, in this order, whatever was so before.
PRELOADED = ["env", "TZ=UTC", f"FAKETIME={MOMENT}"]
ORDERS = pytest.mark.parametrize("front", [False, True], ids=["behind", "in front"])
SCRIPT = """
import os, socket, threading, time
print(time.time(), time.strftime("%c"))
with socket.create_server(("127.0.0.1", 0)) as server:
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
def answer():
    while part := accepted.recv(99):
        accepted.sendall(part.upper())
    accepted.close()
thread = threading.Thread(target=answer)
thread.start()
for _ in range(3):
    client.sendall(b"a needle")
    print(client.recv(99), time.time())
client.close()
thread.join()
if os.fork() == 0:
    print(os.path.getmtime(__file__) != time.time(), flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
os.execvp("date", ["date"])
"""


def stack(other: Path, front: bool | None, *command: str | Path) -> list[str | Path]:
    """The command with the other library alone, or with the hook behind or before it."""
    order: list[str | Path] = [other, LIBRARY] if front else [LIBRARY, other]
    if front is None:
        order = [other]
    return [*PRELOADED, "LD_PRELOAD=" + ":".join(map(str, order)), *command]


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that counts calls, into the file that COUNTS names."""
    need("cc")
    library = tmp_path_factory.mktemp("library") / "libcounting.so"
    source = CASES.parent / "library" / "counting.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@ORDERS
@pytest.mark.parametrize("name", ["connections", "flags", "forks", "interrupted"])
def test_a_library_that_counts_calls(
    name: str, front: bool, counting: Path, compile_case: Compile, tmp_path: Path
) -> None:
    program, counts = compile_case(name), tmp_path / "counts"

    def counted(order: bool | None) -> list[str | Path]:
        counts.unlink(missing_ok=True)
        return stack(counting, order, "env", f"COUNTS={counts}", program)

    expected = plain(counted(None), tmp_path)
    once = counts.read_text()
    assert expected == plain([program], tmp_path)
    seen = hooked(counted(front), tmp_path, rules("a", "e", scope="all", direction="both"))
    assert seen.behaviour == expected
    # Forwarded once each, and with no call of the hook's own among them.
    assert counts.read_text() == once
    functions = {row["function"]: row for row in seen.stats["functions"]}
    assert functions["read"]["calls_socket"] > 0


@pytest.fixture
def script(tmp_path: Path) -> list[str | Path]:
    (tmp_path / "script.py").write_text(SCRIPT)
    return [sys.executable, "-S", "script.py"]


def check(seen: Seen, expected: Behaviour) -> None:
    assert seen.behaviour == expected
    assert expected.code == 0, expected.err
    assert "981173106.0 Sat Feb  3 04:05:06 2001" in expected.out
    found = [event["offset"] for event in seen.events if event["direction"] == "out"]
    assert found == [2, 10, 18]


@ORDERS
def test_libfaketime(front: bool, script: list[str | Path], tmp_path: Path) -> None:
    if not FAKETIME:
        pytest.skip("libfaketime is not installed")
    expected = plain(stack(FAKETIME[0], None, *script), tmp_path)
    began = time.time_ns()
    seen = hooked(stack(FAKETIME[0], front, *script), tmp_path, RULES)
    check(seen, expected)
    # The hook's own clock is the processor's.
    assert all(began < event["time_ns"] < time.time_ns() for event in seen.events)


@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
def test_faketime(outside: bool, script: list[str | Path], tmp_path: Path) -> None:
    """The command, which preloads its library for what it runs: tare-hook itself, too."""
    need("faketime")
    command = ["env", "TZ=UTC", "faketime", "-f", MOMENT]
    expected = plain([*command, *script], tmp_path)
    if outside:
        check(hooked(script, tmp_path, RULES, before=command), expected)
    else:
        check(hooked([*command, *script], tmp_path, RULES), expected)
