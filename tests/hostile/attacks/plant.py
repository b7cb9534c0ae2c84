# SPDX-License-Identifier: Apache-2.0
"""plant.py SIZE:HEADER...: creates sealed segments with forged headers, prints the value of
TARE_HOOK that names them, and waits."""

import fcntl
import os
import struct
import sys
from pathlib import Path

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
start = int(stat[19])
descriptors = []
for word in sys.argv[1:]:
    size, header = word.split(":")
    fd = os.memfd_create("tare-hook-shared", os.MFD_ALLOW_SEALING)
    os.truncate(fd, int(size))
    os.fchmod(fd, 0o644)
    owner = struct.pack("<QII", start, os.getpid(), 0)
    os.pwrite(fd, bytes.fromhex(header)[:24] + owner, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    descriptors.append(fd)
print("ready", flush=True)
print(f"{os.getpid()}:{start}:" + ":".join(map(str, descriptors)), flush=True)
sys.stdin.readline()
