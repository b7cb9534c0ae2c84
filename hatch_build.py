# SPDX-License-Identifier: Apache-2.0
"""Builds the native parts into `python/tare/_native`, for a wheel or for work in a clone.

The wheel takes that folder as it stands. `make native` runs this file as a script. Where
TARE_GLIBC is set (`make dist`), the programs are linked with that glibc, by cargo-zigbuild. Where
TARE_AS_BUILT is set, a wheel takes the parts that are there, and nothing in the clone changes.
"""

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "python" / "tare" / "_native"
# package, cargo profile, file that it builds, its place under _native
PARTS = (
    ("tare-load", "release", "tare-load", "bin/tare-load"),
    ("tare-hook", "release", "tare-hook", "bin/tare-hook"),
    ("tare-link", "release", "tare-link", "bin/tare-link"),
    ("tare-log", "release", "tare-log", "bin/tare-log"),
    ("tare-map", "release", "tare-map", "bin/tare-map"),
    ("tare-spans", "release", "tare-spans", "bin/tare-spans"),
    ("tare-relay", "release", "tare-relay", "bin/tare-relay"),
    ("tare-log-python", "release", "libtare_log_python.so", "lib/tare_log.abi3.so"),
    ("tare-distances", "release", "libtare_distances.so", "lib/libtare_distances.so"),
    ("tare-hook-preload", "preload", "libtare_hook.so", "lib/libtare_hook.so"),
    ("tare-link-preload", "preload", "libtare_link.so", "lib/libtare_link.so"),
    ("tare-log-library", "preload", "libtare_log.a", "lib/libtare_log.a"),
    # For the linker, and by the name that programs then look for: a wheel has no links.
    ("tare-log-library", "preload", "libtare_log.so", "lib/libtare_log.so"),
    ("tare-log-library", "preload", "libtare_log.so", "lib/libtare_log.so.1"),
)
JARS = tuple(
    ROOT / "java" / name / "target" / f"{name}.jar" for name in ("tare-log", "tare-log-agent")
)
LOG_LIBRARY = ROOT / "crates" / "log" / "library"
HEADERS = (ROOT / "include", LOG_LIBRARY / "include")
BPF_HEADERS = ("/usr/include", "/usr/local/include")


class NativeBuildHook(BuildHookInterface[Any]):
    """Hatchling's custom hook: a wheel for this machine's architecture."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # the clone's own `_native` is built by `make native`
            return
        glibc = os.environ.get("TARE_GLIBC")
        if "TARE_AS_BUILT" not in os.environ:
            build(glibc)
        oldest = f"manylinux_{glibc.replace('.', '_')}" if glibc else "linux"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{oldest}_{platform.machine()}"


def build(glibc: str | None = None) -> None:
    """Compiles every native part and puts it in its place; SystemExit where that fails.

    The programs run with `glibc` ("2.28") and newer ones, or with this machine's and newer ones.
    """
    if shutil.which("cargo") is None:
        raise SystemExit("cargo is missing: install Rust 1.95 or later, then try again")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    # Nothing newer is asked for by a preload library, whatever it is linked with.
    zig = {"release": f"{platform.machine()}-unknown-linux-gnu"} if glibc else {}
    parts = [part for part in PARTS if part[0] != "tare-map" or _compiles_bpf()]
    for profile in ("release", "preload"):
        packages = sorted({package for package, of, _, _ in parts if of == profile})
        command = ["cargo", "zigbuild" if profile in zig else "build"]
        command += ["--locked", "--profile", profile]
        if profile in zig:
            command += ["--target", f"{zig[profile]}.{glibc}"]
        command += [argument for name in packages for argument in ("-p", name)]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            raise SystemExit(f"the native parts were not built: {' '.join(command)} failed")
    for _, profile, file, place in parts:
        _install(target / zig.get(profile, "") / profile / file, place)
    for folder in HEADERS:
        for header in sorted(folder.rglob("*.h*")):
            _install(header, f"include/{header.relative_to(folder)}")
    _pkg_config(NATIVE / "lib" / "pkgconfig" / "tare_log.pc")
    _commit(NATIVE / "commit")
    build_java()


def _compiles_bpf() -> bool:
    """Whether this machine has what compiles `crates/map/bpf`; says what is missing."""
    missing = [] if shutil.which("clang") else ["clang"]
    if not any(Path(root, "bpf/bpf_helpers.h").exists() for root in BPF_HEADERS):
        missing.append("libbpf-dev")
    if missing:
        print(f"tare map is left out, clang and libbpf-dev build it: no {' and no '.join(missing)}")
    return not missing


def build_java() -> None:
    """Compiles what runs in a JVM, where there is a JDK and Maven; SystemExit where that fails."""
    if missing := [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]:
        print(f"java/ is left out, a JDK 17 and Maven build it: no {' and no '.join(missing)}")
        return
    sources = [ROOT / "java" / "pom.xml", *(ROOT / "java").glob("*/src/**/*.java")]
    newest = max(file.stat().st_mtime for file in [*sources, *(ROOT / "java").glob("*/pom.xml")])
    if not all(jar.exists() and jar.stat().st_mtime > newest for jar in JARS):
        command = ["mvn", "-q", "-B", "-f", "java", "package"]
        # Its launcher writes escape sequences even where it has nothing to say.
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(
                f"{done.stdout}{done.stderr}java/ was not built: {' '.join(command)} failed"
            )
    for jar in JARS:
        _install(jar, f"java/{jar.name}")


def _install(file: Path, name: str) -> None:
    place = NATIVE / name
    place.parent.mkdir(parents=True, exist_ok=True)
    # A running program keeps the old file: replace it, never write into it.
    fresh = place.with_name(f".{place.name}.new")
    shutil.copy2(file, fresh)
    fresh.replace(place)


def _commit(place: Path) -> None:
    """Writes the commit of the sources, with + where they were changed, for `tare --version`.

    There is no such file if the sources are not in a git repository.
    """
    git = ["git", "-C", str(ROOT)]
    try:
        commit, changes = (
            subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        place.unlink(missing_ok=True)
        return
    fresh = place.with_name(".commit.new")
    fresh.write_text(commit.strip() + ("+" if changes.strip() else "") + "\n", "utf-8")
    fresh.replace(place)


def _pkg_config(place: Path) -> None:
    """How compilers find the library of `tare log`."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    template = (LOG_LIBRARY / "tare_log.pc.in").read_text("utf-8")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(template.replace("@VERSION@", version["version"]), "utf-8")


if __name__ == "__main__":
    build_java() if sys.argv[1:] == ["java"] else build()
