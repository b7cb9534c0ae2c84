# SPDX-License-Identifier: Apache-2.0
"""Rules change while the server serves: no request fails, and the new rules hold."""

import signal
import threading
from pathlib import Path

from tests.hook_command.service import (
    HOOK,
    Hooked,
    Nginx,
    Start,
    exchange,
    request,
    rules,
)
from tests.waiting import SECONDS, wait_for

CLIENTS = 4
RELOADS = 30


class Traffic:
    """Clients that send requests with one keyword until they are told to stop."""

    def __init__(self, nginx: Nginx) -> None:
        self.nginx = nginx
        self.stop = threading.Event()
        self.answered = 0
        self.failures: list[Exception] = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]

    def __enter__(self) -> "Traffic":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def run(self) -> None:
        try:
            with self.nginx.connect() as connection:
                while not self.stop.is_set():
                    exchange(connection, request(b"always"))
                    with self.lock:
                        self.answered += 1
        except OSError as error:
            self.failures.append(error)

    def go_on(self, requests: int = 50) -> None:
        """Returns after so many more requests."""
        goal = self.answered + requests
        wait_for(lambda: self.answered >= goal or bool(self.failures))


def found(hooked: Hooked) -> list[str]:
    return [event["keyword"] for event in hooked.lines()]


def test_no_request_and_no_match_is_lost_while_rules_change(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("always"))
    new = nginx.folder / "rules.new"
    with Traffic(nginx) as traffic:
        for number in range(RELOADS):
            traffic.go_on(20)
            text = rules("always", f"only-{number}")
            if number % 2:
                new.write_text(text)
                new.rename(hooked.rules)
            else:
                hooked.rules.write_text(text)
        traffic.go_on()
    assert not traffic.failures
    last = f"only-{RELOADS - 1}"

    def is_in_force() -> bool:
        with nginx.connect() as connection:
            exchange(connection, request(last.encode()))
        return last in found(hooked)

    wait_for(is_in_force)
    stats = hooked.stop()
    # Every request of the clients carried the keyword which all generations have.
    matches = sum(function["matches"] for function in stats["functions"])
    assert matches == traffic.answered + found(hooked).count(last)
    written = len(found(hooked))
    assert stats["events"] == {"written": written, "lost": matches - written, "unwanted": 0}
    assert stats["rules"]["reloads"] > 0


def test_sighup_reads_the_rules_again(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("first"))
    # A file that is written through another name is not seen in its folder.
    elsewhere = nginx.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link").hardlink_to(hooked.rules)
    (elsewhere / "link").write_text(rules("second"))
    hooked.process.send_signal(signal.SIGHUP)

    def is_found() -> bool:
        with nginx.connect() as connection:
            exchange(connection, request(b"second"))
        return "second" in found(hooked)

    wait_for(is_found)
    assert hooked.process.poll() is None


def test_broken_rules_keep_the_old_ones_and_say_why_once(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("kept"))
    hooked.rules.write_text("[[rule]]\nkeywords = ['new']\nscope = 'htp'\n")
    assert hooked.process.stderr
    line = hooked.process.stderr.readline()
    assert f'{hooked.rules}:3: rule[1].scope: found "htp", expected' in line
    assert "the previous rules stay in force" in line
    with nginx.connect() as connection:
        exchange(connection, request(b"kept new"))
    wait_for(lambda: found(hooked) == ["kept"])
    hooked.process.terminate()
    assert hooked.process.wait(SECONDS) == 0
    assert "htp" not in hooked.process.stderr.read()


def test_a_file_that_is_no_text_keeps_the_old_rules_and_says_so(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("kept"))
    hooked.rules.write_bytes(b"[[rule]]\nkeywords = ['\xff']\n")
    assert hooked.process.stderr
    line = hooked.process.stderr.readline()
    assert f"--rules {hooked.rules}: stream did not contain valid UTF-8; name a" in line
    with nginx.connect() as connection:
        exchange(connection, request(b"kept"))
    hooked.events(1)
    assert hooked.stop()["rules"] == {"keywords": 1, "reloads": 0, "refused": 1}


def test_rules_that_are_broken_at_the_start_run_nothing(tmp_path: Path, start: Start) -> None:
    broken = tmp_path / "rules.toml"
    broken.write_text("[[rule]]\nkeywords = 'one'\n")
    process = start(HOOK, "--rules", str(broken), "--", "touch", str(tmp_path / "ran"))
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert f'{broken}:2: rule[1].keywords: found "one", expected a list of strings' in err
    assert not (tmp_path / "ran").exists()
