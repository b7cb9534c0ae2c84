# SPDX-License-Identifier: Apache-2.0
"""TCP whose messages the kernel puts into the other socket's queue (sockmap redirect), where this
machine has clang and libbpf and may load such programs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

LOADER = Path(__file__).with_suffix(".c")
PROGRAM = Path(__file__).with_suffix(".bpf.c")


@dataclass(frozen=True)
class Sockmap:
    """Built in a folder."""

    folder: Path

    def around(self, command: list[str]) -> list[str]:
        """The command whose connections to itself use it."""
        object_, counted = self.folder / "sockmap.bpf.o", self.folder / "redirected"
        return [str(self.folder / "sockmap"), str(object_), str(counted), *command]

    def redirected(self) -> int:
        """Messages of the last command that took this way."""
        return int((self.folder / "redirected").read_text())


def build(folder: Path) -> Sockmap | str:
    """Or why it cannot be measured here."""
    sockmap = Sockmap(folder)
    compile_program = ["clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-c", str(PROGRAM)]
    includes = sorted(Path("/usr/include").glob("*-linux-gnu"))
    for words in (
        [*compile_program, *(f"-I{path}" for path in includes), "-o", f"{folder}/sockmap.bpf.o"],
        ["cc", "-O2", str(LOADER), "-lbpf", "-o", f"{folder}/sockmap"],
        sockmap.around(["true"]),
    ):
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{words[0]}: {error.strerror}"
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1]
    return sockmap
