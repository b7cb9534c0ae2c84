# SPDX-License-Identifier: Apache-2.0
"""setup/install-packages in a mount namespace of its own, with an apt-get that installs nothing."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.rights import may_make_namespaces

INSTALL = Path(__file__).parents[1] / "setup" / "install-packages"
POLICY = "/usr/sbin/policy-rc.d"
# Nothing is installed yet; what apt-get installs asks whether it may be started.
PROGRAMS = {
    "dpkg-query": "exit 1",
    "apt-get": f'[ "$1" = update ] || {{ {POLICY}; echo "told $?" >&3; exit "$INSTALLED"; }}',
}


@pytest.mark.parametrize("installed", ["0", "100"])
@pytest.mark.parametrize(("there", "told"), [(None, "told 101"), ("exit 0", "told 0")])
def test_what_is_installed_is_not_started(
    tmp_path: Path, there: str | None, told: str, installed: str
) -> None:
    if not may_make_namespaces():
        pytest.skip("only root can mount something, and not in every container")
    for name, script in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    before = (
        "" if there is None else f"printf '#!/bin/sh\\n{there}\\n' >{POLICY}; chmod +x {POLICY};"
    )
    script = (
        f"mount -t tmpfs none /usr/sbin; {before} {INSTALL} demo 3>&1 >/dev/null;"
        f' echo "ended $?"; test -e {POLICY} && tail -n 1 {POLICY}; true'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "INSTALLED": installed},
        capture_output=True,
        text=True,
        check=True,
    )
    left = [] if there is None else [there]
    assert done.stdout.splitlines() == [told, "ended 0", *left], done.stderr
    assert ("could not install" in done.stderr) == (installed != "0")
