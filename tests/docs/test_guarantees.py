"""Each promise of the page of guarantees names tests, and they exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guarantees.md").read_text("utf-8")
TEST = re.compile(r"`(tests/[\w/.]+)::(\w+)`")
NAMED = sorted(set(TEST.findall(PAGE)))
TABLE = PAGE.partition("| promise |")[2].partition("\n\n")[0].splitlines()[2:]
ROWS = [line.strip("| ").split(" | ") for line in TABLE if not line.startswith("| **")]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_the_page_names_exists(path, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_promise_has_its_condition_and_its_tests(row):
    promise, condition, tests = row
    assert promise
    assert condition
    assert ", ".join(f"`{path}::{name}`" for path, name in TEST.findall(tests)) == tests


def test_the_page_names_tests():
    assert len(NAMED) > 100
    assert len(ROWS) > 40
