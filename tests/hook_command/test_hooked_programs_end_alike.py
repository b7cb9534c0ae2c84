# SPDX-License-Identifier: Apache-2.0
"""A program under the hook lives and ends as it does without."""

import errno
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hook_command.service import (
    HOOK,
    MANY,
    Hooked,
    Nginx,
    Start,
    exchange,
    request,
    rules,
)
from tests.waiting import SECONDS, wait_for


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_exit_code_is_the_programs(script: str, code: int, start: Start) -> None:
    assert start(HOOK, "--", "sh", "-c", script).wait(SECONDS) == code


def test_output_and_input_pass_untouched() -> None:
    done = subprocess.run([HOOK, "--", "cat"], input=b"a\0b\n", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"a\0b\n", b"")


def test_the_environment_is_the_same_but_for_two_variables() -> None:
    plain = set(subprocess.check_output(["env", "-0"]).split(b"\0"))
    hooked = set(subprocess.check_output([HOOK, "--", "env", "-0"]).split(b"\0"))
    assert {line.split(b"=")[0] for line in hooked - plain} == {b"LD_PRELOAD", b"TARE_HOOK"}
    assert plain <= hooked


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_reaches_the_program(number: signal.Signals, start: Start) -> None:
    script = f"trap 'exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    process = start(HOOK, "--", "sh", "-c", script)
    assert process.stdout
    process.stdout.readline()
    process.send_signal(number)
    assert process.wait(SECONDS) == 9


def test_what_a_program_inherits_cannot_write_the_rules() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    script = """
import mmap, os
control, shared = map(int, os.environ["TARE_HOOK"].split(":")[2:])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
mmap.mmap(control, 4096, prot=mmap.PROT_READ)
mmap.mmap(shared, 4096)
for write in (
    lambda: mmap.mmap(control, 4096),
    lambda: os.pwrite(control, b"x", 64),
    lambda: os.fchmod(control, 0o666),
    lambda: os.ftruncate(shared, 0),
):
    try:
        write()
    except OSError as error:
        print(error.errno)
"""
    out = subprocess.check_output([HOOK, "--", sys.executable, "-c", script], text=True)
    expected = [errno.EACCES, errno.EBADF, errno.EPERM, errno.EPERM]
    assert out.split() == [str(number) for number in expected]


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGCHLD, signal.SIGINT])
def test_a_signal_that_was_ignored_still_is(number: signal.Signals) -> None:
    ignore = f"import os, signal, sys; signal.signal({int(number)}, signal.SIG_IGN)"
    script = f"{ignore}; os.execvp(sys.argv[1], sys.argv[1:])"
    command = ["grep", "--no-filename", "^Sig[BI]", "/proc/self/status", "/no/file"]
    plain, hooked = (
        subprocess.run(
            [sys.executable, "-c", script, *words, *command], capture_output=True, check=False
        )
        for words in ([], [HOOK, "--"])
    )
    assert int(plain.stdout.split()[-1], 16) & 1 << number - 1
    assert (hooked.returncode, hooked.stdout, hooked.stderr) == (2, plain.stdout, plain.stderr)


