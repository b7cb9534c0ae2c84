# SPDX-License-Identifier: Apache-2.0
"""Reports of results that are hostile, incomplete or very large."""

import json
import re
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.report.page import Page, words, written
from tests.report.synthetic import Synthetic

from tare.errors import InputError
from tare.report import MARKDOWN, write
from tare.report.page.cards import VERDICTS
from tare.report.result.verdicts import this_tare

pytestmark = pytest.mark.usefixtures("one_layout")

HOSTILE = "<img src=x onerror=alert(1)>\"'&$x^2${{7*7}}\u202e\x07"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    made_up = Synthetic(
        name=HOSTILE,
        effects={"plain": 0.0, "<u>&'$x^2$": 0.1},
        environments=(HOSTILE,),
        hooked=("<u>&'$x^2$",),
        warnings=(HOSTILE, "| a | [b](c)"),
        reason=HOSTILE,
        log_tail=(HOSTILE, "</pre><script>alert(2)</script>", "\x1b[31mred"),
        requests=500,
        invalid=(2,),
    )
    html, page = written(made_up, tmp_path / "hostile")
    assert not [tag for tag, _ in page.tags if tag in ("img", "script", "u")]
    assert not [name for _, attributes in page.tags for name in attributes if name[:2] == "on"]
    assert "49" not in re.findall(r"\$x\^2\$(\d+)", html)
    assert not set("\u202e\x07\x1b") & set(html)
    markdown = (tmp_path / "hostile" / MARKDOWN).read_text()
    assert "<img" not in markdown.replace("\\<img", "")
    assert "\n- \\| a \\| \\[b\\](c)" in markdown


def change(folder: Path, name: str, changed: dict[str, Any]) -> None:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_without_costs(tmp_path: Path) -> None:
    _, page = written(Synthetic(hooked=(), requests=500), tmp_path / "result")
    assert "The layer's own time" not in page.text
    assert "Percentiles" in page.text


def test_without_valid_runs(tmp_path: Path) -> None:
    made_up = Synthetic(requests=200, blocks=2, invalid=range(1, 7))
    _, page = written(made_up, tmp_path / "result")
    assert {"hook", "twin", "invalid"} <= set(words(page))
    assert "".join(page.text).count(made_up.reason) >= 6


def test_without_anything_but_the_manifest(tmp_path: Path) -> None:
    made_up = Synthetic(requests=10, blocks=1, invalid=range(1, 4))
    folder = made_up.write(tmp_path / "result")
    for left in ("samples", "machine", "plan.toml"):
        path = folder / left
        path.unlink() if path.is_file() else path.rename(tmp_path / left)
    page = Page(write(folder).read_text(encoding="utf-8"))
    assert "invalid" in words(page)


def test_one_run_a_condition_is_inconclusive(tmp_path: Path) -> None:
    made_up = Synthetic(effects={"plain": 0, "hook": 0.1}, requests=500, blocks=1, invalid=())
    _, page = written(made_up, tmp_path / "result")
    assert "inconclusive" in words(page)


def test_an_experiment_cut_short(tmp_path: Path) -> None:
    """Two conditions of the last block are missing, and no run has come to its end."""
    folder = Synthetic(requests=500, invalid=()).write(tmp_path / "result")
    runs = json.loads((folder / "manifest.json").read_text())["runs"][:-2]
    unknown: dict[str, Any] = {key: {} for key in ("machine", "load", "placement")}
    change(folder, "manifest.json", {"finished": None, "runs": runs} | unknown)
    for run in (23, 24):
        for path in folder.glob(f"*/*/*/run={run}"):
            shutil.rmtree(path)
    page = Page(write(folder).read_text(encoding="utf-8"))
    assert "slower" not in words(page)
    assert "22\u00a0runs" in page.text
    text = "".join(page.text)
    assert "has no data and no recorded failure" in text
    assert "finish the experiment with 'tare run --resume'" in text


