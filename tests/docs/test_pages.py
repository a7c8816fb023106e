"""Every block of every page is typed, in its order, or has a mark that says why it is not."""

import csv
import random
import re
from pathlib import Path

import pytest
from typed_pages import SHELL, SHOWN, Reader, blocks, need, parse

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): blocks(path.read_text("utf-8"))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
TYPED = [name for name, page in PAGES.items() if any(block.is_run for block in page)]


def applications(folder):
    """Write the tables that pages push: 600 applications, the outcome of the last 40 not known."""
    made, names = random.Random(0), ["number", "applied", "country", "purpose", "amount", "outcome"]
    rows = []
    for i in range(600):
        purpose, country = made.choice(["car", "flat", "trip"]), made.choice(["DE", "FR", ""])
        risk = 1.5 * (purpose == "trip") - (country == "DE") + made.gauss(0, 0.5)
        applied = f"2024-{1 + i // 120:02}-{1 + i % 28:02} 09:{i % 60:02}"
        amount = f"{made.lognormvariate(8, 1):.2f}"
        rows.append(
            [f"A{i:04}", applied, country, purpose, amount, ["paid", "default"][risk > 0.5]]
        )
    tables = {
        "loans.csv": (names, [[*row[:5], row[5] if i < 560 else ""] for i, row in enumerate(rows)]),
        "new.csv": (names[:5], [row[:5] for row in rows[-20:]]),
        "outcomes.csv": (["number", "outcome"], [[row[0], row[5]] for row in rows[560:]]),
    }
    for name, (head, body) in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as table:
            csv.writer(table).writerows([head, *body])


@pytest.mark.slow
@pytest.mark.timeout(400)  # a dozen commands a page, each of which imports the library
@pytest.mark.parametrize("name", TYPED)
def test_what_a_page_says_to_type_can_be_typed(name, tmp_path, monkeypatch):
    need(PAGES[name])
    with Reader(tmp_path) as reader:
        monkeypatch.chdir(tmp_path / "here")
        applications(tmp_path / "here")
        for block in PAGES[name]:
            if block.is_run:
                reader.type(block)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_typed_or_parses_or_says_why_not(name):
    for block in PAGES[name]:
        if block.mark == "run by":
            assert (ROOT / block.reason).exists()
        elif block.language in ("toml", "json"):
            assert parse(block)
        elif not block.mark:
            assert block.language in SHELL | SHOWN | {"python"}, block.text
    text = (ROOT / name).read_text("utf-8")
    assert len(PAGES[name]) == len(re.findall(r"^```\w*$", text, re.MULTILINE)) / 2


def test_most_pages_have_something_to_type():
    assert len(TYPED) > 5
