"""The picture of docs/how-to/judge.md has the numbers of the page, which running it checks."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_has_the_probabilities_that_the_page_prints():
    page = (DOCS / "how-to/judge.md").read_text("utf-8")
    printed = " ".join(re.findall(r"^print\(\*after.*# (.*)$", page, re.MULTILINE))
    described = re.search(
        r"<dc:description>(.*?)<", (DOCS / "images/judge.svg").read_text("utf-8")
    )[1]
    numbers = [[float(n) for n in re.findall(r"\d\.\d+", text)] for text in (printed, described)]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 12
