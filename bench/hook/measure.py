# SPDX-License-Identifier: Apache-2.0
"""The hook beside plain calls and beside the design of the published hook."""

import json
import pydoc
import random
import string
import subprocess
import time
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import Case, publish
from bench.nginx import Nginx
from bench.results import ROOT
from bench.turns import Turner, alternate

from tare.native import native

HERE = Path(__file__).parent
HOOK, LOAD = native("bin", "tare-hook"), native("bin", "tare-load")
RULES = ROOT / "plans" / "rules" / "keywords-200.toml"
MODULES = ("argparse", "asyncio", "collections", "decimal", "email", "logging", "subprocess")
SEARCHED = 64 << 10
SERVICE_CPU, LOAD_CPU = 0, 1
USERS = 16
THREADS, MATCHES, SECONDS = 8, 1_060_000, 5
PLAIN, HOOKED, NAIVE = "plain", "tare hook", "dlsym a call, strstr a keyword"


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    turns, repetitions, servers = (60, 5, 10) if quick else (300, 10, 30)
    with TemporaryDirectory() as name:
        bench = Bench(Path(name))
        cases = [
            *bench.reads("read-64-socket", "socket", turns),
            *bench.reads("read-64-file", "file", turns),
            bench.write(turns),
            bench.search(turns),
            *bench.nginx(servers),
            bench.events(repetitions),
        ]
    about = (
        f"{turns} turns of a few ms in random order; nginx: {servers} fresh servers of each"
        f" kind side by side on one CPU, {USERS} connections from the other. Ratios and differences"
        " are medians over the turns."
    )
    command = f"{'BENCH=quick ' if quick else ''}make bench-hook"
    return publish("hook", cases, command, about)


