# SPDX-License-Identifier: Apache-2.0
"""What this machine can do, found by trying, and what each missing thing switches off in Tare."""

from tare.lab.doctor.examine import examine
from tare.lab.doctor.finding import Finding, Found, Probe, State, summary
from tare.lab.doctor.probes import PROBES

__all__ = ["PROBES", "Finding", "Found", "Probe", "State", "examine", "summary"]
