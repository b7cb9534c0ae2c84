# SPDX-License-Identifier: Apache-2.0
"""tare-log-agent.jar logs methods of programs that know nothing of it, and changes nothing else."""

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, dump
from tests.log.jvm import version_of
from tests.waiting import SECONDS, wait_for

from tare.native import native

AGENT = native("java", "tare-log-agent.jar")

Java = list[str]


def command(java: Java, acme: Path, options: str | None, *arguments: object) -> list[str]:
    """The program, without tare-log.jar: the agent brings what it needs."""
    program, *flags = java
    jar = flags.index("-cp")
    flags[jar : jar + 2] = ["-cp", str(acme)]
    if options is not None:
        flags.append(f"-javaagent:{AGENT}={options}")
    # What is woven in must pass the verifier, of classes of any loader.
    flags += ["-Xverify:all", "-Xss512k"] if version_of(java) < 22 else ["-Xss512k"]
    return [program, *flags, "com.acme.Acme", *map(str, arguments)]


def woven(
    java: Java, acme: Path, folder: Path, options: str, *arguments: object
) -> tuple[list[Row], str, str]:
    """What is logged, and what the program prints on stdout and stderr."""
    file = folder / "events.log"
    program = command(java, acme, options, *arguments)
    done = subprocess.run(
        [TARE_LOG, "run", "--out", file, "--json", "--", *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1])["lost"] == 0
    return dump(file), done.stdout, done.stderr


def spans(rows: list[Row]) -> Counter[str]:
    """How often each method was called; every call ends, the innermost first."""
    open_: list[str] = []
    found: Counter[str] = Counter()
    for row in sorted(rows, key=lambda row: row.ticks):
        if row.channel.endswith(">"):
            open_.append(row.channel[:-1])
            found[row.channel[:-1]] += 1
        else:
            assert open_.pop() == row.channel[:-1]
    assert not open_
    return found


def test_every_method_begins_and_ends(java: Java, acme: Path, tmp_path: Path) -> None:
    plain = subprocess.check_output(command(java, acme, None), text=True)
    options = "include=com.acme.*,exclude=com.acme.Acme#endless"
    rows, out, err = woven(java, acme, tmp_path, options)
    assert out == plain
    assert "logged" not in err
    found = spans(rows)
    literal = {
        "com.acme.Acme.main": 1,
        "com.acme.Acme.fibonacci": 1973,
        "com.acme.Acme.thrown": 3,
        "com.acme.Acme.fails": 2,
        "com.acme.Acme.attempt": 6,
        "com.acme.Acme.overloaded(long)": 1,
        "com.acme.Acme.overloaded(String, int[])": 1,
        "com.acme.Acme.nothing": 1,
        "com.acme.Acme.loops": 1,
        "com.acme.Base.<clinit>": 1,
        "com.acme.Base.checked": 4,
        # Three above workers, and three that workers make first.
        "com.acme.Base.<init>": 6,
        # Worker(-1) ends before it has begun: what is above it did not come back.
        "com.acme.Worker.<init>(int)": 3,
        "com.acme.Worker.<init>()": 1,
        "com.acme.Worker.serve": 2,
        "com.acme.Service.twice": 1,
        "com.acme.Worker.compareTo": 1,
        "com.acme.Worker.toString": 3,
        "com.acme.Acme$Mood.other": 1,
        "com.acme.Acme$Point.<init>": 2,
        "com.acme.Acme$Point.sum": 1,
        "com.acme.Acme$1.five": 1,
    }
    assert {name: found[name] for name in literal} == literal
    lambdas = [name for name in found if ".lambda$main$" in name]
    assert sum(found[name] for name in lambdas) == 7
    assert not [name for name in found if "endless" in name]


def test_the_end_of_the_stack_passes_through(java: Java, acme: Path, tmp_path: Path) -> None:
    plain = subprocess.check_output(command(java, acme, None), text=True)
    rows, out, _ = woven(java, acme, tmp_path, "include=com.acme.*")
    assert out == plain
    calls = Counter(row.channel for row in rows)
    assert calls["com.acme.Acme.endless>"] > 100
    after = [row.channel for row in rows if "nothing" in row.channel or "five" in row.channel]
    assert after == [
        f"com.acme.Acme{name}" for name in (".nothing>", ".nothing<", "$1.five>", "$1.five<")
    ]


def test_filters_reach_what_stands_below(java: Java, acme: Path, tmp_path: Path) -> None:
    options = "include=com.acme.Service+,exclude=*#<init>,exclude=java.lang.Object+#to*"
    rows, _, _ = woven(java, acme, tmp_path, options)
    assert spans(rows) == {
        "com.acme.Service.twice": 1,
        "com.acme.Worker.serve": 2,
        "com.acme.Worker.compareTo": 1,
    }


