"""Two discovered classes have the Brier score of two declared ones, in every figure of a report."""

import numpy as np
import pytest
from predictor_answers import blocks, predictor_of, reports, restored

from online_svm.metrics.cumulative import CumulativeValidity, OpenAnswers, possible_terms
from online_svm.metrics.scores import brier

N = 240


def rows(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = np.minimum(rng.integers(0, n_classes, N), np.arange(N) // 80 + 1)
    return rng.normal(size=(N, 2)) + codes[:, None], [f"c{code}" for code in codes]


def last_report(classes, n_classes, **settings):
    """Return the last report of a stream, and its probabilities and true columns by hand."""
    X, labels = rows(n_classes)
    predictor = predictor_of(classes=classes, metrics_window=N, **settings)
    found = predictor.step_many(X[:100], labels[:100])
    found += restored(predictor).step_many(X[100:], labels[100:])
    ok = blocks(found, "ok")
    known = [f"c{code}" for code in range(n_classes)]
    place = {label: k for k, label in enumerate([*known, None])}
    point, truth = np.zeros((sum(map(len, ok)), n_classes + 1)), []
    done = 0
    for block in ok:
        columns = [place[label] for label in block.classes]
        point[done : done + len(block), columns] = block.point
        done += len(block)
        for _ in range(len(block)):
            label = labels[N - len(point) + len(truth)]
            truth.append(place[label if label in block.classes else None])
    return reports(found)[-1], point, np.array(truth)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_score_of_discovered_classes_is_halved_if_they_are_two(n_classes):
    report, point, truth = last_report(None, n_classes)
    expected = brier(point, truth, n_classes)
    squares = ((point - np.eye(n_classes + 1)[truth]) ** 2).sum(axis=1)
    assert expected == pytest.approx(squares.mean() / (2 if n_classes == 2 else 1))
    assert report.headline.brier == pytest.approx(expected, rel=1e-12)
    assert report.windowed.overall.brier == pytest.approx(expected, rel=1e-9)
    weights = (1.0 - 2.0 / (N + 1.0)) ** np.arange(len(point))[::-1]
    weighted = np.average(squares, weights=weights) / (2 if n_classes == 2 else 1)
    assert report.windowed.weighted.brier == pytest.approx(weighted, rel=1e-9)
    overall = report.windowed.overall
    parts = overall.miscalibration - overall.discrimination + overall.uncertainty
    assert overall.brier == pytest.approx(parts, rel=1e-9)


def test_the_bounds_of_open_answers_are_of_the_same_score():
    answer = blocks(predictor_of().step_many(*rows(2)), "ok")[-1]
    open_answers = OpenAnswers()
    open_answers.add(possible_terms(answer).sum(axis=0))
    scored = CumulativeValidity(intervals=True).report(2)
    found = open_answers.brier(0, scored, 2)
    by_outcome = np.array(
        [
            [brier(row[None, :], [code], 2) for code in range(len(answer.classes))]
            for row in answer.point
        ]
    )
    expected = (by_outcome * answer.point).sum(axis=1)
    assert found.lower == pytest.approx(by_outcome.min(axis=1).mean(), abs=1e-8)
    assert found.estimate == pytest.approx(expected.mean(), abs=1e-8)
    assert found.upper == pytest.approx(by_outcome.max(axis=1).mean(), abs=1e-8)
