"""Write the three pictures of docs/concepts.md as SVG.

python scripts/make_concept_pictures.py [--check]

Two are drawings. The third is computed: reports of a predictor whose labels change their relation
to the features at example 2,000.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from online_svm import OnlinePredictor, PredictorConfig
from online_svm.metrics.reliability import reliability_bins
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import ReliabilityBin, ValidityReport

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHANGE, STOP = 2000, 2240
"""Example at which the labels change, and number of examples."""

START, EVERY = 1800, 10
"""First example of the plot of wealth, and examples between two reports."""

BLUE, RED, GREY, BLACK = "#1c6fb5", "#c0392b", "#8a97a5", "#222"

Point = tuple[float, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures; with --check return 1 if a stored one differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args(arguments).check
    is_equal = True
    for name, draw in PICTURES.items():
        path, svg = IMAGES / f"concept-{name}.svg", draw()
        if check:
            is_equal &= path.exists() and path.read_text("utf-8") == svg
        else:
            path.write_text(svg, "utf-8")
    return int(not is_equal)


# Shapes


def picture(width: int, height: int, shapes: Iterable[str]) -> str:
    """Return an SVG on white, with the head of an arrow as `#head`."""
    head = f'<path d="M0 0L8 4L0 8z" fill="{BLACK}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13">\n'
        f'<defs><marker id="head" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto">{head}</marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def text(at: Point, words: str, anchor: str = "middle", fill: str = BLACK) -> str:
    """Return a line of text whose baseline begins, ends or has its middle at a point."""
    x, y = at
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>'


def box(x: float, y: float, width: float, title: str, *lines: str, fill: str = "#eef3f8") -> str:
    """Return a box with a bold title and lines of text."""
    height, middle = 30 + 17 * len(lines), x + width / 2
    bold = text((middle, y + 20), title).replace("<text", '<text font-weight="bold"')
    below = [text((middle, y + 37 + 17 * i), line) for i, line in enumerate(lines)]
    frame = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"'
    return "\n".join([f'{frame} fill="{fill}" stroke="{GREY}"/>', bold, *below])


def line(points: Iterable[Point], colour: str = BLACK, more: str = "") -> str:
    """Return a line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" {more}/>'


def arrow(*points: Point) -> str:
    """Return a line that ends with the head of an arrow."""
    return line(points, BLACK, 'marker-end="url(#head)"')


def dot(at: Point, colour: str) -> str:
    """Return a filled circle."""
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4" fill="{colour}"/>'


# The drawings


def life() -> str:
    """Draw the life of one example."""
    return picture(
        480,
        430,
        [
            box(10, 10, 200, "1  it comes", "features, perhaps an id"),
            arrow((210, 33), (266, 33)),
            box(270, 10, 200, "2  it is answered", "label, probability, interval"),
            arrow((370, 57), (370, 96)),
            box(270, 100, 200, "3  it waits", "at most one horizon", fill="#fff"),
            arrow((270, 123), (214, 123)),
            box(10, 100, 200, "4  its label comes", "with it, later, or never"),
            arrow((110, 147), (110, 176), (240, 176), (240, 191)),
            box(100, 195, 280, "5  its answer is scored", "figures, monitors, weights of experts"),
            arrow((160, 242), (120, 281)),
            arrow((320, 242), (360, 281)),
            box(10, 285, 220, "6  four in five train", "at the next refit", fill="#e8f5e9"),
            box(250, 285, 220, "6  one in five calibrates", "at once", fill="#fdf3e1"),
            arrow((120, 332), (190, 371)),
            arrow((360, 332), (290, 371)),
            box(100, 375, 280, "7  it leaves", "when 2,000 later ones are learned", fill="#fff"),
        ],
    )


def probability() -> str:
    """Draw how a probability, its interval and the Venn pair arise."""
    return picture(
        520,
        530,
        [
            box(10, 10, 220, "members", "support vector machine", "boosted trees",
                "logistic regression", "nearest examples", "recent stacks"),
            arrow((230, 67), (276, 67)),
            box(280, 35, 210, "committee", "a stack weighs its members"),
            arrow((385, 82), (385, 146)),
            box(10, 150, 220, "simple experts", "base rate", "two logistic regressions"),
            arrow((230, 182), (276, 182)),
            box(280, 150, 210, "experts", "averaged by how", "well they did"),
            arrow((385, 214), (385, 246)),
            box(280, 250, 210, "last labels", "correct it, if that helps"),
            arrow((385, 297), (385, 326)),
            box(280, 330, 210, "answer", "probability", "lower, upper", fill="#e8f5e9"),
            box(10, 330, 220, "last 500 labelled answers", "how often such a",
                "probability was right"),
            arrow((230, 362), (276, 362)),
            box(10, 440, 220, "calibration set", "no member trained on it", fill="#fdf3e1"),
            arrow((230, 467), (276, 467)),
            box(280, 440, 210, "venn", "one probability for each", "possible label: exact",
                fill="#fdf3e1"),
            arrow((490, 58), (508, 58), (508, 472), (494, 472)),
        ],
    )  # fmt: skip


