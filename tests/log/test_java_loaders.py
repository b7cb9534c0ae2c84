# SPDX-License-Identifier: Apache-2.0
"""Java's log and its agent under class loaders of all kinds, and from the module path."""

import subprocess
from collections import Counter
from pathlib import Path

from tests.log.conftest import TARE_LOG, dump
from tests.log.jvm import JAR, LOGGING, PROGRAMS, classpath, javac
from tests.log.test_java_agent import AGENT
from tests.waiting import SECONDS


def run(file: Path, program: list[str]) -> tuple[str, str]:
    """What the program prints on stdout and stderr."""
    done = subprocess.run(
        [TARE_LOG, "run", "--out", file, "--", *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_each_class_loader_logs_and_goes(java: list[str], tmp_path: Path) -> None:
    """None is kept by a thread that has logged for it."""
    count, events, file = 4, 300, tmp_path / "events.log"
    program = [*java, str(PROGRAMS / "Loaders.java"), JAR, str(count), str(events)]
    out, _ = run(file, program)
    assert out == f"{count}\n"
    payloads = [str(sign * number) for sign in (1, -1) for number in range(events)]
    for place in range(count):
        rows = [row for row in dump(file) if row.channel == f"loader {place}"]
        assert [row.payload for row in sorted(rows, key=lambda row: row.ticks)] == payloads


def test_classes_that_do_not_find_the_agent_are_left_alone(
    java: list[str], acme: Path, tmp_path: Path
) -> None:
    file = tmp_path / "events.log"
    agent = f"-javaagent:{AGENT}=include=com.acme.*"
    program = [*java, agent, str(PROGRAMS / "Hosts.java"), JAR, f"{acme}/"]
    _, err = run(file, program)
    said = [line for line in err.splitlines() if line.startswith("tare-log-agent: ")]
    assert [line.split(" are not logged, ")[0] for line in said] == [
        "tare-log-agent: classes of a Hosts$HomeFirst",
        "tare-log-agent: classes of a Hosts$Closed",
    ]
    found = Counter(row.channel for row in dump(file))
    assert (found["com.acme.Acme.main>"], found["com.acme.Acme.main<"]) == (1, 1)


MODULE = """
module acme { requires tare.log; }
"""
MAIN = """
package acme;
public class Main {
    public static void main(String[] arguments) {
        var channel = tare.log.TareLog.open("module");
        for (long number = 0; number < 1000; number++) channel.log(number);
        System.out.print(tare.log.TareLog.diagnose());
    }
}
"""


def test_modules_bring_what_the_log_needs(java: list[str], tmp_path: Path) -> None:
    """Of the JVM's own modules there are only those that some module requires."""
    (tmp_path / "module-info.java").write_text(MODULE)
    (tmp_path / "Main.java").write_text(MAIN)
    sources = [tmp_path / "module-info.java", tmp_path / "Main.java"]
    subprocess.run([javac(), "-p", JAR, "-d", tmp_path / "out", *sources], check=True)
    left = [word for word in java if word not in ("-cp", classpath())]
    flags = [word.replace("ALL-UNNAMED", "tare.log") for word in left]
    file, path = tmp_path / "events.log", f"{JAR}:{tmp_path / 'out'}"
    out, _ = run(file, [*flags, "-p", path, "-m", "acme/acme.Main"])
    plain = subprocess.check_output([*java, LOGGING, "diagnose"], text=True)
    assert chosen(out) == chosen(plain)
    assert [row.payload for row in dump(file)] == [str(number) for number in range(1000)]


def chosen(diagnosis: str) -> list[str]:
    """Java, library, memory and clock, without what was measured."""
    return [line.split(", to within ")[0] for line in diagnosis.splitlines()[:4]]
