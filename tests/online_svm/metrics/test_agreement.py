"""Whether announced probabilities and labels agree: figures beside sums by numpy over the rows."""

import numpy as np
import pytest

from online_svm.metrics.agreement import ASKED_ANSWERS, ASKED_CHUNKS, CHUNK_LABELS, ENDS, Agreement

TOLERANCE = 0.02


def made(n, k=2, seed=0):
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.ones(k), n)
    truth = (rng.random((n, 1)) > point.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return point, truth


def agreement_of(point, truth, weights=None, blocks=()):
    names = "abcde"[: point.shape[1]]
    agreement = Agreement(TOLERANCE)
    for rows in np.split(np.arange(len(truth)), blocks):
        of = None if weights is None else weights[rows]
        agreement.add(point[rows], truth[rows], names, weights=of)
    return agreement


def edges(p, error):
    odds = p / (1.0 - p)
    up, down = (odds * f / (1.0 + odds * f) for f in (1.5, 1.0 / 1.5))
    least = max(0.002, 1.5 * np.sqrt(p * (1.0 - p) * error))
    return p - max(min(TOLERANCE, p - down), least), p + max(min(TOLERANCE, up - p), least)


def evidence(p, y, w, error):
    """Return n KL of the frequency from the nearest edge, of rows with weights."""
    m, f, n = np.average(p, weights=w), np.average(y, weights=w), w.sum() ** 2 / (w * w).sum()
    low, high = edges(m, error)
    if low <= f <= high:
        return 0.0
    q = high if f > high else low
    parts = [f * np.log(f / q) if f else 0.0, (1 - f) * np.log((1 - f) / (1 - q)) if f < 1 else 0.0]
    return n * sum(parts)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_figures_are_those_of_the_rows(k, weighted):
    point, truth = made(2_450, k)
    truth[: len(truth) // 3] = 0  # so that something is off
    w = np.where(point[:, 0] > 0.5, 2.0, 5.0) if weighted else np.ones(len(truth))
    found = agreement_of(point, truth, w).report()
    for span, rows in ((found.since, slice(None)), (found.last, slice(-1_050, None))):
        top = point[rows].argmax(axis=1)
        hit, sure = top == truth[rows], point[rows].max(axis=1)
        p, y = (point[rows][:, 1], truth[rows] == 1) if k == 2 else (sure, hit)
        u, error = w[rows], 1.0 / (np.arange(2_450)[rows] + 1.0).mean()
        assert span.labels == len(u)
        assert span.accuracy == pytest.approx(np.average(hit, weights=u))
        assert span.announced == pytest.approx(np.average(sure, weights=u))
        at = np.searchsorted(ENDS, p, side="right") - 1
        in_range = [np.flatnonzero(at == j) for j in range(len(ENDS) - 1) if (at == j).any()]
        worst = max(in_range, key=lambda rows: evidence(p[rows], y[rows], u[rows], error))
        assert span.range.evidence == pytest.approx(evidence(p[worst], y[worst], u[worst], error))
        assert span.range.lower <= p[worst].min() <= p[worst].max() <= span.range.upper
        # The debiased squared error of the ranges, and what is certain of it.
        square = noise = 0.0
        for j in in_range:
            excess, v = (u[j] @ (y[j] - p[j])), (u[j] ** 2 @ (p[j] * (1 - p[j])))
            square += (excess**2 - v) / u[j].sum() / u.sum()
            noise += 2 * (v / u[j].sum()) ** 2 + 4 * max(excess**2 - v, 0) * v / u[j].sum() ** 2
        certain = square - 3.3 * np.sqrt(noise) / u.sum()
        assert span.apart == pytest.approx(np.sqrt(max(0.0, certain)))


def test_the_gain_is_over_the_running_base_rate():
    point, truth = made(600)
    seen, gains = np.zeros(2), []
    for p, label in zip(point, truth, strict=True):
        base = (seen[label] + 0.5) / (seen.sum() + 1.0)
        gains.append(np.log(np.clip(p[label], 1e-4, 1 - 1e-4) / base))
        seen[label] += 1.0
    found = agreement_of(point, truth).report().since
    assert found.gain == pytest.approx(np.mean(gains[100:]))
    assert found.gain_error == pytest.approx(np.std(gains[100:]) / np.sqrt(500))
    shares = np.bincount(truth) / 600
    assert found.entropy == pytest.approx(-(shares * np.log(shares)).sum())


def test_cuts_and_restarts_change_no_bit():
    point, truth = made(3_210, 3)
    whole = agreement_of(point, truth)
    first = agreement_of(point[:1_777], truth[:1_777], blocks=[1, 7, 99, 100, 1_111])
    first.count(point[:777], truth[:777])
    cut = Agreement(TOLERANCE)
    cut.restore(first.state())
    cut.add(point[1_777:], truth[1_777:], "abc")
    whole.count(point[:777], truth[:777])
    assert cut.report() == whole.report()
    for name, array in whole.state()[1].items():
        assert np.array_equal(array, cut.state()[1][name]), name


def test_after_a_restart_only_later_rows_count():
    point, truth = made(2_000)
    agreement = agreement_of(point[:900], truth[:900])
    agreement.restart(900)
    assert agreement.report().since is None
    agreement.add(point[900:], truth[900:], "ab")
    later = agreement_of(point[900:], truth[900:]).report()
    found = agreement.report()
    assert (found.start, found.since.labels, later.start) == (900, 1_100, 0)
    assert found.since.accuracy == later.since.accuracy
    assert found.since.gain != later.since.gain  # base rates are of all labels of the feed


def test_a_class_that_comes_later_and_missing_scores_are_no_trouble():
    agreement = Agreement(TOLERANCE)
    point, truth = made(500)
    agreement.add(point, truth, ("b", None))
    wide, labels = made(500, 3)
    wide[7] = np.nan
    agreement.add(wide, labels, ("a", "b", None))
    found = agreement.report()
    assert found.since.labels == 999
    assert found.event is None or found.event == "b"


def test_ranges_without_labels_are_named_of_the_last_answers():
    point, truth = made(ASKED_ANSWERS * (ASKED_CHUNKS + 1))
    columns = np.where(point[:, 1] > 0.9, -1, truth)
    agreement = Agreement(TOLERANCE)
    agreement.count(point, columns)
    found = agreement.report()
    newest = point[ASKED_ANSWERS:, 1]
    assert found.answers == len(newest)
    shares = [np.mean((newest >= a) & (newest < b)) for a, b in ((0.97, 0.99), (0.99, 1.1))]
    assert max(shares) < 0.02  # of the answers: too few to be named
    assert [(one.lower, one.labelled) for one in found.unlabelled] == [(0.9, 0)]
    assert found.unlabelled[0].answers == np.count_nonzero((newest >= 0.9) & (newest < 0.97))


def test_the_last_labels_are_a_thousand_and_those_under_way():
    point, truth = made(1_234)
    found = agreement_of(point, truth).report()
    assert found.last.labels == 10 * CHUNK_LABELS + 34
    few = agreement_of(point[:99], truth[:99]).report()
    assert few.last is None
    assert few.since is None
