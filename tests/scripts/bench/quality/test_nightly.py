"""Methods beside nightly trees answer as estimators do; the page has the stored figures."""

import re
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
from scipy.special import expit

from online_svm import OnlineCalibrator, OnlineClassifier
from scripts.bench.quality import memory, nightly

ROOT = Path(__file__).parents[4]
STORED = ROOT / "tests/data/nightly.jsonl"
PAGE = ROOT / "docs/how-to/nightly.md"


def made(n=600):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=n), "kind": rng.choice(["a", "b", "c"], n)})
    return X, (rng.random(n) < expit(2.0 * X["size"] + (X.kind == "a"))).to_numpy().astype(np.int64)


def test_without_a_score_it_answers_as_the_classifier():
    X, y = made()
    p, _ = nightly.answers(X, y, 0, {})
    np.testing.assert_array_equal(p, OnlineClassifier().progressive_proba(X, y, [0, 1])[:, 1])


def test_with_scores_alone_it_answers_as_the_calibrator():
    X, y = made()
    odds = X["size"] / 3.0
    scores = pd.DataFrame({"score": odds, "score_version": ["1"] * 300 + ["2"] * 300})
    p, _ = nightly.answers(pd.concat((scores, X), axis=1), y, 0, {"scores": "probability"})
    model = OnlineCalibrator()
    halves = [
        model.progressive_proba(expit(odds[rows]), y[rows], [0, 1], version)[:, 1]
        for rows, version in ((slice(0, 300), 1), (slice(300, 600), 2))
    ]
    np.testing.assert_allclose(p, np.concatenate(halves), atol=1e-9)


def test_trees_learn_no_label_that_has_not_come():
    X, y = made(6_500)
    p = memory.nightly(X, y, late=2_000)
    changed = np.where(np.arange(len(y)) < 4_000, y, 1 - y)
    np.testing.assert_array_equal(p[4_000:], memory.nightly(X, changed, late=2_000)[4_000:])
    assert (p[:4_000] == 0.5).all()
    assert np.ptp(p[4_000:, 1]) > 0.1


def stored():
    """Return the figures of each method, by stream and delay, as the page prints them."""
    found = {}
    for row in map(orjson.loads, STORED.read_bytes().splitlines()):
        cells = found.setdefault((row["stream"], row["late"]), {})
        cells[row["method"]] = [
            f"{row[name]:.{digits}f}".lstrip("0")
            for name, digits in (("log_loss", 4), ("accuracy", 3), ("time", 1))
        ]
    return found


def test_the_page_has_the_stored_figures():
    found, shown = stored(), 0
    for line in PAGE.read_text("utf-8").splitlines():
        if match := re.match(r"\| (\w+), (at once|2,000 late) \| (.*) \|$", line):
            name, delay, cells = match.groups()
            wanted = found[name, 0 if delay == "at once" else 2_000]
            methods = ["trees", "trees, isotonic", *nightly.OURS]
            figures = [", ".join(wanted[method][:2]) for method in methods]
            times = [wanted[method][2] for method in nightly.OURS]
            best = min(figures)
            bold = [f"**{cell}**" if cell == best else cell for cell in figures]
            assert cells == " | ".join([*bold, ", ".join(times)])
            shown += 1
    assert shown == len(found) == len(nightly.STREAMS) * len(nightly.LATE)
