# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
from pathlib import Path

import pytest

from tare.lab.doctor.guest import CODE, USER_SPACE

DISASSEMBLY = """\
mov ecx,0xc0000081
xor eax,eax
mov edx,0x100008
wrmsr
inc ecx
mov eax,0x1040
xor edx,edx
wrmsr
mov ecx,0x1027
mov r11d,0x2
rex.W sysret
mov ecx,0x989680
dec ecx
jne 0x102c
movq xmm0,rcx
syscall
"""


def test_the_guests_code_is_what_its_comments_say(tmp_path: Path) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("objdump (package binutils) is not installed")
    file = tmp_path / "code"
    file.write_bytes(USER_SPACE.code)
    listing = subprocess.run(
        ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel",
         f"--adjust-vma={CODE:#x}", "--no-show-raw-insn", str(file)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    code = [line.split(":\t") for line in listing.splitlines() if ":\t" in line]
    at = {int(address, 16): " ".join(text.split()) for address, text in code}
    assert "\n".join(list(at.values())[:16]) + "\n" == DISASSEMBLY.replace(
        "rex.W sysret", at[0x1024]
    )
    assert at[0x1024].endswith(("sysret", "sysretq"))
    assert at[0x1027] == "mov ecx,0x989680"
    assert at[0x1040] == "hlt"
