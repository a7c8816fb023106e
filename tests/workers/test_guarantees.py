"""The page of guarantees names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(
    set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", (ROOT / "docs/guarantees.md").read_text()))
)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_the_page_names_exists(path, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_the_page_names_tests():
    assert len(NAMED) > 40
