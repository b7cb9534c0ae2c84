# SPDX-License-Identifier: Apache-2.0
"""A program under the hook lives and ends as it does without."""

import errno
import fcntl
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
    Hooked,
    Nginx,
    Start,
    exchange,
    request,
    rules,
    wait_for,
)

MANY = b"needle" * 1000


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_exit_code_is_the_programs(script: str, code: int, start: Start) -> None:
    assert start(HOOK, "--", "sh", "-c", script).wait(10) == code


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
    assert process.wait(10) == 9


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
    assert out.split() == [str(one) for one in expected]


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
        assert process.wait(10) == -signal.SIGKILL
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
    script = """
import socket, threading, time
def talk():
    a, b = socket.socketpair()
    a.send(b"needle")
    b.recv(10)
for number in range(600):
    thread = threading.Thread(target=talk)
    thread.start()
    thread.join()
    if number % 100 == 99:
        time.sleep(0.2)
"""
    (tmp_path / "rules.toml").write_text(rules("needle"))
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(tmp_path / "e"), "--json"]
    process = start(HOOK, *options, "--", sys.executable, "-c", script)
    _, err = process.communicate(timeout=60)
    assert json.loads(err)["events"] == {"written": 600, "lost": 0}


def test_costs_are_a_whole_stream_after_a_kill(nginx: Nginx, start: Start) -> None:
    import pyarrow.ipc

    costs = nginx.folder / "costs.arrow"
    process = start(HOOK, "--costs", str(costs), "--", *nginx.command)
    nginx.wait()

    def requests() -> int:
        rows = pyarrow.ipc.open_stream(costs.read_bytes()).read_all().to_pylist()
        return sum(row["count"] for row in rows if row["metric"] == "calls_socket")

    wait_for(lambda: requests() > 0)
    process.kill()
    process.wait(10)
    assert requests() > 0


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
    _, err = process.communicate(timeout=10)
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
        _, err = process.communicate(timeout=10)
        assert process.returncode == 2
        assert err.startswith(f"tare-hook: {said}")


