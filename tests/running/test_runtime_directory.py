# SPDX-License-Identifier: Apache-2.0
"""Which directory is the runtime directory: the same one in Rust and in Python."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.hostile.conftest import NOBODY
from tests.rights import may_make_namespaces

from tare.native import native

ROOT = Path(__file__).parents[2]
# Enters a root with all folders of this machine, but with a /tmp of its own and without /run.
NEW_ROOT = f"""
mount -t tmpfs none "$ROOT_FOLDER" && cd "$ROOT_FOLDER" || exit
for path in /*; do
    if [ -L "$path" ]; then cp -P "$path" .
    elif [ -d "$path" ] && [ "$path" != /run ] && [ "$path" != /tmp ]; then
        mkdir ".$path" && mount --rbind "$path" ".$path" || exit
    fi
done
mkdir -m 1777 tmp
for path in "{ROOT}" "{Path(sys.prefix).resolve()}"; do
    mkdir -p ".$path" && mount --rbind "$path" ".$path" || exit
done
exec chroot . "$@"
"""
PYTHON = """
from tare.running.directory import make_runtime_directory
print(make_runtime_directory() / "socket")
"""
# How each language makes the directory; prints the path of a socket in it.
MAKES = {
    "rust": [native("bin", "tare-log"), "run", "--out", "/tmp/out", "--", "printenv", "TARE_LOG"],
    "python": [sys.executable, "-B", "-c", PYTHON],
}


class Row(NamedTuple):
    """One user with an XDG_RUNTIME_DIR, and the directory that follows from them."""

    user: int
    before: str
    """What the shell prepares in /tmp."""
    session: str
    expected: str
    """Path and mode."""


OWN = f"/tmp/tare-{NOBODY} 700"
SESSION = "mkdir -m 700 session && chown {user} session"
ROWS = {
    "root": Row(0, f"mkdir /run && {SESSION}", "/tmp/session", "/run/tare 755"),
    "root without /run": Row(0, SESSION, "/tmp/session", "/tmp/tare-0 700"),
    "user": Row(NOBODY, f"mkdir /run && {SESSION}", "/tmp/session", "/tmp/session/tare 700"),
    "of another user": Row(NOBODY, "mkdir -m 777 session", "/tmp/session", OWN),
    "link": Row(NOBODY, f"{SESSION} && ln -s session link", "/tmp/link", OWN),
    "relative": Row(NOBODY, SESSION, "session", OWN),
    "missing": Row(NOBODY, "true", "/tmp/session", OWN),
    "empty": Row(NOBODY, "true", "", OWN),
}


@pytest.mark.parametrize("language", MAKES)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_directory_follows_from_user_and_session(
    language: str, row: Row, tmp_path: Path
) -> None:
    if not may_make_namespaces():
        pytest.skip("only root can act as another user")
    if not Path(MAKES["rust"][0]).exists():
        pytest.skip("tare-log is not built")
    # Programs and interpreter may be in a folder that only root can read.
    rights = "+dac_read_search"
    as_user = ["setpriv", f"--reuid={row.user}", f"--regid={row.user}", "--clear-groups"]
    as_user += [f"--inh-caps={rights}", f"--ambient-caps={rights}"]
    prepare = f"cd /tmp && {row.before.format(user=row.user)}"
    makes = f'{prepare} && path=$("$@") && stat -c "%n %a" "${{path%/*}}"'
    in_new_root = ["unshare", "--mount", "sh", "-c", NEW_ROOT, "sh", "sh", "-c", makes, "sh"]
    done = subprocess.run(
        [*in_new_root, *as_user, *MAKES[language]],
        env={
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONPATH": str(ROOT / "python"),
            "ROOT_FOLDER": str(tmp_path),
            "XDG_RUNTIME_DIR": row.session,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.rstrip("\n"), done.returncode) == (row.expected, 0), done.stderr
