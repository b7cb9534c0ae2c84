# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tare.lab.load.tare_load import capacity_command, load_command, url
from tare.plan import OwnLoad, TareLoad, TcpLoad

LAUNCH: Any = SimpleNamespace(
    environment=SimpleNamespace(address="127.0.0.1"), door=6379, plan_folder=Path("/plans")
)
GET = TcpLoad(type="tcp", send=r"GET key\r\n", reply="resp", users=50, pipeline=4)


@pytest.mark.parametrize(
    ("load", "where"),
    [
        (TareLoad(path="/a?b"), "http://127.0.0.1:6379/a?b"),
        (TareLoad(https=True), "https://127.0.0.1:6379/"),
        (GET, "tcp://127.0.0.1:6379"),
    ],
)
def test_a_service_has_one_address_for_all_protocols(load: OwnLoad, where: str) -> None:
    assert url(load, LAUNCH) == where


def test_a_load_over_tcp_names_addresses_and_the_end_of_replies(tmp_path: Path) -> None:
    words = load_command(GET, 1000.0, {"one": LAUNCH, "two": LAUNCH}, tmp_path)
    assert words[1] == "tcp"
    targets = [word for before, word in pairwise(words) if before == "--target"]
    assert targets == ["one=127.0.0.1:6379", "two=127.0.0.1:6379"]
    assert words[-3:] == [r"--send=GET key\r\n", "--reply=resp", "--pipeline=4"]
    assert [word for word in words if word.startswith("--reply-")] == []


def test_a_file_is_relative_to_the_plan_and_a_text_may_begin_with_a_dash(tmp_path: Path) -> None:
    load = TcpLoad(type="tcp", send_file="get", reply_until="--\\n", reply_limit=10)
    words = capacity_command(load, LAUNCH, tmp_path)
    assert words[1:3] == ["tcp", "127.0.0.1:6379"]
    assert "--capacity" in words
    assert {"--send-file=/plans/get", "--reply-until=--\\n", "--reply-limit=10"} <= {*words}
