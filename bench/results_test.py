# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from bench import results

PAGE = """\
# A page

<!-- begin one -->
## One

### 2 CPUs AMD EPYC
Linux 6.1; 2026-01-01; commit abc; `make one`

Missed its bar.

<!-- end one -->

Text after it.
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    return page


def renew(page: Path, body: str, model: str, name: str = "one") -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "machine", lambda: model)
        results.renew(name, name.title(), "make one", body, page)
    return page.read_text()


def test_a_run_keeps_what_other_cpu_models_measured(page: Path) -> None:
    text = renew(page, "Met its bar.", "4 CPUs Intel Xeon")
    kept, added = text.split("### 4 CPUs Intel Xeon\n")
    assert kept == PAGE.split("<!-- end", maxsplit=1)[0]
    assert "; `make one`\n\nMet its bar.\n\n<!-- end one -->\n\nText after it.\n" in added


def test_a_run_replaces_what_its_own_cpu_model_measured(page: Path) -> None:
    renew(page, "Other.", "4 CPUs Intel Xeon")
    text = renew(page, "Met its bar.", "2 CPUs AMD EPYC")
    assert "Missed its bar." not in text
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# A page",
        "## One",
        "### 2 CPUs AMD EPYC",
        "### 4 CPUs Intel Xeon",
    ]
    assert renew(page, "Met its bar.", "2 CPUs AMD EPYC") == text


def test_a_new_section_is_added_at_the_end(page: Path) -> None:
    text = renew(page, "Two.", "2 CPUs AMD EPYC", "two")
    assert text.startswith(f"{PAGE}\n<!-- begin two -->\n## Two\n\n### 2 CPUs AMD EPYC\n")
    assert text.endswith("\n\nTwo.\n\n<!-- end two -->\n")


def test_a_page_that_does_not_exist_is_begun(tmp_path: Path) -> None:
    assert renew(tmp_path / "new.md", "One.", "2 CPUs AMD EPYC").startswith(results.HEAD)


def test_a_body_with_a_heading_is_refused(page: Path) -> None:
    with pytest.raises(ValueError, match="heading"):
        renew(page, "### 8 CPUs\n", "2 CPUs AMD EPYC")
    assert page.read_text() == PAGE


def test_every_section_of_the_pages_has_its_machines() -> None:
    for file in (results.RESULTS, results.ROOT / "docs/internals/verdict-proof.md"):
        _, *sections = file.read_text().split("<!-- begin ")
        for section in sections:
            name = section.split(" -->")[0]
            title, *models = section.split(f"<!-- end {name} -->")[0].split("\n### ")
            assert title.count("\n") == 2, f"{name} has results without a machine"
            assert models
            assert len({model.split("\n")[0] for model in models}) == len(models), name
