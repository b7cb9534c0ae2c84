# SPDX-License-Identifier: Apache-2.0
"""Whether a network namespace can be made, as root or as root of a user namespace."""

import os

from tare.lab.doctor.finding import Found
from tare.lab.doctor.syscalls import unshare

_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000


def network_namespaces() -> Found:
    # The namespace goes with this process.
    try:
        unshare(_NEW_NETWORK)
    except OSError as refused:
        try:
            unshare(_NEW_USER | _NEW_NETWORK)
        except OSError:
            return Found("no", refused.strerror or str(refused))
        return Found("partly", "only in a user namespace, without the host's network")
    return Found("yes", f"user {os.geteuid()} can create them")