class Bench:
    """What was compiled and written for the cases, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = self.compiled("calls.c")
        self.matches = self.compiled("matches.c", "-pthread")
        self.naive = self.compiled("naive.c", "-shared", "-fPIC", "-ldl")
        self.text = folder / "text.html"
        self.text.write_text("".join(pydoc.html.page(m, pydoc.html.docmodule(__import__(m)))
                                     for m in MODULES))  # fmt: skip

    def compiled(self, source: str, *options: str) -> Path:
        """What the C compiler makes of a source of this folder."""
        target = self.folder / source.removesuffix(".c")
        subprocess.run(["cc", "-O2", HERE / source, "-o", target, *options], check=True)
        return target

    def keywords(self, rules: Path) -> Path:
        """The keywords of a rules file, one a line, for the naive hook."""
        words = [
            word if isinstance(word, str) else word["text"]
            for rule in tomllib.loads(rules.read_text())["rule"]
            for word in rule["keywords"]
        ]
        file = self.folder / f"{rules.stem}.txt"
        file.write_text("\n".join(words) + "\n")
        return file

    def naive_variables(self, rules: Path) -> dict[str, str]:
        """What puts the naive hook into a program."""
        return {"LD_PRELOAD": str(self.naive), "KEYWORDS": str(self.keywords(rules))}

    def timed(
        self, kind: str, size: int, turns: int, pieces: Mapping[str, int]
    ) -> dict[str, list[float]]:
        """Nanoseconds a call of each subject, with so many `pieces` a turn: the slow naive hook
        makes fewer calls."""
        rules = self.random_rules("out" if kind == "sent" else "in")
        calls = [str(self.calls), kind, str(size), str(self.text)]
        hooked = [str(HOOK), "--rules", str(rules), "--", *calls]
        commands: dict[str, tuple[list[str], dict[str, str]]] = {
            PLAIN: (calls, {}),
            HOOKED: (hooked, {}),
            NAIVE: (calls, self.naive_variables(rules)),
        }
        with ExitStack() as stack:
            subjects = {
                name: (Turner(*commands[name], SERVICE_CPU, stack), count)
                for name, count in pieces.items()
            }
            return alternate(subjects, turns, seed=size)

    def reads(self, name: str, kind: str, turns: int) -> list[Case]:
        """A read of 64 B under the hook and under the naive one, against the plain call."""
        values = self.timed(kind, 64, turns, {PLAIN: 16_000, HOOKED: 16_000, NAIVE: 1_000})
        return [
            Case(name, HOOKED, PLAIN, "ns", values[HOOKED], values[PLAIN]),
            Case(f"{name}-naive", NAIVE, PLAIN, "ns", values[NAIVE], values[PLAIN]),
        ]

    def write(self, turns: int) -> Case:
        """A write of 64 B, which the kernel copies before it is searched."""
        values = self.timed("sent", 64, turns, {PLAIN: 4_000, HOOKED: 4_000})
        note = "rules for what goes out, decision 0019"
        return Case("write-64-socket", HOOKED, PLAIN, "ns", values[HOOKED], values[PLAIN], note)

    def search(self, turns: int) -> Case:
        """What searching adds to reads of 64 KiB of HTML, as a rate."""
        values = self.timed("socket", SEARCHED, turns, {PLAIN: 96, HOOKED: 96, NAIVE: 4})
        rates = {
            name: [
                SEARCHED / (hooked - plain)
                for hooked, plain in zip(values[name], values[PLAIN], strict=True)
            ]
            for name in (HOOKED, NAIVE)
        }
        note = "what reads of 64 KiB from a socket take more than plain ones, the search alone"
        return Case("search-64k", HOOKED, NAIVE, "GB/s", rates[HOOKED], rates[NAIVE], note)

    def random_rules(self, direction: str) -> Path:
        """200 random keywords of 5 to 12 letters."""
        chance = random.Random(200)
        words = [
            "".join(chance.choices(string.ascii_lowercase, k=chance.randint(5, 12)))
            for _ in range(200)
        ]
        file = self.folder / "random.toml"
        file.write_text(f'[[rule]]\ndirection = "{direction}"\nkeywords = {json.dumps(words)}\n')
        return file

    def events(self, repetitions: int) -> Case:
        """Matches a second that became lines of a file, of threads that make a few more."""
        rules, file = self.folder / "needle.toml", self.folder / "events.jsonl"
        rules.write_text('[[rule]]\nkeywords = ["needle"]\n')
        hook = [str(HOOK), "--rules", str(rules), "--events", str(file), "--json", "--"]
        program = [str(self.matches), str(THREADS), str(MATCHES), str(SECONDS)]
        rates, lost, made = [], 0, 0
        for _ in range(repetitions):
            begun = time.monotonic()
            done = subprocess.run([*hook, *program], check=True, capture_output=True, text=True)
            # Until tare-hook has written what was in the rings at the end, too.
            seconds = time.monotonic() - begun
            keywords = int(done.stdout)
            events = json.loads(done.stderr.splitlines()[-1])["events"]
            if events["written"] + events["lost"] != keywords:
                raise SystemExit(f"{keywords} matches, and of events {events}")
            rates.append(events["written"] / seconds)
            lost += events["lost"]
            made += keywords
            file.unlink()
        note = (
            f"{THREADS} threads on all CPUs, in reads of 64 matches; of {made} matches {lost} were"
            " lost, each of them counted"
        )
        return Case("events-1m", HOOKED, "", "matches/s", rates, note=note)

    def nginx(self, repetitions: int) -> list[Case]:
        """Requests a second of one page of 700 B, three servers in turns."""
        wraps = {
            PLAIN: ([], {}),
            HOOKED: ([str(HOOK), "--rules", str(RULES), "--"], {}),
            NAIVE: ([], self.naive_variables(RULES)),
        }
        rates: dict[str, list[float]] = {name: [] for name in wraps}
        for seed in range(repetitions):
            with ExitStack() as stack:
                targets = []
                for number, (wrap, variables) in enumerate(wraps.values()):
                    folder = self.folder / f"nginx-{seed}-{number}"
                    server = Nginx(folder, wrap, variables, SERVICE_CPU)
                    stack.enter_context(server)
                    targets += ["--target", f"{number}={server.url}"]
                command = [str(LOAD), "http", *targets, "--users", str(USERS), "--json"]
                command += ["--warmup", "300ms", "--duration", "2s", "--seed", str(seed)]
                command += ["--cpu", str(LOAD_CPU)]
                printed = json.loads(subprocess.check_output(command))["targets"]
            for name, target in zip(wraps, printed, strict=True):
                rates[name].append(target["rate"])
        note = (
            "the hook takes 0.2 to 0.5 µs of a request; the bar is out of reach where a request"
            " takes 10 µs"
        )
        return [
            Case("nginx-700", HOOKED, PLAIN, "requests/s", rates[HOOKED], rates[PLAIN], note),
            Case("nginx-700-naive", NAIVE, PLAIN, "requests/s", rates[NAIVE], rates[PLAIN]),
        ]
