# SPDX-License-Identifier: Apache-2.0
import os
import socket

import pytest

from tare.lab.machine import fingerprint as machine
from tare.lab.machine.fingerprint import fingerprint


def test_a_fingerprint_is_flat_sorted_and_tells_what_every_linux_tells() -> None:
    found = fingerprint()
    assert list(found) == sorted(found)
    assert all(isinstance(value, str | int | float | bool) for value in found.values())
    assert found["cpus"] == os.cpu_count()
    assert found["kernel"] == os.uname().release
    assert 0 <= found["steal_since_boot"] <= 1  # type: ignore[operator]


def test_a_fingerprint_does_not_name_the_host() -> None:
    found = fingerprint()
    identity = machine._line("/etc/machine-id")
    assert identity not in found.values()
    assert socket.gethostname() not in found.values()


def test_a_machine_without_a_reading_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(machine, "_line", lambda _path: None)
    found = fingerprint()
    assert "cpu_model" not in found
    assert "transparent_hugepages" not in found
    assert found["kernel"] == os.uname().release


def test_the_share_of_steal_is_of_the_time_that_passed() -> None:
    assert machine._share((1000, 10), (1200, 60)) == 0.25
    assert machine._share((1000, 10), (1000, 10)) == 0.0


def test_fields_that_lscpu_nests_are_found() -> None:
    nested = [
        {"field": "Vendor ID:", "data": "A", "children": [{"field": "Model name:", "data": "B"}]}
    ]
    assert dict(machine._flat(nested)) == {"Vendor ID:": "A", "Model name:": "B"}  # type: ignore[arg-type]