def test_a_filter_that_no_method_fits_is_told(java: Java, acme: Path, tmp_path: Path) -> None:
    rows, _, err = woven(java, acme, tmp_path, "include=com.acne.*")
    assert not rows
    assert "tare-log-agent: no method of the program matched include=com" in err


def test_a_method_called_too_often_is_left_alone(java: Java, acme: Path, tmp_path: Path) -> None:
    options = "include=com.acme.*,limit=1000"
    rows, _, err = woven(java, acme, tmp_path, options, 3500)
    said = [row.payload for row in rows if row.channel == "tare-log"]
    assert len(said) == 1
    assert said[0].startswith("com.acme.Acme.called: ")
    assert said[0].endswith(" calls/s, more than limit=1000: it is no longer logged")
    assert f"tare-log-agent: {said[0]}\n" in err
    ticks = {
        name: [row.ticks for row in rows if row.channel == f"com.acme.Acme.{name}"]
        for name in ("main>", "main<", "called>", "called<", "nothing>")
    }
    assert len(ticks["called>"]) == len(ticks["called<"]) > 1000
    whole = ticks["main<"][0] - ticks["main>"][0]
    # A second until it is noticed, and some time to weave the class again.
    assert ticks["called<"][-1] - ticks["main>"][0] < 0.8 * whole
    assert len(ticks["nothing>"]) == 1


@pytest.mark.parametrize("policy", ["drop", "wait"])
def test_the_policy_holds_where_the_ring_is_full(
    java: Java, acme: Path, tmp_path: Path, policy: str
) -> None:
    file = tmp_path / "events.log"
    program = command(java, acme, f"include=com.acme.*,policy={policy}", 4000)
    run = subprocess.Popen(
        [TARE_LOG, "run", "--out", file, "--json", "--", *program],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TARE_LOG_RING": "64K"},
    )
    try:
        wait_for(lambda: run.poll() is not None or file.stat().st_size >= 20_000)
        assert run.poll() is None
        (child,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        run.send_signal(signal.SIGSTOP)
        if policy == "drop":
            wait_for(lambda: Path(f"/proc/{child}/stat").read_text().rsplit(") ")[1][0] == "Z")
        run.send_signal(signal.SIGCONT)
        _, err = run.communicate(timeout=SECONDS)
    finally:
        run.kill()
    totals = json.loads(err.splitlines()[-1])
    assert (totals["lost"] > 0) is (policy == "drop")
    if policy == "wait":
        assert spans(dump(file))["com.acme.Acme.called"] * 2 + 4 == totals["events"]


@pytest.mark.parametrize(("codec", "is_small"), [("zstd", True), ("uncompressed", False)])
def test_the_codec_is_that_of_the_options(
    java: Java, acme: Path, tmp_path: Path, codec: str, is_small: bool
) -> None:
    woven(java, acme, tmp_path, f"include=com.acme.*#called,codec={codec}", 1500)
    rows = dump(tmp_path / "events.log")
    assert (((tmp_path / "events.log").stat().st_size / len(rows)) < 3) is is_small


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", '"": expected include=PATTERN'),
        ("exclude=a", "no include=: expected include=PATTERN"),
        ("include=a,limit=0", "limit=0: expected a number of calls/s"),
        ("include=a,policy=x", "policy=x: expected drop, wait, overwrite"),
        ("include=a,codec=", '"codec=": expected include=PATTERN'),
        ("include=a,codec=x", "codec=x: expected any, uncompressed, zstd, lz4, lzo1x"),
        ("include=a,wrong=b", '"wrong=b": expected include=PATTERN'),
    ],
)
def test_what_is_not_understood_is_said(
    java: Java,
    acme: Path,
    options: str,
    said: str,
) -> None:
    done = subprocess.run(
        command(java, acme, options), capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 2
    # New JVMs say themselves, in a line before, that an agent adds to the bootstrap class path.
    [line] = [line for line in done.stderr.splitlines() if "VM warning" not in line]
    assert line.startswith(f"tare-log-agent: {said}")


def test_a_program_goes_on_without_the_library(java: Java, acme: Path) -> None:
    plain = subprocess.check_output(command(java, acme, None), text=True)
    program, *rest = command(java, acme, "include=com.acme.*")
    done = subprocess.run(
        [program, "-Dtare.log.library=/nowhere.so", *rest],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    assert done.stdout == plain
    assert "tare-log-agent: methods are not logged; events are discarded: " in done.stderr