def test_ctrl_c_arrives_once() -> None:
    script = "trap 'echo caught' INT; echo ready; sleep 0.3; sleep 0.3; echo end"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(HOOK, [HOOK, "--", "sh", "-c", script])
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    while b"end" not in shown:
        shown += os.read(terminal, 1024)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert shown.count(b"caught") == 1
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_server_survives_the_death_of_tare_hook(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle"))
    process = start(HOOK, "--rules", str(nginx.folder / "rules.toml"), "--", *nginx.command)
    nginx.wait()
    with nginx.connect() as connection:
        process.kill()
        assert process.wait(SECONDS) == -signal.SIGKILL
        for _ in range(10):  # more events than a ring holds
            exchange(connection, request(MANY))
    nginx.wait()


def test_a_full_ring_drops_and_counts_and_never_waits(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("needle"))
    os.kill(hooked.process.pid, signal.SIGSTOP)
    with nginx.connect() as connection:
        for _ in range(10):
            exchange(connection, request(MANY))
    os.kill(hooked.process.pid, signal.SIGCONT)
    wait_for(lambda: hooked.lines() != [])
    with nginx.connect() as connection:
        exchange(connection, request(b"needle"))
        client = "{}:{}".format(*connection.getsockname())
    events = hooked.stop()["events"]
    assert hooked.lines()[-1]["remote"] == client
    assert events["lost"] > 0
    assert events["written"] + events["lost"] == 10 * 1000 + 1


def test_threads_that_end_make_room_for_others(tmp_path: Path, start: Start) -> None:
    events = tmp_path / "events.jsonl"
    script = f"""
import socket, threading, time
def talk():
    a, b = socket.socketpair()
    a.send(b"needle")
    b.recv(10)
for number in range(600):
    thread = threading.Thread(target=talk)
    thread.start()
    thread.join()
    # There are fewer rings than threads: those that have been read serve again.
    while number % 100 == 99 and open({str(events)!r}).read().count("\\n") <= number:
        time.sleep(0.01)
"""
    (tmp_path / "rules.toml").write_text(rules("needle"))
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(events), "--json"]
    process = start(HOOK, *options, "--", sys.executable, "-c", script)
    _, err = process.communicate(timeout=SECONDS)
    assert json.loads(err)["events"] == {"written": 600, "lost": 0, "unwanted": 0}


def make_static(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (folder / "static.c").write_text("int main(void) { return 0; }\n")
    program = folder / "static"
    subprocess.run([compiler, "-static", "-o", program, folder / "static.c"], check=True)
    return program


def make_setuid(folder: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root can make a program setuid to another user")
    program = folder / "setuid"
    shutil.copy("/bin/true", program)
    os.chown(program, 65534, -1)
    program.chmod(0o4755)
    return program


def make_script(folder: Path) -> Path:
    program = folder / "script"
    program.write_text(f"#!{make_static(folder)}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_static, "static: it is statically linked"),
        (make_setuid, "setuid: it is setuid"),
        (make_script, "static: it is statically linked"),
    ],
)
def test_a_program_that_the_hook_cannot_see_is_not_run(
    make: Callable[[Path], Path], reason: str, tmp_path: Path, start: Start
) -> None:
    process = start(HOOK, "--", str(make(tmp_path)))
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    [line] = err.splitlines()
    assert line.startswith("tare-hook: ")
    assert reason in line


def test_a_program_that_cannot_be_read_is_run() -> None:
    if os.geteuid() != 0:
        pytest.skip("root reads everything, and only root can run as another user")
    # A folder that nobody may enter is on the way to those of pytest.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = shutil.copy("/bin/true", folder)
        Path(program).chmod(0o711)
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", HOOK, "--json", "--", program],
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr)["programs"] == 1


def test_errors_say_what_to_do(start: Start, tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    for arguments, said in (
        (["--", "/no/file"], "COMMAND /no/file: No such file or directory; name a program"),
        (["--", f"{tmp_path}/text"], f"COMMAND {tmp_path}/text: not an executable file; name a pr"),
        (["--rules", "/no/file", "--", "true"], "--rules /no/file: No such file or directory; nam"),
    ):
        process = start(HOOK, *arguments)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 2
        assert err.startswith(f"tare-hook: {said}")


def test_a_limit_of_file_sizes_is_an_error_and_no_signal(start: Start) -> None:
    process = start("bash", "-c", f"ulimit -f 1000; exec {HOOK} -- true")
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    [line] = err.splitlines()
    assert line.startswith("tare-hook: shared memory could not be created: raise the limit")


def test_a_library_that_did_not_work_is_said(tmp_path: Path, start: Start) -> None:
    command = tmp_path / "bin" / "tare-hook"
    library = tmp_path / "lib" / "libtare_hook.so"
    for place in (command, library):
        place.parent.mkdir()
    shutil.copy2(HOOK, command)
    library.touch()  # the loader says so, and goes on without it
    process = start(str(command), "--", "true")
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    said = [line for line in err.splitlines() if line.startswith("tare-hook: ")]
    assert len(said) == 1
    assert f"{library} was not loaded or comes from another build" in said[0]