def test_a_reader_that_stops_holds_nothing_up(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle"))
    pipe = nginx.folder / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        options = ["--rules", str(nginx.folder / "rules.toml"), "--events", str(pipe), "--json"]
        process = start(HOOK, *options, "--", *nginx.command)
        nginx.wait()
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        with nginx.connect() as connection:
            for _ in range(10):
                exchange(connection, request(MANY))
        process.terminate()
        _, err = process.communicate(timeout=10)
        lines = reader.read().splitlines()
    assert process.returncode == 0
    assert err.count("its reader does not keep up") == 1
    events = json.loads(err.splitlines()[-1])["events"]
    assert events["lost"] > 0
    assert events["written"] + events["lost"] == 10 * 1000
    assert len(lines) - events["written"] in (0, 1)  # the last may be cut
    assert all(json.loads(line)["keyword"] == "needle" for line in lines[:-1])


def test_a_full_disk_is_said_once_and_costs_only_the_events(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle"))
    options = ["--rules", str(nginx.folder / "rules.toml"), "--events", "/dev/full", "--json"]
    process = start(HOOK, *options, "--", *nginx.command)
    nginx.wait()
    with nginx.connect() as connection:
        for _ in range(20):
            exchange(connection, request(b"needle"))
    process.terminate()
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert err.count("No space left on device") == 1
    assert json.loads(err.splitlines()[-1])["events"] == {"written": 0, "lost": 20}


def test_statistics_count_calls_bytes_and_time(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle", scope="http"))
    options = ["--rules", str(nginx.folder / "rules.toml"), "--json"]
    process = start(HOOK, *options, "--", *nginx.command)
    nginx.wait()
    sent = request(b"needle")
    with nginx.connect() as connection:
        for _ in range(10):
            exchange(connection, sent)
    process.terminate()
    stats = json.loads(process.communicate(timeout=10)[1].splitlines()[-1])
    recv = next(one for one in stats["functions"] if one["function"] == "recv")
    assert recv["matches"] == 10
    # What nginx was asked while the test waited for it is searched as well.
    assert recv["calls_socket"] > 10
    assert recv["bytes_searched"] >= 10 * len(sent)
    assert (
        0 < recv["own_time_ns"]["p50"] <= recv["own_time_ns"]["p99"] <= recv["own_time_ns"]["max"]
    )
    assert stats["programs"] == 1
    assert stats["rules"] == {"keywords": 1, "reloads": 0, "refused": 0}


def test_the_table_of_statistics_is_for_people(tmp_path: Path, start: Start) -> None:
    (tmp_path / "rules.toml").write_text(rules("x", action="block"))
    script = "import socket; a, b = socket.socketpair(); a.send(b'x'); b.recv(1)"
    options = ["--rules", str(tmp_path / "rules.toml"), "--stats"]
    process = start(HOOK, *options, "--", sys.executable, "-c", script)
    _, err = process.communicate(timeout=20)
    lines = err[err.index("tare-hook: calls by function") :].splitlines()
    assert lines[1].split()[:3] == ["function", "sockets", "other"]
    place = lines[1].replace("other files", "other").replace("searched B", "bytes").split()
    recv = next(line.split() for line in lines if line.startswith("recv "))
    assert recv[place.index("sockets")] == recv[place.index("blocked")] == "1"
    assert any(line.startswith("not seen: ") for line in lines)


def test_the_costs_have_the_declared_columns(tmp_path: Path, start: Start) -> None:
    import pyarrow.ipc

    costs = tmp_path / "costs.arrow"
    script = "import socket; a, b = socket.socketpair(); a.send(b'x'); b.recv(1)"
    assert start(HOOK, "--costs", str(costs), "--", sys.executable, "-c", script).wait(20) == 0
    table = pyarrow.ipc.open_stream(costs.read_bytes()).read_all()
    declared = json.loads(subprocess.check_output([HOOK, "schema", "--json"]))["tables"]
    columns = next(one["columns"] for one in declared if one["name"] == "costs")
    assert table.column_names == [column["name"] for column in columns]
    rows = table.to_pylist()
    recv = [row for row in rows if row["function"] == "recv"]
    calls = sum(row["count"] for row in recv if row["metric"] == "calls_socket")
    bins = [row for row in recv if row["metric"] == "own_time"]
    assert calls == sum(row["count"] for row in bins) == 1
    assert all(row["low_ns"] <= row["high_ns"] for row in bins)
    assert all(row["low_ns"] is None for row in rows if row["metric"] != "own_time")
    assert {"events_lost", "stdio_sockets", "io_uring_setups"} <= {row["metric"] for row in rows}


def test_costs_that_do_not_fit_leave_nothing_behind(tmp_path: Path, start: Start) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a disk that is full")
    script = f"""
mount -t tmpfs -o size=4k full {tmp_path}
head -c 4096 /dev/zero > {tmp_path}/filling
{HOOK} --costs {tmp_path}/costs -- true
echo $?; ls {tmp_path}
"""
    out, err = start(
        "unshare", "--mount", "sh", "-ec", script.replace("\necho", " ||\necho")
    ).communicate(timeout=10)
    assert "--costs" in err
    assert out.split() == ["2", "filling"]


def test_costs_replace_files_only(start: Start) -> None:
    process = start(HOOK, "--costs", "/dev/full", "--", "true")
    _, err = process.communicate(timeout=10)
    assert process.returncode == 2
    assert err.startswith("tare-hook: --costs /dev/full: not a regular file")
    assert Path("/dev/full").is_char_device()


def test_a_limit_of_file_sizes_is_an_error_and_no_signal(start: Start) -> None:
    process = start("bash", "-c", f"ulimit -f 1000; exec {HOOK} -- true")
    _, err = process.communicate(timeout=10)
    assert process.returncode == 1
    [line] = err.splitlines()
    assert line.startswith("tare-hook: shared memory could not be made: raise the limit")


def test_a_library_that_did_not_work_is_said(tmp_path: Path, start: Start) -> None:
    command = tmp_path / "bin" / "tare-hook"
    library = tmp_path / "lib" / "libtare_hook.so"
    for place in (command, library):
        place.parent.mkdir()
    shutil.copy2(HOOK, command)
    library.touch()  # the loader says so, and goes on without it
    process = start(str(command), "--", "true")
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    said = [line for line in err.splitlines() if line.startswith("tare-hook: ")]
    assert len(said) == 1
    assert f"{library} was not loaded or is of another build" in said[0]
