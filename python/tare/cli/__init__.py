# SPDX-License-Identifier: Apache-2.0
"""The command line: one file a command; each reads arguments, calls one function, prints."""

import gc
import io
import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from tare.cli import calibrate, clean, compare, doctor, init, native, ps, report, run, spans
from tare.cli.shared.streams import silence, tell
from tare.errors import TareError

HELP = """Measure what hooks, agents, proxies and tracers cost a service. `tare COMMAND
--help` describes a command. Begin with your own service, and the layer that you
want to measure:

\b
  tare run --service 'my-server --port {port}' --condition agent=env:NAME=VALUE
"""

app = typer.Typer(
    name="tare",
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGUMENTS]...",
    pretty_exceptions_enable=False,
    # Rich's own help formatter imports a Markdown parser: 200 ms for every --help.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tare.cli.version import version_text

        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print version, commit and parts.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for module in (run, init, compare, report, calibrate, native, spans, ps, clean, doctor):
    module.register(app)


def main() -> int:
    """Runs the command line and returns its exit code; every error is one line on stderr."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by whoever started this: nobody listens
            setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a µ where the locale has none
    # Ibis, SciPy and Matplotlib make objects that stay; looking through them for garbage again and
    # again takes an eighth of the time of importing them.
    gc.set_threshold(100_000)
    interrupts = _count_interrupts()
    try:
        code = app(standalone_mode=False, prog_name="tare")
        sys.stdout.flush()
    except TareError as error:
        return _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        return _fail(_usage(error), error.exit_code)
    except typer.Exit as leave:
        return leave.exit_code
    except (BrokenPipeError, SystemExit) as end:
        return _nobody_reads(end)
    except OSError as error:  # a full disk, most of all
        silence(sys.stdout)
        return _fail(f"{error.filename or 'standard output'}: {error.strerror}", 1)
    except (Exception, KeyboardInterrupt):
        if not interrupts:
            raise
    # Typer turns a KeyboardInterrupt into an exit code, DuckDB into an error of its own.
    if interrupts:
        return _fail("interrupted", 130)
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the arguments, and the help of the command that they were for."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tare"
    return f"{error.format_message().removesuffix('.')}; see '{command} --help'"


def _nobody_reads(end: BrokenPipeError | SystemExit) -> int:
    """The reader of a pipe has seen enough: nothing failed, though Typer and Rich leave by 1."""
    if not any(isinstance(error, BrokenPipeError) for error in (end, end.__context__)):
        raise end
    silence(sys.stdout)
    return 0


def _count_interrupts() -> list[int]:
    """A list that grows with every Ctrl-C; each still raises KeyboardInterrupt."""
    seen: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    return seen


def _fail(message: str, exit_code: int) -> int:
    tell(f"tare: {' '.join(message.split())}")
    return exit_code
