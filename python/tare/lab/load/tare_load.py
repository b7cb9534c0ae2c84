# SPDX-License-Identifier: Apache-2.0
"""How tare-load is called for the load of a plan."""

from collections.abc import Mapping
from pathlib import Path

from tare.atomic_files import named
from tare.errors import TareError
from tare.lab.environments.launch import Launch
from tare.native import native
from tare.plan import CommandLoad, OwnLoad, TareLoad, TcpLoad

PROGRAM = native("bin", "tare-load")


def require_own_generator() -> None:
    """Raises TareError where tare-load was not built."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")


def load_command(
    load: OwnLoad, rate: float | None, launches: Mapping[str, Launch], folder: Path
) -> list[str]:
    """The words that start it on services by name; what it sends is in `folder`."""
    command = [PROGRAM, _protocol(load), "--json"]
    for name, launch in launches.items():
        command += ["--target", f"{name}={_place(load, launch)}"]
    command += ["--mode", load.mode, "--users", str(load.most_users)]
    command += ["--duration", f"{load.duration * len(launches)}ns"]
    command += ["--warmup", f"{load.warmup * len(launches)}ns"]
    command += ["--slice", f"{load.slice}ns"]
    if rate is not None:
        command += ["--rate", str(rate)]
    plan_folder = next(iter(launches.values())).plan_folder
    return command + _request(load, folder, plan_folder)


def capacity_command(load: OwnLoad, launch: Launch, folder: Path) -> list[str]:
    """The words that start it to find the most that one service bears."""
    command = [PROGRAM, _protocol(load), _place(load, launch), "--capacity", "--json"]
    return command + _request(load, folder, launch.plan_folder)


def url(load: OwnLoad | CommandLoad, launch: Launch) -> str:
    """Where the users of a service go."""
    if isinstance(load, TcpLoad):
        return f"tcp://{_address(launch)}"
    scheme = "https" if isinstance(load, TareLoad) and load.https else "http"
    path = load.path if isinstance(load, TareLoad | CommandLoad) else "/"
    return f"{scheme}://{_address(launch)}{path}"


def _address(launch: Launch) -> str:
    return f"{launch.environment.address}:{launch.door}"


def _protocol(load: OwnLoad) -> str:
    return "tcp" if isinstance(load, TcpLoad) else "http"


def _place(load: OwnLoad, launch: Launch) -> str:
    return _address(launch) if isinstance(load, TcpLoad) else url(load, launch)


def _request(load: OwnLoad, folder: Path, plan_folder: Path) -> list[str]:
    """The words for what is sent and expected, the same for the load and for the capacity."""
    words = ["--connection", load.connection, "--timeout", f"{load.timeout}ns"]
    if load.threads is not None:
        words += ["--threads", str(load.threads)]
    if isinstance(load, TcpLoad):
        return words + _tcp(load, plan_folder)
    assert isinstance(load, TareLoad)
    return words + _http(load, folder, plan_folder)


def _http(load: TareLoad, folder: Path, plan_folder: Path) -> list[str]:
    words = ["--method", load.method, "--http", load.http]
    if load.connections is not None:
        words += ["--connections", str(load.connections)]
    if load.ca is not None:
        words += ["--ca", str(plan_folder / load.ca)]
    if load.insecure:
        words += ["--insecure"]
    for name, value in load.headers.items():
        words += ["--header", f"{name}: {value}"]
    for status in load.expect_status:
        words += ["--expect-status", str(status)]
    for option, text in (("body", load.body), ("expect-body", load.expect_body)):
        if text is not None:
            with named(folder / option):
                (folder / option).write_text(text, encoding="utf-8")
            words += [f"--{option}", str(folder / option)]
    return words


def _tcp(load: TcpLoad, plan_folder: Path) -> list[str]:
    options = {
        "send": load.send,
        "send-file": None if load.send_file is None else plan_folder / load.send_file,
        "reply": load.reply,
        "reply-until": load.reply_until,
        "reply-bytes": load.reply_bytes,
        "reply-limit": load.reply_limit,
        "pipeline": load.pipeline,
    }
    # In one word each: a text may begin with a dash.
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
