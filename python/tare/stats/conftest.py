# SPDX-License-Identifier: Apache-2.0
"""Property tests here try the same cases on every machine, however slow it is."""

from hypothesis import settings

settings.register_profile("tare", deadline=None, derandomize=True)
settings.load_profile("tare")
