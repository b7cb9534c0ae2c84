# SPDX-License-Identifier: Apache-2.0
import math

import pytest

from tare.errors import InputError
from tare.extras import extra, require_extra


def test_what_is_installed_is_imported() -> None:
    assert extra("scipy", "math", "tare calibrate") is math
    require_extra("scipy", "math", "tare calibrate")


def test_error_names_the_package_and_how_to_install_it() -> None:
    for function in (extra, require_extra):
        with pytest.raises(
            InputError, match=r"^tare calibrate: needs no_such_package, .*'tare\[x\]'$"
        ):
            function("x", "no_such_package.stats", "tare calibrate")
