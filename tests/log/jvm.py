# SPDX-License-Identifier: Apache-2.0
"""The JDKs of this machine that tests run on: all from 17 on."""

from functools import cache
from pathlib import Path

import pytest
from tests import aarch64
from tests.once import OUT, compiled

from tare.lab.doctor.jdks import jdks
from tare.native import native

JAR = native("java", "tare-log.jar")
PROGRAMS = Path(__file__).parent / "java"
LOGGING = "Logging"


def version(jdk: str) -> int:
    return int(jdk.split(".", maxsplit=1)[0])


def found() -> dict[str, str]:
    """Homes of JDKs by version; for aarch64 what `make test-aarch64` has brought."""
    if aarch64.FOLDER:
        return {"17": f"{aarch64.FOLDER}/java"} if Path(aarch64.FOLDER, "java").exists() else {}
    all_ = jdks().details["jdks"]
    usable = [jdk for jdk in all_ if jdk["kind"] == "JDK" and version(jdk["version"]) >= 17]
    return {jdk["version"]: jdk["home"] for jdk in usable}


FOUND = found()


def those_from(oldest: int) -> list[object]:
    """Versions for the fixture `java`, which skips "none". The newest is in each run."""
    *others, newest = sorted(
        (release for release in FOUND if version(release) >= oldest), key=version
    ) or ["none"]
    marked = [pytest.param(other, marks=pytest.mark.exhaustive) for other in others]
    return [*marked, pytest.param(newest)]


def javac() -> str:
    """The oldest compiler."""
    return f"{FOUND[min(FOUND, key=version)]}/bin/javac"


@cache
def classes() -> str:
    """The folder of java/Logging.java, compiled once: Java would do so at each start."""
    words = [javac(), "-nowarn", "-cp", JAR, "-d", OUT, PROGRAMS / "Logging.java"]
    return str(compiled("classes", *words))


def classpath() -> str:
    """Of `command`."""
    return f"{JAR}:{classes()}"


def command(jdk: str) -> list[str]:
    """What runs a Java program, which follows: LOGGING, or a file."""
    words = [f"{FOUND[jdk]}/bin/java", "-Xmx512m", "-cp", classpath()]
    if version(jdk) >= 22:
        words.append("--enable-native-access=ALL-UNNAMED")
    return words


def version_of(java: list[str]) -> int:
    (found,) = [jdk for jdk in FOUND if java == command(jdk)]
    return version(found)
