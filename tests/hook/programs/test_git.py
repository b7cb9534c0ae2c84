# SPDX-License-Identifier: Apache-2.0
"""git: commit, clone, fetch and push with its own server, clone over HTTP."""

import shutil
import subprocess
from pathlib import Path

from tests.hook.hooked import Behaviour, plain
from tests.hook.programs.ways import Command, Wrap, both, free_port, need, serving
from tests.hook.programs.web import web

MOMENT = "2001-02-03T04:05:06Z"
# Every commit has the same name in both ways.
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": MOMENT,
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_COMMITTER_DATE": MOMENT,
}


def test_git(readable: Path) -> None:
    need("git")
    base = readable / "base"
    port, http = free_port(), free_port()
    daemon = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-daemon"
    options = ["--reuseaddr", "--listen=127.0.0.1", f"--port={port}", "--export-all"]
    # Enough that objects travel as packs, compressed by threads.
    text = "".join(f"{number} {number * number}\n" for number in range(50_000))

    def session(wrap: Wrap) -> list[Behaviour]:
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        source, clone = base / "source", base / "clone"

        def git(*arguments: str | Path) -> None:
            transcript.append(plain(wrap(["git", *arguments]), base, ENVIRONMENT))

        def commit(folder: Path, name: str) -> None:
            (folder / name).write_text(name + text)
            git("-C", folder, "add", ".")
            git("-C", folder, "commit", "-q", "-m", f"Add {name}")

        transcript: list[Behaviour] = []
        git("init", "-q", "-b", "main", source)
        commit(source, "first")
        server: Command = [daemon, *options, "--enable=receive-pack", f"--base-path={base}", base]
        with serving(wrap(server), port, code=143):
            url = f"git://127.0.0.1:{port}/source"
            git("clone", url, clone)
            commit(source, "second")
            git("-C", clone, "fetch", "origin")
            git("-C", clone, "merge", "-q", "--ff-only", "origin/main")
            commit(clone, "third")
            git("-C", clone, "push", "origin", "main:other")
            git("clone", f"{url}/absent", base / "no")
        git("-C", source, "update-server-info")
        with web(readable, http):
            git("clone", f"http://127.0.0.1:{http}/base/source/.git", base / "over-http")
        git("-C", source, "log", "--all", "--stat")
        git("-C", source, "fsck", "--strict")
        return transcript

    transcript = both(session, readable)
    assert [done.code for done in transcript].count(0) == len(transcript) - 1
    assert transcript[-2].out.count("Add ") == 3