def test_runs_whose_samples_are_gone_are_not_valid(tmp_path: Path) -> None:
    folder = Synthetic(requests=500, invalid=()).write(tmp_path / "result")
    for run in (3, 4, 9, 10):
        next(folder.glob(f"samples/*/*/run={run}/*.parquet")).unlink()
    page = Page(write(folder).read_text(encoding="utf-8"))
    text = "".join(page.text)
    failed = re.findall(r"Run (\d+), block \d, \w+: its requests are not in the result", text)
    assert failed == ["3", "4", "9", "10"]
    assert "All runs are valid." not in (folder / MARKDOWN).read_text()


def test_costs_of_invalid_runs_do_not_count(tmp_path: Path) -> None:
    """Four of eight hooked runs failed after their costs were written."""
    folder = Synthetic(requests=500, invalid=()).write(tmp_path / "result")
    whole = micro_macro(folder)
    (folder / "verdicts.json").unlink()
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    hooked = [run for run in runs if run["condition"] == "hook"]
    for run in hooked[:4]:
        run |= {"valid": False, "reason": "crashed"}
    change(folder, "manifest.json", {"runs": runs})
    half = micro_macro(folder)
    assert [row[0] for row in half] == [row[0] for row in whole] == ["p50", "mean"]
    for before, after in zip(whole, half, strict=True):
        assert float(before[1]) == pytest.approx(float(after[1]), rel=0.1)


def test_there_is_no_share_of_what_may_be_nothing(tmp_path: Path) -> None:
    """Of a hook that costs nothing, and of one that costs 30 %."""
    for effect, expected in ((0.0, False), (0.3, True)):
        folder = tmp_path / str(effect)
        made_up = Synthetic(effects={"plain": 0.0, "hook": effect}, requests=500, invalid=())
        write(made_up.write(folder))
        _, _, table = (folder / MARKDOWN).read_text().partition("## Inside and outside the layer")
        row = re.search(r"^\| hook \| p50 \|.*\| (.*) \|$", table, re.MULTILINE)
        assert row is not None
        assert row[1].endswith("%") == expected
        assert (row[1] == "interval includes zero") != expected


def micro_macro(folder: Path) -> list[tuple[str, str]]:
    """Metric and own time a request in ns, of each row of the Markdown table."""
    write(folder)
    _, _, table = (folder / MARKDOWN).read_text().partition("## Inside and outside the layer")
    return re.findall(r"^\| hook \| (\w+) \| (\d+) ns \|", table, re.MULTILINE)


def test_spans_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    _, page = written(Synthetic(requests=400, invalid=(), spans={"pay": 0.5}), folder)
    assert words(page).count("pay") == words(page).count("request") == 2
    rows = re.findall(r"^\| (.*?) \| \*?\*?\w", (folder / MARKDOWN).read_text(), re.MULTILINE)
    first = rows[rows.index("hook, pay") : rows.index("hook, pay") + 4]
    assert sorted(first) == ["hook, pay", "hook, request", "twin, pay", "twin, request"]
    # Figures of requests show whole ones, not both.
    labels = {attributes.get("aria-label") or "" for _, attributes in page.tags}
    (lag,) = (label for label in labels if label.startswith("Round trips in order"))
    shown = re.findall(r"(\d+) requests", lag)
    assert len(shown) == 3
    assert max(map(int, shown)) <= 400


def test_every_verdict_has_its_word_and_icon(tmp_path: Path) -> None:
    effects = {"plain": 0.0} | dict.fromkeys(VERDICTS, 0.0)
    folder = Synthetic(effects=effects, requests=20, blocks=1, invalid=()).write(
        tmp_path / "result"
    )
    every = [comparison(name, name) for name in VERDICTS]
    (folder / "verdicts.json").write_text(json.dumps(judged(every)))
    html = write(folder).read_text(encoding="utf-8")
    cards = html[html.index('<ul class="cards"') : html.index("</header>")]
    found = re.findall(
        r'class="verdict ([a-z-]+)"><svg.*?<path d="(.*?)".*?</svg>([a-z-]+)<', cards
    )
    assert [(style, word) for style, _, word in found] == [(word, word) for word in VERDICTS]
    assert len({icon for _, icon, _ in found}) == len(VERDICTS)


