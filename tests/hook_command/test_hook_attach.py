# SPDX-License-Identifier: Apache-2.0
"""tare-hook is killed: the program goes on, and another tare-hook takes over."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.hook_command.service import HOOK, Start, child_of, rules
from tests.waiting import SECONDS, is_running, wait_for

# Sends itself what it reads from standard input, N times, and says what came back.
ECHO = """
import os, socket, subprocess, sys
for line in iter(sys.stdin.readline, ""):
    text, times = line.split()
    if text == "fork":
        if os.fork():
            os._exit(0)
    elif text == "spawn":
        script = "import socket; a, b = socket.socketpair(); a.send(b'child'); b.recv(9)"
        subprocess.run([sys.executable, "-c", script], check=True)
    else:
        a, b = socket.socketpair()
        try:
            for _ in range(int(times)):
                a.send(text.encode())
                b.recv(99)
        except ConnectionResetError:
            text = "reset"
    print(text, flush=True)
"""
USER = 65_533  # without rights, and not the overflow ID, which matches nobody
HELD = 6_553  # events that a ring of 65,536 words holds


class Program:
    """A program under the hook, and the tare-hook that serves it."""

    def __init__(self, folder: Path, start: Start) -> None:
        self.start, self.file, self.rules = start, folder / "events", folder / "rules.toml"
        self.rules.write_text(rules("needle", "child") + rules("evil", action="block"))
        self.input, writer = os.pipe()
        self.writer = os.fdopen(writer, "w")
        self.output = folder / "output"
        (folder / "echo.py").write_text(ECHO)
        command = f"{HOOK} {self.options()} -- {sys.executable} {folder / 'echo.py'}"
        pipe = f"/proc/{os.getpid()}/fd/{self.input}"
        self.hook = start("sh", "-c", f"exec {command} <{pipe} >{self.output}")
        self.pid = child_of(self.hook)
        self.asked = 0
        assert self.ask("needle") == "needle"
        self.wait_written(1)

    def options(self) -> str:
        return f"--rules {self.rules} --events {self.file}"

    def ask(self, text: str, times: int = 1) -> str:
        """What the program says when it has done that."""
        self.asked += 1
        self.writer.write(f"{text} {times}\n")
        self.writer.flush()
        wait_for(lambda: len(self.output.read_text().splitlines()) == self.asked)
        return self.output.read_text().splitlines()[-1]

    def kill_hook(self) -> None:
        self.hook.kill()
        self.hook.wait(SECONDS)

    def attach(self, *options: str) -> str:
        """A tare-hook takes over and writes events; returns what it says of that."""
        return self.attach_with("--events", str(self.file), *options)

    def attach_with(self, *options: str) -> str:
        self.hook = self.start(HOOK, "--attach", str(self.pid), "--json", *options)
        assert self.hook.stderr
        return self.hook.stderr.readline()

    def written(self) -> list[str]:
        return [json.loads(line)["keyword"] for line in self.file.read_text().splitlines()]

    def wait_written(self, count: int) -> None:
        wait_for(lambda: len(self.file.read_text().splitlines()) >= count)

    def finish(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """Ends the tare-hook that took over; returns its statistics."""
        self.hook.send_signal(number)
        return self.ended()

    def ended(self) -> dict[str, Any]:
        _, err = self.hook.communicate(timeout=SECONDS)
        assert self.hook.returncode == 0, err
        stats: dict[str, Any] = json.loads(err.splitlines()[-1])
        return stats

    def close(self) -> None:
        self.writer.close()
        os.close(self.input)


@pytest.fixture
def program(tmp_path: Path, start: Start) -> Any:
    made = Program(tmp_path, start)
    yield made
    made.close()  # the end of its input is its end
    wait_for(lambda: not is_running(made.pid))


def test_events_meanwhile_are_kept_as_far_as_there_is_room_and_counted(program: Program) -> None:
    program.kill_hook()
    assert program.ask("needle", 10_000) == "needle"
    said = program.attach()
    assert f": 1 written, {10_000 - HELD} lost, 0 without a file\n" in said
    program.wait_written(1 + HELD)
    assert program.ask("needle") == "needle"
    program.wait_written(2 + HELD)
    stats = program.finish()
    matches = sum(function["matches"] for function in stats["functions"])
    assert matches == 10_002
    assert stats["events"] == {"written": 2 + HELD, "lost": 10_000 - HELD, "unwanted": 0}
    assert program.written() == ["needle"] * (2 + HELD)
    assert program.ask("needle") == "needle", "it goes on"


def test_events_that_nobody_wants_have_their_own_count(program: Program) -> None:
    program.kill_hook()
    program.ask("needle", 100)
    said = program.attach_with()
    assert "1 written, 0 lost, 0 without a file. Without --events, no" in said
    assert program.finish()["events"] == {"written": 1, "lost": 0, "unwanted": 100}
    assert "1 written, 0 lost, 100 without a file\n" in program.attach()
    program.ask("needle")
    assert program.finish()["events"] == {"written": 2, "lost": 0, "unwanted": 100}


def test_block_keeps_the_last_rules(program: Program) -> None:
    program.kill_hook()
    assert program.ask("evil") == "reset"
    program.attach()
    assert program.ask("evil") == "reset"
    program.wait_written(3)
    program.finish(signal.SIGINT)
    assert program.written() == ["needle", "evil", "evil"]
    assert program.ask("evil") == "reset"


def test_new_rules_hold_and_old_events_keep_their_keywords(program: Program) -> None:
    program.kill_hook()
    program.ask("needle")
    program.rules.write_text(rules("other"))
    program.attach("--rules", str(program.rules))
    assert program.ask("other") == "other"
    assert program.ask("evil") == "evil"
    program.rules.write_text(rules("third"))

    def is_found() -> bool:
        program.ask("third")
        return "third" in program.written()

    wait_for(is_found)
    program.finish()
    assert [word for word in program.written() if word != "third"] == ["needle"] * 2 + ["other"]


def test_one_that_took_over_and_was_killed_is_followed_by_another(program: Program) -> None:
    for number in range(3):
        program.kill_hook()
        program.ask("needle")
        program.attach()
        program.wait_written(2 + number)
    stats = program.finish()
    assert stats["events"] == {"written": 4, "lost": 0, "unwanted": 0}
    assert program.written() == ["needle"] * 4


def test_children_are_seen_and_waited_for(program: Program) -> None:
    program.kill_hook()
    program.attach()
    # Python closes the descriptors of what it starts.
    assert program.ask("spawn") == "spawn"
    program.wait_written(2)
    assert program.ask("fork") == "fork"
    wait_for(lambda: not is_running(program.pid))
    assert program.ask("needle") == "needle"
    program.wait_written(3)
    assert program.hook.poll() is None
    program.writer.close()
    assert program.ended()["events"] == {"written": 3, "lost": 0, "unwanted": 0}
    assert program.written() == ["needle", "child", "needle"]


def refusal(*arguments: str) -> str:
    done = subprocess.run([HOOK, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    return line


def test_a_program_is_served_by_one_at_a_time(program: Program) -> None:
    attach = ["--attach", str(program.pid)]
    assert f"tare hook (process {program.hook.pid}) serves it; stop that process first" in refusal(
        *attach
    )
    program.kill_hook()
    program.attach()
    assert f"tare hook (process {program.hook.pid}) serves it; stop that process first" in refusal(
        *attach
    )
    program.rules.write_text("rubbish")
    program.finish()
    assert f"{program.rules}:1" in refusal(*attach, "--rules", str(program.rules))
    assert program.ask("evil") == "reset"


def test_one_that_is_refused_changes_no_rules(program: Program) -> None:
    program.kill_hook()
    program.rules.write_text(rules("other"))
    options = ["--rules", str(program.rules), "--costs", "/dev/full"]
    assert "not a regular file" in refusal("--attach", str(program.pid), *options)
    assert program.ask("evil") == "reset"


def test_of_many_at_once_one_takes_over(program: Program) -> None:
    program.kill_hook()
    program.ask("needle", 100)
    attach = [HOOK, "--attach", str(program.pid), "--events", str(program.file), "--json"]
    many = [program.start(*attach) for _ in range(8)]
    wait_for(lambda: sum(process.poll() is None for process in many) <= 1)
    [program.hook] = [process for process in many if process.poll() is None]
    for other in many:
        if other is not program.hook:
            assert "serves it; stop that process first" in other.communicate(timeout=SECONDS)[1]
            assert other.returncode == 2
    program.wait_written(101)
    assert program.finish()["events"] == {"written": 101, "lost": 0, "unwanted": 0}


def test_a_file_that_can_only_be_written_is_refused(start: Start) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    other = ["setpriv", f"--reuid={USER}", "--clear-groups", HOOK]
    hook = start(*other, "--", "sh", "-c", "echo ready; sleep 60; :")
    assert hook.stdout is not None
    assert hook.stdout.readline() == "ready\n"
    pid = child_of(hook)
    hook.kill()
    hook.wait(SECONDS)
    # A folder that nobody may enter is on the way to those of pytest.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        events = Path(folder) / "events"
        events.touch(0o200)
        os.chown(events, USER, -1)
        command = [*other, "--attach", str(pid), "--events", str(events)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Permission denied; give a writable file and read" in done.stderr


def test_strangers_are_refused(program: Program) -> None:
    assert "it has no hook; give a process" in refusal("--attach", str(os.getpid()))
    assert "0 is not in 1.." in refusal("--attach", "0")
    with subprocess.Popen(["true"]) as gone:
        pass
    assert "no such process" in refusal("--attach", str(gone.pid))
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--clear-groups", HOOK, "--attach", str(program.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "permission denied; attach as the user that ran tare hook" in done.stderr


def test_a_hook_of_another_build_is_refused(start: Start) -> None:
    script = """
import fcntl, mmap, os, struct, time
held = []
for name in ("tare-hook-control", "tare-hook-shared"):
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 8192)
    os.fchmod(fd, 0o644)
    kind = 1 if name.endswith("control") else 2
    os.pwrite(fd, b"TAREshm1" + struct.pack("=IIQQII", 1, kind, 8192, 0, 0, 0), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    held.append(mmap.mmap(fd, 8192))
print("ready", flush=True)
time.sleep(60)
"""
    process = start(sys.executable, "-c", script)
    assert process.stdout
    process.stdout.readline()
    assert "its hook comes from another build" in refusal("--attach", str(process.pid))
