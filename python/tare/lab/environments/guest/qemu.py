# SPDX-License-Identifier: Apache-2.0
"""QEMU: a machine by the hardware (KVM), or a machine that is computed (TCG).

The kernel is the newest of this host's. Its first files are in memory: what is needed to reach the
files of this host by 9p.
"""

import lzma
import os
import platform
import shlex
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tare.lab.environments.guest.machine import Boot, Machine
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import find
from tare.plan import expected

QEMU = f"qemu-system-{platform.machine()}"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "virtio_net")
DISK_MODULES = ("virtio_blk", "ext4")
TAG = "host"
OPTIONS = "trans=virtio,version=9p2000.L,msize=262144,cache=mmap"
"""Of the mount of this host's files: programs can be mapped, and what is written is not kept."""
_KERNELS = Path("/boot")
_INIT = """\
#!/bin/busybox sh
for module in {modules}; do /bin/busybox insmod /modules/$module || exit; done
/bin/busybox mount -t 9p -o {options} {tag} /root || exit
/bin/busybox mount -t devtmpfs devtmpfs /root/dev || exit
exec /bin/busybox switch_root /root {first}
"""


class Qemu(Machine):
    """One of its accelerators."""

    interface = "eth0"
    disk = "vd"

    def __init__(self, accelerator: str) -> None:
        self.accelerator = accelerator

    def check(self) -> None:
        if find(QEMU) is None:
            raise expected(f"{QEMU} to be installed: get the package qemu-system-x86")
        if self.accelerator == "kvm" and (why := _why_no_kvm()):
            raise expected(f'a KVM that boots a kernel: {why}; use machine = "tcg"')
        kernel = newest_kernel()
        if kernel is None:
            raise expected(f"a kernel in {_KERNELS}, with its modules: get linux-image-amd64")
        try:
            list(needed_modules(kernel[1]))
        except (OSError, RunError) as error:
            raise expected(f"another kernel: {error}") from error
        busybox = find("busybox")
        if busybox is None or not is_static(Path(busybox)):
            raise expected("a busybox without libraries: get the package busybox-static")

    def command(self, boot: Boot) -> list[str]:
        kernel = newest_kernel()
        if kernel is None:
            raise RunError(f"there is no kernel in {_KERNELS} any more")
        files = boot.folder / "initramfs"
        names = (*MODULES, *DISK_MODULES) if boot.disks else MODULES
        try:
            files.write_bytes(archive(initial_files(kernel[1], names, boot.first)))
        except (OSError, lzma.LZMAError) as error:
            raise RunError(f"the first files of a guest: {error}") from error
        accelerator = ["kvm", "-cpu", "host"]
        if self.accelerator == "tcg":
            accelerator = ["tcg,thread=multi", "-cpu", "max"]
        return [
            QEMU, "-accel", *accelerator, "-smp", str(boot.cpus),
            "-m", f"{boot.memory >> 20}M", "-name", boot.name, "-nodefaults", "-display", "none",
            "-no-reboot", "-serial", "stdio", "-kernel", str(kernel[0]), "-initrd", str(files),
            "-append", "console=ttyS0 quiet panic=-1",
            "-fsdev", "local,id=root,path=/,security_model=passthrough,multidevs=remap",
            "-device", f"virtio-9p-pci,fsdev=root,mount_tag={TAG}",
            "-netdev", f"tap,id=net,ifname={boot.tap},script=no,downscript=no",
            "-device", "virtio-net-pci,netdev=net",
            *(
                word
                for image in boot.disks
                for word in ("-drive", f"file={str(image).replace(',', ',,')},format=raw,if=virtio")
            ),
        ]  # fmt: skip


def newest_kernel() -> tuple[Path, Path] | None:
    """A kernel that this user can read, and the folder of its modules."""
    found = []
    for image in _KERNELS.glob("vmlinuz-*"):
        modules = Path("/lib/modules") / image.name.removeprefix("vmlinuz-")
        if os.access(image, os.R_OK) and (modules / "modules.dep").exists():
            found.append((image.stat().st_mtime, image, modules))
    return max(found)[1:] if found else None


def is_static(program: Path) -> bool:
    """Whether an ELF file of 64 bits names no dynamic linker."""
    data = program.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return False
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    interpreter = 3
    kinds = (struct.unpack_from("<I", data, headers + number * size)[0] for number in range(count))
    return interpreter not in kinds


def initial_files(
    modules: Path, names: Sequence[str], first: Sequence[str]
) -> Iterator[tuple[str, int, bytes]]:
    """Path, mode and content of what is in memory before the files of this host are reached."""
    for folder in ("bin", "modules", "root"):
        yield folder, 0o040755, b""
    busybox = find("busybox") or "busybox"
    yield "bin/busybox", 0o100755, Path(busybox).read_bytes()
    needed = [*needed_modules(modules, names)]
    for path in needed:
        read = lzma.open if path.suffix == ".xz" else Path.open
        with read(path, "rb") as file:
            yield f"modules/{path.name}", 0o100644, file.read()
    script = _INIT.format(
        modules=" ".join(path.name for path in needed),
        options=OPTIONS,
        tag=TAG,
        first=shlex.join(first),
    )
    yield "init", 0o100755, script.encode()


def needed_modules(folder: Path, names: Sequence[str] = MODULES) -> Iterator[Path]:
    """The modules of a kernel for some names that are not part of it, each after those it needs.

    Raises RunError for a module that the kernel does not have, or in a form that cannot be read.
    """
    known: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text(encoding="utf-8").splitlines():
        name, _, others = line.partition(":")
        known[Path(name).name.partition(".")[0]] = [name, *others.split()]
    builtin = (folder / "modules.builtin").read_text(encoding="utf-8")
    seen: dict[str, None] = {}
    for module in names:
        if module in known:
            seen |= dict.fromkeys(reversed(known[module]))
        elif f"/{module}.ko" not in builtin:
            raise RunError(f"the kernel of {folder} has no module {module}")
    for name in seen:
        if not name.endswith((".ko", ".ko.xz")):
            raise RunError(f"{folder / name}: cannot be read; expected .ko or .ko.xz")
        yield folder / name


def archive(files: Iterator[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive as kernels read it (Documentation/driver-api/early-userspace)."""
    parts = []
    for number, (path, mode, content) in enumerate((*files, ("TRAILER!!!", 0, b"")), 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]
    return b"".join(parts)


@cache
def _why_no_kvm() -> str:
    """What `tare doctor` finds wrong with KVM; empty if nothing."""
    from tare.lab.doctor import PROBES, examine

    (found,) = examine([probe for probe in PROBES if probe.name == "kvm"])
    return "" if found.state == "yes" else found.found
