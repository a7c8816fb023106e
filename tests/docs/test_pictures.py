"""The pictures of the demonstration in the README show what the present code computes."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.validity_report import ValidityReport
from scripts import make_concept_pictures
from workers.demo.run import METRICS_EVERY, PLANS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOW = (
    "the picture is old: online-svm demo --picture docs/images/curves.png, and for the live view "
    "scripts/picture_of_terminal.py while it runs"
)
# Three decimals are shown, and other versions of the libraries may round the last one otherwise.
UNIT = 0.00101


def computed(plan):
    """Return the reports of a feed of the demonstration, in process."""
    data = plan.examples()
    classes = tuple(sorted({row.y for row in data}))
    predictor = OnlinePredictor(PredictorConfig(classes=classes, metrics_every=METRICS_EVERY))
    X = np.array([row.x for row in data], dtype=np.float64)
    made = predictor.step_many(X, [row.y for row in data])
    return [report for report in made if isinstance(report, ValidityReport)]


@pytest.fixture(scope="module")
def reports():
    return {plan.feed: computed(plan) for plan in PLANS}


def losses(report):
    methods = (report.headline, report.venn, *report.maps.values())
    return [method.log_loss for method in methods]


def shown_numbers(report):
    """Return the numbers of the table, line by line."""
    table = []
    for method in (report.headline, report.venn):
        own = method.predicted
        table += [own.accuracy, own.lower, own.upper, method.log_loss, method.brier]
    for method in report.maps.values():
        chosen = method.predicted
        table += [chosen.accuracy, chosen.probability, method.log_loss, method.brier]
    return table


def numbers(text):
    return [float(found) for found in re.findall(r"\b\d\.\d{3}\b", text)]


def lines_of(svg):
    """Return the lines of text of a picture of a terminal."""
    lines = {}
    for y, text in re.findall(
        r'<text class="[^"]*-r\d+"[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', svg
    ):
        lines[y] = lines.get(y, "") + html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    return list(lines.values())


def panels(lines):
    """Yield how many were answered and the numbers of the table, a feed at a time."""
    heads = [i for i, line in enumerate(lines) if " answered " in line]
    for i in heads:
        answered = re.search(r"([\d,]+) of [\d,]+ answered", lines[i])
        yield int(answered[1].replace(",", "")), numbers(" ".join(lines[i + 2 : i + 7]))


def test_the_curves_of_the_readme_are_those_of_the_present_code(reports):
    described = Image.open(IMAGES / "curves.png").text["Description"].splitlines()
    assert [line.split(":")[0] for line in described] == list(reports)
    for line, made in zip(described, reports.values(), strict=True):
        assert numbers(line) == pytest.approx(losses(made[-1]), abs=UNIT), HOW


def test_the_live_view_of_the_readme_is_that_of_the_present_code(reports):
    shown = list(panels(lines_of((IMAGES / "demo.svg").read_text(encoding="utf-8"))))
    assert len(shown) == len(reports)
    for (answered, table), made in zip(shown, reports.values(), strict=True):
        # What is answered is counted a moment before the reports are read.
        last = max(r.n for r in made if r.n <= answered + METRICS_EVERY)
        assert len(table) in (5, 22), "the headline alone, or every method"
        near = [
            shown_numbers(r)[: len(table)] for r in made if last - 2 * METRICS_EVERY <= r.n <= last
        ]
        assert any(np.allclose(table, expected, rtol=0, atol=UNIT) for expected in near), HOW


def test_the_pictures_of_the_concepts_are_those_of_the_present_code():
    assert make_concept_pictures.main(["--check"]) == 0, "python scripts/make_concept_pictures.py"
    for name in make_concept_pictures.PICTURES:
        assert (IMAGES / f"concept-{name}.svg").stat().st_size < 20_000


def test_the_readme_begins_with_a_small_picture_of_the_page():
    readme = (IMAGES.parents[1] / "README.md").read_text("utf-8")
    first = re.search(r"^!\[[^\]]+\]\(docs/images/([\w.-]+)\)$", readme, re.MULTILINE)
    assert (readme.split("\n\n")[2], first[1]) == (first[0], "page.png")
    for path in (IMAGES / "page.png", IMAGES / "feeds.png"):
        assert path.stat().st_size < 300_000
        with Image.open(path) as picture:
            assert picture.width == 1280
