# SPDX-License-Identifier: Apache-2.0
"""Every JDK on this machine, with its version."""

import os
from collections.abc import Iterator
from pathlib import Path

from tare.lab.doctor.finding import Found
from tare.lab.processes.processes import find

_WANTED = 17


def jdks() -> Found:
    found = [jdk for jdk in map(_describe, sorted(_homes())) if jdk]
    if not found:
        return Found("no", "none", {"jdks": []})
    text = ", ".join(f"{jdk['version']} ({jdk['kind']}) {jdk['home']}" for jdk in found)
    compilers = [jdk for jdk in found if jdk["kind"] == "JDK" and _major(jdk["version"]) >= _WANTED]
    return Found("yes" if compilers else "partly", text, {"jdks": found})


def _homes() -> set[Path]:
    homes: set[Path] = set()
    for home in _candidates():
        try:
            if (home / "bin/java").exists():
                homes.add(home.resolve())
        except OSError:
            continue  # a folder that this user may not look into
    return homes


def _candidates() -> Iterator[Path]:
    yield from Path("/usr/lib/jvm").glob("*")
    yield from Path("/opt").glob("*")
    yield from (Path.home() / ".sdkman/candidates/java").glob("*")
    if java_home := os.environ.get("JAVA_HOME"):
        yield Path(java_home)
    if java := find("java"):
        yield Path(java).resolve().parents[1]


def _describe(home: Path) -> dict[str, str] | None:
    """From its `release` file: no JVM need be started."""
    try:
        lines = (home / "release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    release = dict(line.split("=", 1) for line in lines if "=" in line)
    version = release.get("JAVA_VERSION", '"?"').strip('"')
    kind = "JDK" if (home / "bin/javac").exists() else "JRE"
    return {"home": str(home), "version": version, "kind": kind}


def _major(version: str) -> int:
    first = version.removeprefix("1.").split(".")[0]
    return int(first) if first.isdigit() else 0