# The computed picture


class Simulation(NamedTuple):
    """A feed whose labels change at example `CHANGE`."""

    reports: list[ValidityReport]  # while it learns
    before: list[ReliabilityBin]  # of its answers before the change
    after: list[ReliabilityBin]  # after it, of the same model without labels


def simulated() -> Simulation:
    """Answer a stream whose labels depend on the features in another way from `CHANGE` on."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(STOP, 2))
    odds = np.exp(1.6 * X[:, 0] + 0.8 * X[:, 1])
    odds[CHANGE:] = np.exp(-1.6 * X[CHANGE:, 0])
    is_yes = rng.random(STOP) < odds / (1 + odds)
    y = np.where(is_yes, "yes", "no").tolist()
    config = PredictorConfig(classes=("no", "yes"), metrics_every=EVERY)
    predictor = OnlinePredictor(config)
    made = predictor.step_many(X[:CHANGE], y[:CHANGE])
    without_labels = OnlinePredictor(config)
    without_labels.restore(predictor.snapshot())
    frozen = without_labels.step_many(X[CHANGE:], [None] * (STOP - CHANGE))
    made += predictor.step_many(X[CHANGE:], y[CHANGE:])
    reports = [report for report in made if isinstance(report, ValidityReport)]
    before = next(report for report in reports if report.n == CHANGE)
    assert before.windowed is not None
    answers = np.concatenate([one.point for one in frozen if isinstance(one, PredictionBlock)])
    after = reliability_bins(answers[:, 1], is_yes[CHANGE:])
    return Simulation(reports, list(before.windowed.reliability), after)


def axes(top: float, width: float, title: str, below: str) -> list[str]:
    """Return the frame of a plot, 240 high from `top` + 40, with its captions."""
    frame = f'<rect x="60" y="{top + 40:g}" width="{width:g}" height="240" fill="none"'
    captions = [text((60, top + 28), title, "start"), text((60 + width / 2, top + 318), below)]
    return [f'{frame} stroke="{GREY}"/>', *captions]


def reliability(bins: Iterable[ReliabilityBin], colour: str) -> list[str]:
    """Return the dots of a reliability diagram, each with its band."""

    def place(p: float, q: float) -> Point:
        return 60 + 240 * p, 280 - 240 * q

    return [
        shape
        for one in bins
        for shape in (
            line([place(one.probability, one.lower), place(one.probability, one.upper)], colour),
            dot(place(one.probability, one.frequency), colour),
        )
    ]


def wealth(made: Iterable[ValidityReport], kind: str) -> tuple[list[Point], float]:
    """Return the logarithms of a monitor's wealth by examples up to its alarm; the threshold."""
    found: list[Point] = []
    for report in made:
        assert report.monitors is not None
        test = next(
            t for t in report.monitors.tests if (t["kind"], t["scope"]) == (kind, "overall")
        )
        if test["alarms"]:
            break
        found.append((report.n, test["log_wealth"]))
    return found, test["threshold"]


def monitors() -> str:
    """Plot the reliability before and after the change, and the wealth of a monitor."""
    feed = simulated()

    def place(n: float, log_wealth: float) -> Point:
        return 60 + 400 * (n - START) / (STOP - START), 580 - 24 * log_wealth

    shapes = [
        *axes(0, 240, "how often it was yes", "announced probability of yes"),
        line([(60, 280), (300, 40)], GREY, 'stroke-dasharray="4"'),
        *(text((54, 284 - 240 * q), f"{q:g}", "end") for q in (0, 0.5, 1)),
        *(text((60 + 240 * p, 297), f"{p:g}") for p in (0, 0.5, 1)),
        *axes(330, 400, "wealth of a bet against the feed (log)", "learned examples"),
        *(text((place(n, 0)[0], 627), f"{n:,}") for n in (1800, 1900, 2000, 2100, 2200)),
        line([place(CHANGE, -1.25), place(CHANGE, 8.75)], GREY, 'stroke-dasharray="4"'),
        text((place(CHANGE, 0)[0] - 6, 420), "the labels change", "end"),
    ]
    named = ((feed.before, BLUE, "before"), (feed.after, RED, "after, if it did not learn"))
    for i, (bins, colour, words) in enumerate(named):
        shapes += [*reliability(bins, colour), text((92, 62 + 18 * i), words, "start", colour)]
    points, threshold = wealth(feed.reports, "exchangeability")
    shapes += [
        line([place(START, threshold), place(STOP, threshold)], BLACK, 'stroke-dasharray="2"'),
        text((66, place(0, threshold)[1] + 16), "alarm", "start"),
        line([place(n, value) for n, value in points if n >= START], RED, 'stroke-width="2"'),
        dot(place(points[-1][0] + EVERY, threshold), RED),
    ]
    return picture(480, 660, shapes)


PICTURES: dict[str, Callable[[], str]] = {
    "life": life,
    "probability": probability,
    "monitors": monitors,
}

if __name__ == "__main__":
    raise SystemExit(main())
