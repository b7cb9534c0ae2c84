# SPDX-License-Identifier: Apache-2.0
"""In CI a skipped test must be listed, with its reason, in tests/EXPECTED_SKIPS."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.once import shared

# A shell has what it starts in the background ignore these, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# Debian keeps servers where an ordinary user's PATH does not look.
os.environ["PATH"] += os.pathsep + "/usr/sbin"

EXPECTED = Path(__file__).parent / "tests" / "EXPECTED_SKIPS"


def pytest_configure(config: pytest.Config) -> None:
    """The processes of pytest-xdist are started later, and have the same folder."""
    stack = ExitStack()
    stack.enter_context(shared())
    config.add_cleanup(stack.close)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking through it for garbage again and again takes a
    tenth of the time that tests have in this process."""
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what tests measure out of the histories of the one who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that another user can read, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the skips that nobody expected."""
    for test in _unexpected(terminalreporter):
        terminalreporter.write_line(
            f"unexpected skip: {test}; make it run, or list it in {EXPECTED.name}"
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a CI run that skipped what it should have run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    passed = exitstatus == pytest.ExitCode.OK
    if os.environ.get("CI") and passed and reporter and _unexpected(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unexpected(reporter: pytest.TerminalReporter) -> list[str]:
    patterns = [
        line.split()[0]
        for line in EXPECTED.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    skipped = [report.nodeid for report in reporter.stats.get("skipped", [])]
    return [test for test in skipped if not any(fnmatch(test, pattern) for pattern in patterns)]
