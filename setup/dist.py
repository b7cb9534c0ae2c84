# SPDX-License-Identifier: Apache-2.0
"""What is handed out, in dist/: a wheel, its native parts alone, libraries for aarch64, sums.

`make dist` runs it: python setup/dist.py [FOLDER-OF-LIBRARIES-FOR-AARCH64]
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
OLDEST_GLIBC = "2.28"
# What every system with glibc has, of what manylinux_2_28 allows (PEP 600, auditwheel's policy).
LIBRARIES = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[\w-]+)\.so\.\d")


def main(aarch64: Path | None) -> None:
    """Makes everything anew; SystemExit where something needs more than the oldest glibc."""
    shutil.rmtree(DIST, ignore_errors=True)
    wheel = build_wheel()
    version = wheel.name.split("-")[1]
    packs = {f"tare-native-{version}-linux-{platform.machine()}": native_parts(wheel)}
    if aarch64:
        packs[f"tare-libraries-{version}-linux-aarch64"] = libraries(wheel, aarch64)
    for name, parts in packs.items():
        for path, content in parts.items():
            if not path.startswith(("include/", "java/", "lib/pkgconfig/")):
                check(f"{name}/{path}", content)
        pack(DIST / f"{name}.tar.gz", parts)
    files = sorted(path for path in DIST.iterdir() if path.name.startswith("tare-"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines))
    for file in files:
        print(f"dist/{file.name}: {file.stat().st_size:,} B")


def build_wheel() -> Path:
    """A wheel whose programs are linked with the oldest glibc."""
    # cargo finds cargo-zigbuild, and that finds zig, by PATH.
    here = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "TARE_GLIBC": OLDEST_GLIBC,
    }
    options = ["--wheel", "--no-build-isolation", "--python", sys.executable]
    command = [str(here / "uv"), "build", *options, "--out-dir", str(DIST)]
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        raise SystemExit("dist: the wheel was not built")
    return next(DIST.glob("tare-*.whl"))


def native_parts(wheel: Path) -> dict[str, bytes]:
    """The wheel's bin/, lib/ and include/: tare-hook finds its library from there."""
    folder = "tare/_native/"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder)]
        return {name.removeprefix(folder): archive.read(name) for name in sorted(names)}


def libraries(wheel: Path, folder: Path) -> dict[str, bytes]:
    """Those of programs, built for another machine, and the wheel's headers."""
    headers = {
        path: content
        for path, content in native_parts(wheel).items()
        if path.startswith(("include/", "lib/pkgconfig/"))
    }
    built = {
        f"lib/{name}": (folder / name).read_bytes()
        for name in ("libtare_hook.so", "libtare_link.so", "libtare_log.so", "libtare_log.a")
    }
    return headers | built | {"lib/libtare_log.so.1": built["lib/libtare_log.so"]}


def check(name: str, content: bytes) -> None:
    """SystemExit unless an ELF file runs wherever the oldest glibc does."""
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        command = ["readelf", "--wide", "--dynamic", "--version-info", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dist: {name} is no program: {done.stderr.strip()}")
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout):
        if not LIBRARIES.fullmatch(library):
            raise SystemExit(f"dist: {name} needs {library}, which not every system has")
    versions = re.findall(r"Name: GLIBC_([0-9.]+)", done.stdout)
    newest = max(versions, key=number, default="0")
    if number(newest) > number(OLDEST_GLIBC):
        raise SystemExit(f"dist: {name} needs glibc {newest}; {OLDEST_GLIBC} is promised")


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def pack(path: Path, parts: dict[str, bytes]) -> None:
    """A tar of these programs and libraries and the licence, in a folder of its own name."""
    folder = path.name.removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"LICENSE": (ROOT / "LICENSE").read_bytes(), **parts}.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            entry.mode = 0o644 if name == "LICENSE" else 0o755
            archive.addfile(entry, BytesIO(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
