import math

import numpy as np
import pytest
from scipy.stats import norm

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.cumulative import (
    NO_INTERVAL,
    CumulativeValidity,
    MethodAnswers,
    paper_p_value,
)
from online_svm.metrics.scores import accuracy, brier, clipped, log_loss
from online_svm.metrics.sequential.comparison import reach_of


def stream(m, n_classes, seed=0):
    """Probabilities with an interval around them, two choices of label, and the truth."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.3), size=m)
    truth = rng.integers(-1, n_classes, size=m)
    return {
        "probabilities": p, "label": p.argmax(axis=1),
        "svm_label": rng.integers(0, n_classes, size=m), "truth": truth, "lower": p * 0.9,
        "upper": p * 0.9 + 0.1,
    }  # fmt: skip


def run(columns, size, intervals=True):
    validity = CumulativeValidity(intervals=intervals)
    for start in range(0, len(columns["truth"]), size):
        part = {name: values[start : start + size].copy() for name, values in columns.items()}
        truth = part.pop("truth")
        validity.update(MethodAnswers(**{"lower": NO_INTERVAL, "upper": NO_INTERVAL} | part), truth)
    return validity


def by_hand(values, guess, high):
    """Return the confidence sequence of the mean of values in [0, high], by its definition."""
    before = np.concatenate(([0.0], np.cumsum(values)[:-1]))
    centres = (before + guess) / np.arange(1, len(values) + 1)
    squares = ((values - centres) ** 2).sum() / high**2
    reach = high * reach_of(squares, 0.025) / len(values)
    return max(0.0, values.mean() - reach), min(high, values.mean() + reach)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_intervals_are_those_of_their_definition(n_classes):
    columns = stream(600, n_classes)
    labelled = columns["truth"] >= 0
    truth, p = columns["truth"][labelled], columns["probabilities"][labelled]
    hits = (columns["label"][labelled] == truth).astype(float)
    losses = -np.log(np.maximum(p[np.arange(len(p)), truth], 1e-6))
    squares = ((p - np.eye(n_classes)[truth]) ** 2).sum(axis=1)
    factor = 0.5 if n_classes == 2 else 1.0
    for size in (64, 7):
        found = run(columns, size).bounds(n_classes, 1)
        assert found.accuracy == pytest.approx(by_hand(hits, 0.5, 1.0), rel=1e-9)
        assert found.log_loss == pytest.approx(by_hand(losses, 0.5, -math.log(1e-6)), rel=1e-9)
        brier_ends = [factor * end for end in by_hand(squares, 0.5, 2.0)]
        assert found.brier == pytest.approx(brier_ends, rel=1e-9)
        wider = run(columns, size).bounds(n_classes, 10)  # a label may stand for ten examples
        assert wider.accuracy[0] < found.accuracy[0] < found.accuracy[1] < wider.accuracy[1]


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_means_are_those_of_whole_columns(n_classes):
    columns = stream(500, n_classes)
    report = run(columns, 64).report(n_classes)
    labelled = columns["truth"] >= 0
    truth, p = columns["truth"][labelled], columns["probabilities"][labelled]
    for name, got in (("label", report.predicted), ("svm_label", report.svm)):
        chosen = columns[name][labelled]
        rows = np.arange(len(truth))
        assert got.accuracy == accuracy(chosen, truth)
        assert got.probability == pytest.approx(p[rows, chosen].mean(), rel=1e-12)
        for bound in ("lower", "upper"):
            expected = columns[bound][labelled][rows, chosen].mean()
            assert getattr(got, bound) == pytest.approx(expected, rel=1e-12)
        hits, q = (chosen == truth).sum(), p[rows, chosen]
        z = (hits - q.sum()) / math.sqrt((q * (1 - q)).sum())
        assert got.paper_p == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
    assert report.log_loss == pytest.approx(log_loss(p, truth), rel=1e-12)
    assert report.brier == pytest.approx(brier(p, truth), rel=1e-12)
    assert report.clipped == clipped(p, truth)
    assert report.clipped > 0


def test_before_the_first_label_every_mean_is_none():
    columns = stream(20, 3)
    columns["truth"][:] = columns["label"][:] = -1
    validity = run(columns, 5)
    report = validity.report(3)
    assert (validity.scored, report.clipped) == (0, 0)
    assert (report.log_loss, report.brier) == (None, None)
    for part in (report.predicted, report.svm):
        assert (part.accuracy, part.lower, part.probability, part.upper) == (None,) * 4
        assert part.paper_p is None


def test_a_method_without_intervals_reports_none_for_them():
    columns = stream(50, 3)
    del columns["lower"], columns["upper"]
    report = run(columns, 10, intervals=False).report(3)
    assert report.predicted.lower is None is report.svm.upper
    assert report.predicted.probability is not None


def test_the_number_of_classes_may_grow_between_blocks():
    validity = CumulativeValidity(intervals=False)
    for p, *indices in (([0.5, 0.5, 0.0], 0, 0, 2), ([0.25] * 4, 3, 1, 3)):
        label, own, truth = np.array(indices)[:, None]
        validity.update(MethodAnswers(np.array([p]), NO_INTERVAL, NO_INTERVAL, label, own), truth)
    report = validity.report(4)
    assert report.predicted.accuracy == 0.5
    assert report.clipped == 1
    assert report.brier == pytest.approx((0.25 + 0.25 + 1 + 3 * 0.0625 + 0.5625) / 2)


def test_a_state_of_another_shape_is_refused():
    state = CumulativeValidity(intervals=True).state()
    state["sums"] = state["sums"][:-1]
    with pytest.raises(InvalidSnapshot, match="sums"):
        CumulativeValidity(intervals=False).restore(state)


def test_the_papers_p_value_is_the_two_sided_normal_tail():
    assert paper_p_value(60, 50.0, 25.0) == pytest.approx(2 * norm.sf(2.0), rel=1e-12)
    assert paper_p_value(40, 50.0, 25.0) == paper_p_value(60, 50.0, 25.0)
    # The far tail does not vanish: the papers compare values below 1e-50.
    assert paper_p_value(155, 210.0, 6.6) == pytest.approx(2 * norm.sf(55 / math.sqrt(6.6)))
    assert 0 < paper_p_value(155, 210.0, 6.6) < 1e-90
    # Without variance it tells kept from broken promises.
    assert paper_p_value(7, 7.0, 0.0) == 1.0
    assert paper_p_value(6, 7.0, 0.0) == 0.0
