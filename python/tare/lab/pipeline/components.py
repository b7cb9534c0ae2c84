# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of a pipeline as processes of the lab, and stops them."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.lab.environments.host import output
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import Process, Processes, StartError
from tare.lab.start.ready import wait_until_ready
from tare.plan import Ready
from tare.running.created_resources import Record, record

LOCAL = "127.0.0.1"
START_S = 120
GRACE_S = 60.0
"""For what a program still has to write; then it is killed."""
OTHER_USER = "nobody"


def readiness(**check: object) -> Ready:
    """When a program is ready, as in a plan."""
    return Ready.model_validate({**check, "timeout": f"{START_S}s"})


@dataclass(frozen=True)
class Component:
    """A program of the pipeline that is ready."""

    program: str
    process: Process
    record: Record
    log: Path

    @property
    def why_ended(self) -> str | None:
        """How it ended; None while it runs."""
        return None if self.process.code is None else f"{self.program} {self.process.ending}"


class Components:
    """The programs of a pipeline on this host."""

    def __init__(
        self, programs: Mapping[str, str], processes: Processes, cpus: Sequence[int]
    ) -> None:
        """`programs` are files by name."""
        self._programs, self.processes, self._cpus = programs, processes, cpus

    def file(self, program: str) -> str:
        """The file of a program."""
        return self._programs[program]

    def start(
        self,
        program: str,
        command: Sequence[str],
        *,
        name: str,
        log: Path,
        port: int,
        ready: Ready,
        folder: Path | None = None,
        variables: Mapping[str, str] = {},
        other_user: bool = False,
    ) -> Component:
        """Starts a program, and returns when it is ready.

        `folder` is deleted when the program has ended, also if tare was killed. With `other_user`,
        root starts it as a user without rights. Raises RunError if it does not become ready.
        """
        unique = f"tare{os.getpid()}-{name}"
        gone = [] if folder is None else [("rm", "-rf", "--one-file-system", str(folder))]
        made = record(program, unique, gone)
        before = as_other_user() if other_user else []
        process = None
        try:
            process = self.processes.start(
                unique,
                [*before, *command],
                directory=folder or Path("/"),
                log=log,
                cpus=self._cpus,
                environment=variables,
                grace_s=GRACE_S,
                undo=made.removal,
            )
            wait_until_ready(ready, process, self.processes, address=LOCAL, port=port, log=log)
        except BaseException as error:
            if process is not None:
                self.processes.stop([process])
            output(made.removal)
            if isinstance(error, RunError | StartError):
                raise RunError(f"{program}: {error}; its log is {log}") from error
            raise
        return Component(program, process, made, log)

    def stop(self, components: Sequence[Component]) -> None:
        """Stops programs, all at once, and deletes their folders."""
        self.processes.stop([component.process for component in components])
        for component in components:
            output(component.record.removal)


def new_folder(
    name: str, files: Mapping[str, str], data: Sequence[str] = (), *, other_user: bool = False
) -> Path:
    """A new folder with files, in which `{dir}` is the folder, and with empty folders for data.

    With `other_user`, that user may read the files and owns the folders for data. A result has
    only files of users that are trusted, so this is a folder of tempfile.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"tare-{name}-"))
    try:
        folder.chmod(0o711 if other_user else 0o700)
        for file, text in files.items():
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace("{dir}", str(folder)), encoding="utf-8")
            if other_user:
                path.parent.chmod(0o711)
                path.chmod(0o644)
        for one in data:
            (folder / one).mkdir(mode=0o700)
            if other_user and os.geteuid() == 0:
                user = pwd.getpwnam(OTHER_USER)
                os.chown(folder / one, user.pw_uid, user.pw_gid)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder


def as_other_user() -> list[str]:
    """Words before a command that take root's rights away; none for another user."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(OTHER_USER)
    ids = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}")
    return ["setpriv", *ids, "--clear-groups", "--no-new-privs"]
