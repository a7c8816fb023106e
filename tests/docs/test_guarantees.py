"""The page of guarantees names tests that exist, and says rightly where they run."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guarantees.md").read_text()
TEST = re.compile(r"`(tests/[\w/.]+)::(\w+)`")
NAMED = sorted(set(TEST.findall(PAGE)))
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if TEST.search(line)]
PLACES = {"chaos_full": "chaos-full"} | {mark: mark for mark in ("chaos", "fuzz", "scale", "slow")}


def places(path, name):
    """Return where a test runs: by its own markers or its module's; single rows may differ."""
    module = ast.parse((ROOT / path).read_text())
    (test,) = (node for node in module.body if getattr(node, "name", None) == name)
    of_module = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    marks = " ".join(ast.unparse(mark) for mark in (*test.decorator_list, *of_module))
    rows = re.compile(r"pytest\.param\([^()]*marks=([\w.]+)\)")
    of_rows = {place_by(mark) for mark in rows.findall(marks)}
    if of_rows and not re.search(r"parametrize\(([^,]+), \[(?!pytest\.param)", marks):
        return of_rows
    return of_rows | {place_by(rows.sub("", marks))}


def place_by(marks):
    found = (place for mark, place in PLACES.items() if re.search(rf"mark\.{mark}\b", marks))
    return next(found, "default")


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_the_page_names_exists(path, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 4], ids=lambda row: row[0])
def test_every_line_says_where_its_tests_run(row):
    *_, tests, where = row
    found = {place for named in TEST.findall(tests) for place in places(*named)}
    assert set(where.split("; ")) == found


def test_the_page_names_tests():
    assert len(NAMED) > 40
    assert len(ROWS) > 40
