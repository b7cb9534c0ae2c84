# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: initdb, a server of processes, psql (COPY, errors, time-outs), pgbench."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hook.hooked import Behaviour, plain
from tests.hook.programs.ways import Command, Wrap, both, free_port, serving
from tests.waiting import wait_for

QUERIES = r"""
\set VERBOSITY terse
CREATE TABLE things (id int PRIMARY KEY, name text);
COPY things FROM STDIN;
1	one
2	two
3	\N
\.
INSERT INTO things SELECT i, repeat('name', i % 100) FROM generate_series(4, 20000) i;
COPY (SELECT * FROM things WHERE id < 300) TO STDOUT WITH CSV;
SELECT count(*), md5(string_agg(name, ',' ORDER BY id)) FROM things;
PREPARE one (int) AS SELECT name FROM things WHERE id = $1; EXECUTE one(2);
SELECT 1 / 0;
BEGIN; DELETE FROM things; ROLLBACK; SELECT count(*) FROM things;
SET statement_timeout = 50; SELECT pg_sleep(20); RESET statement_timeout;
LISTEN news; NOTIFY news; UNLISTEN news;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET force_parallel_mode = on; SELECT max(length(name)) FROM things;
\! echo from a child
COPY things TO PROGRAM 'wc -l >&2; exit 3';
"""


def programs() -> Path:
    """Where the newest PostgreSQL has its programs."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("PostgreSQL is not installed")
    return folders[-1]


def test_postgresql(readable: Path) -> None:
    bin_ = programs()
    # It refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    drop = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if user else []
    data, port = readable / "owned" / "data", free_port()

    def session(wrap: Wrap) -> list[Behaviour]:
        shutil.rmtree(data.parent, ignore_errors=True)
        data.parent.mkdir()
        if user:
            shutil.chown(data.parent, user)

        def run(name: str, *arguments: str, stdin: str = "") -> Behaviour:
            return plain(wrap([*drop, bin_ / name, *arguments]), readable, stdin=stdin)

        init = ["-D", str(data), "-A", "trust", "-U", "tare", "-N", "--locale=C", "-E", "UTF8"]
        created = run("initdb", *init)
        settings: Command = ["-D", data, "-k", data.parent, "-p", str(port), "-F"]
        here = ["-U", "tare", "-p", str(port)]
        tcp, unix = [*here, "-h", "127.0.0.1"], [*here, "-h", str(data.parent)]
        server = wrap([*drop, bin_ / "postgres", *settings, "-h", "127.0.0.1"])
        ready: Command = [bin_ / "pg_isready", "-q", *tcp]
        with serving(server, port):
            wait_for(lambda: plain(ready, readable).code == 0, "the database")
            database = "postgres"
            queries = run("psql", "-X", *tcp, database, stdin=QUERIES)
            transcript = [created, replace(queries, out=re.sub(r"PID \d+", "PID", queries.out))]
            transcript.append(run("psql", "-X", *unix, database, "-c", r"\d things"))
            transcript.append(run("psql", "-X", *unix, "absent"))
            # What it says of its work is how long that took.
            transcript.append(replace(run("pgbench", "-i", "-q", *tcp, database), err=""))
            bench = run("pgbench", "-c", "4", "-j", "2", "-t", "20", *tcp, database)
            counts = [line for line in bench.out.splitlines() if "number of" in line]
            transcript.append(replace(bench, out="\n".join(counts), err=""))
        return transcript

    created, queries, *_, bench = both(session, readable)
    assert created.code == 0, created.err
    assert "from a child\n" in queries.out
    assert "ERROR:  division by zero" in queries.err
    assert "ERROR:  canceling statement due to statement timeout" in queries.err
    assert "NOTICE" not in queries.err
    assert "Asynchronous notification" in queries.out
    assert "actually processed: 80/80" in bench.out
