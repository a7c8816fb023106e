"""Each line of the tables in docs/features.md is what is done."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.stream.cells import BOOLEAN, NOTHING, NUMBER, TEXT, TIME, cell, sorts

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text("utf-8")
ROWS = [[part.strip() for part in line.strip("|").split("|")] for line in PAGE.splitlines()
        if line.startswith("| `")]  # fmt: skip
VALUES = [row for row in ROWS if len(row) == 4]
COLUMNS = [row for row in ROWS if len(row) == 2 and row[0].startswith("`[")]
SORTS = {"number": NUMBER, "text": TEXT, "time": TIME, "boolean": BOOLEAN, "nothing": NOTHING}
NUMBERS, TIMES, CATEGORIES = (
    [1.0] * 20, ["2024-01-01"] * 20, ["a", "b"] * 10,
)  # fmt: skip


def parsed(text):
    return json.loads(text.strip("`"))


def among(value, others):
    """Return T, and the row of a value, in a column of others."""
    T = np.array([[cell(other)] for other in others])
    return T, np.array([[cell(value)]])


def is_gap(value, others):
    T, row = among(value, others)
    return bool(FeatureEncoder.fit(T).imputed(row)[0])


@pytest.mark.parametrize("row", VALUES, ids=lambda row: row[0])
def test_a_value_is_what_the_page_says(row):
    shown, is_a, in_numbers, in_categories = row
    value = parsed(shown)
    found = cell(value)
    # A text that stands for a gap is a text where it is a category.
    stands_for_gap = is_a == "text" and sorts(np.array([found]))[0] == NOTHING
    assert stands_for_gap or sorts(np.array([found]))[0] == SORTS[is_a]
    assert np.isnan(found) == (is_a == "nothing")
    gap = in_numbers.startswith("a gap")
    assert is_gap(value, TIMES if is_a == "time" else NUMBERS) == gap
    if not gap and is_a == "number":
        assert found == float(in_numbers)
    assert is_gap(value, CATEGORIES) == (in_categories == "a gap")
    for other in re.findall(r"the same as `([^`]*)`", in_categories):
        assert cell(parsed(other)) == found


@pytest.mark.parametrize("row", COLUMNS, ids=lambda row: row[0])
def test_a_column_is_of_the_kind_that_the_page_says(row):
    T = np.array([[cell(value)] for value in parsed(row[0])])
    told = FeatureEncoder.fit(T).reports()
    assert (told[0].kind if told else "not known") == row[1]


def test_the_tables_are_there():
    assert (len(VALUES), len(COLUMNS)) == (14, 8)