def judged(comparisons: list[dict[str, Any]]) -> dict[str, Any]:
    return {"judged_by": this_tare(), "comparisons": comparisons, "warnings": []}


def comparison(condition: str, verdict: str) -> dict[str, Any]:
    return {
        "environment": "host",
        "baseline": "plain",
        "condition": condition,
        "span": "request",
        "metric": "p50",
        "verdict": verdict,
        "effect": {"relative": 0.01, "absolute_ns": 600.0},
        "interval": {"low": -0.01, "high": 0.02, "level": 0.95},
        "p": 0.4,
        "p_adjusted": 0.4,
        "runs": {"baseline": 8, "condition": 8},
        "mde": 0.02,
        "runs_needed": None,
        "reason": "p50 differs by +1.0 % (-1.0 % to +2.0 %), less than the budget, over 8 blocks.",
    }


@pytest.mark.parametrize("conditions", [3, 8, 40])
def test_first_screen_stays_short_with_many_conditions(tmp_path: Path, conditions: int) -> None:
    folder = Synthetic(requests=20, blocks=1, invalid=()).write(tmp_path / "result")
    names = [f"condition number {number}" for number in range(conditions)]
    every = [comparison(name, "unchanged") for name in names]
    every[-1]["verdict"] = "slower"
    (folder / "verdicts.json").write_text(json.dumps(judged(every)))
    declared = [{"name": name, "layers": []} for name in ("plain", *names)]
    change(folder, "manifest.json", {"conditions": declared})
    shown = words(Page(write(folder).read_text(encoding="utf-8")))
    assert len(shown) <= 120
    assert "slower" in shown


def test_long_names_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    long = [f"nginx-in-a-container-with-the-hook-of-version-{number}" for number in (1, 2)]
    made_up = Synthetic(effects={"plain": 0.0, long[0]: 0.1, long[1]: 0.1}, requests=40, blocks=1)
    _, page = written(made_up, tmp_path / "result")
    shown = [text for text in page.text if re.fullmatch(r"nginx-\S*…\S*", text)]
    assert {text[-3:] for text in shown} == {"n-1", "n-2"}


def test_environments_are_told_apart(tmp_path: Path) -> None:
    made_up = Synthetic(environments=("host", "vm"), requests=500, invalid=())
    _, page = written(made_up, tmp_path / "result")
    assert {"host", "vm"} <= set(words(page))
    assert page.text.count("vm") >= 5  # a card each, and a heading over each kind of figure


def test_what_is_no_result_is_said_in_one_line(tmp_path: Path) -> None:
    for folder in (tmp_path / "absent", tmp_path):
        with pytest.raises(InputError, match="tare run") as error:
            write(folder)
        assert "\n" not in str(error.value)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json"):
        write(tmp_path)


def test_verdicts_that_are_none_are_said_in_one_line(tmp_path: Path) -> None:
    folder = Synthetic(requests=10, blocks=1).write(tmp_path / "result")
    entry = {"condition": "hook", "metric": "p50", "effect": {}, "interval": "x", "runs": {}}
    strange = [
        json.dumps({"comparisons": [content], "warnings": []}) for content in ("a", {}, entry, None)
    ]
    for content in ("", "[]", "{}", "null", *strange):
        (folder / "verdicts.json").write_text(content)
        with pytest.raises(InputError, match=r"verdicts\.json: .* judged again") as error:
            write(folder)
        assert "\n" not in str(error.value)


def test_a_damaged_table_is_said_in_one_line(tmp_path: Path) -> None:
    folder = Synthetic(requests=10, blocks=1).write(tmp_path / "result")
    damaged = next((folder / "costs").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(InputError, match=r"costs.parquet'; remove a damaged file") as error:
        write(folder)
    assert "\n" not in str(error.value)


def test_a_report_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    folder = Synthetic(requests=10, blocks=1).write(tmp_path / "result")
    before = write(folder).read_text(encoding="utf-8")
    files = {path.name for path in folder.iterdir()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
        with pytest.raises(OSError, match="File too large"):
            write(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (folder / "report.html").read_text(encoding="utf-8") == before
    assert {path.name for path in folder.iterdir()} == files
