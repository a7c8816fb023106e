""""""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.isotonic import IsotonicRegression

from online_svm.config.groups import WindowConfig
from online_svm.metrics.reliability import cumulative_statistics, reliability_bins, sorted_events
from online_svm.metrics.scores import squared_calibration_error
from online_svm.metrics.window_ring import SliceValues
from online_svm.metrics.windowed_validity import MAX_REPORTED_CLASSES, WindowedValidity
from online_svm.stream.prediction import ScoredRows

TWO = ("no", "yes")
FOUR = ("a", "b", "c", None)


def made(m, classes, n_slices=0, seed=0):
    """Return m rows of probabilities in twentieths, so that some are tied, and their labels."""
    rng = np.random.default_rng(seed)
    k = len(classes)
    point = rng.multinomial(20, np.full(k, 1 / k), size=m) / 20
    columns = np.array([rng.choice(k, p=0.7 * p + 0.3 / k) for p in point], dtype=np.int64)
    width = rng.random((m, k)) * 0.1
    lower, upper = np.maximum(point - width, 0), np.minimum(point + width, 1)
    codes = rng.integers(-1, 4, (m, n_slices))
    n = np.arange(m)
    return ScoredRows(
        n, classes, columns, point, lower, upper, point, point, n, 1, codes if n_slices else None
    )


def validity(window=50, **settings):
    return WindowedValidity(WindowConfig(metrics_window=window, **settings))


def scores_by_hand(point, columns, lower, upper):
    """The figures of `WindowScores` from the definitions, with scikit-learn's isotonic fit."""
    rows, k = np.arange(len(point)), point.shape[1]
    label = np.argmax(point, axis=1)
    said, hits = point[rows, label], label == columns
    brier = miscalibration = discrimination = uncertainty = 0.0
    for c in [1] if k == 2 else range(k):
        p, y = point[:, c], (columns == c).astype(float)
        fitted = IsotonicRegression().fit_transform(p, y)
        brier += np.mean((p - y) ** 2)
        miscalibration += np.mean((p - y) ** 2) - np.mean((fitted - y) ** 2)
        discrimination += np.mean((y.mean() - y) ** 2) - np.mean((fitted - y) ** 2)
        uncertainty += np.mean((y.mean() - y) ** 2)
    event = (point[:, 1], columns == 1) if k == 2 else (said, hits)
    spread = math.sqrt(np.sum(said * (1 - said)))
    root = None
    if len(point) > 1:
        root = math.sqrt(max(0.0, squared_calibration_error(*event)))
    return {
        "scored": len(point),
        "accuracy": hits.mean(),
        "lower": lower[rows, label].mean(),
        "probability": said.mean(),
        "upper": upper[rows, label].mean(),
        "z": (hits - said).sum() / spread if spread else None,
        "log_loss": -np.log(np.maximum(point[rows, columns], 1e-6)).mean(),
        "brier": brier,
        "miscalibration": miscalibration,
        "discrimination": discrimination,
        "uncertainty": uncertainty,
        "calibration_error": root,
    }


def near(found):
    return pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("classes", [TWO, FOUR])
@pytest.mark.parametrize("m", [1, 2, 30, 50, 173])
def test_the_figures_are_those_of_the_last_examples_and_of_no_other(classes, m):
    rows, window = made(m, classes), validity()
    window.update(rows)
    last = rows.part(max(0, m - 50), m)
    found = asdict(window.report().overall)
    assert found == near(scores_by_hand(last.point, last.columns, last.lower, last.upper))


@pytest.mark.parametrize("classes", [TWO, FOUR])
def test_bins_and_statistics_are_of_the_last_event(classes):
    rows, window = made(120, classes), validity(100)
    window.update(rows)
    last, report = rows.part(20, 120), window.report()
    label = np.argmax(last.point, axis=1)
    if classes == TWO:
        p, y = last.point[:, 1], last.columns == 1
    else:
        p, y = last.point[np.arange(100), label], label == last.columns
    assert report.reliability == reliability_bins(p, y)
    names = ("spiegelhalter_z", "kolmogorov_smirnov", "kuiper")
    statistics = dict(zip(names, cumulative_statistics(*sorted_events(p, y)), strict=True))
    assert report.descriptive is not None
    assert asdict(report.descriptive) == near(statistics)


@pytest.mark.parametrize("classes", [TWO, FOUR])
def test_the_intervals_are_those_of_the_means_of_the_window(classes):
    rows, window = made(120, classes), validity(100)
    window.update(rows)
    last, report = rows.part(20, 120), window.report()
    k, label = len(classes), np.argmax(last.point, axis=1)
    hits = int((label == last.columns).sum())
    found = binomtest(hits, 100).proportion_ci(0.95)
    assert report.bounds.accuracy == near((found.low, found.high))
    losses = -np.log(np.maximum(last.point[np.arange(100), last.columns], 1e-6))
    squares = ((last.point - np.eye(k)[last.columns]) ** 2).sum(axis=1) / (2 if k == 2 else 1)
    for ends, values in ((report.bounds.log_loss, losses), (report.bounds.brier, squares)):
        reach = 1.96 * values.std(ddof=1) / 10
        assert ends == near((max(0.0, values.mean() - reach), values.mean() + reach))


@pytest.mark.parametrize("classes", [TWO, FOUR])
def test_each_class_has_its_own_figures_against_the_rest(classes):
    rows, window = made(80, classes), validity(80)
    window.update(rows)
    label = np.argmax(rows.point, axis=1)
    report = window.report().classes
    assert [found.label for found in report] == list(classes)
    for c, found in enumerate(report):
        p, y = rows.point[:, c], rows.columns == c
        against = np.stack([1 - p, p], axis=1)
        parts = scores_by_hand(against, y.astype(int), against, against)
        chosen = label == c
        z = (y - p).sum() / math.sqrt(np.sum(p * (1 - p)))
        assert asdict(found) == near(
            {name: parts[name] for name in asdict(found) if name in parts}
            | {
                "label": classes[c], "examples": int(y.sum()), "frequency": y.mean(),
                "probability": p.mean(), "z": z, "predicted": int(chosen.sum()),
                "accuracy": y[chosen].mean(), "announced": p[chosen].mean(),
            }
        )  # fmt: skip


@pytest.mark.parametrize("classes", [TWO, FOUR])
def test_a_slice_has_the_figures_of_its_own_examples(classes):
    rows, window = made(90, classes, n_slices=2), validity(60, slices=("country", "age"))
    window.update(rows)
    values = SliceValues(2, max_values=3)
    values.codes([("DE", "old"), ("FR", "young"), ("IT", "other")])
    last = rows.part(30, 90)
    report = window.report(values).slices
    assert list(report) == ["country", "age"]
    for j, named in enumerate(report.values()):
        assert [one.value for one in named] == values.named(j)
        assert last.slices is not None
        for code, found in enumerate(named):
            inside = last.slices[:, j] == code
            taken = (last.point, last.columns, last.lower, last.upper)
            expected = scores_by_hand(*(array[inside] for array in taken))
            assert asdict(found.scores) == near(expected)


def test_the_weighted_figures_give_each_example_a_weight_that_shrinks_with_its_age():
    rows, window = made(400, FOUR), validity(50)
    window.update(rows)
    weights = (1 - 2 / 51) ** np.arange(400)[::-1]
    label, each = np.argmax(rows.point, axis=1), np.arange(400)
    truth = np.eye(4)[rows.columns]
    of = {
        "accuracy": label == rows.columns,
        "lower": rows.lower[each, label],
        "probability": rows.point[each, label],
        "upper": rows.upper[each, label],
        "log_loss": -np.log(np.maximum(rows.point[each, rows.columns], 1e-6)),
        "brier": ((rows.point - truth) ** 2).sum(axis=1),
    }
    expected = {name: np.average(value, weights=weights) for name, value in of.items()}
    assert asdict(window.report().weighted) == near(expected | {"weight": weights.sum()})


def test_a_class_seen_later_had_probability_zero_before():
    early, late = made(30, ("b", None), seed=1), made(30, ("a", "b", None), seed=2)
    window = validity(60)
    window.update(early)
    window.update(late)
    padded = np.hstack([np.zeros((30, 1)), early.point])
    point = np.vstack([padded, late.point])
    columns = np.concatenate([early.columns + 1, late.columns])
    expected = scores_by_hand(point, columns, point, point)
    found = asdict(window.report().overall)
    for name in ("brier", "miscalibration", "discrimination", "uncertainty"):
        expected[name] /= 2.0  # of two known classes
    for name in ("accuracy", "log_loss", "brier", "miscalibration", "calibration_error"):
        assert found[name] == near(expected[name])
    assert [one.label for one in window.report().classes] == ["a", "b", None]


def test_answers_that_knew_fewer_classes_may_follow_those_that_knew_more():
    more, fewer = made(20, ("a", "b", "c"), seed=1), made(20, ("a", "c"), seed=2)
    one, other = validity(20), validity(20)
    one.update(more)
    one.update(fewer)
    point, lower, upper = (
        np.insert(values, 1, 0.0, axis=1) for values in (fewer.point, fewer.lower, fewer.upper)
    )
    wide = replace(
        fewer, classes=more.classes, columns=fewer.columns * 2, point=point, lower=lower,
        upper=upper, venn_point=point,
    )  # fmt: skip
    other.update(wide)
    assert one.report().overall == other.report().overall
    assert one.report().classes == other.report().classes


def test_of_many_classes_those_farthest_off_are_named():
    classes = tuple(f"c{i:03d}" for i in range(100))
    rows, window = made(500, classes), validity(500)
    window.update(rows)
    named = window.report().classes
    labels = [found.label for found in named]
    assert len(named) == MAX_REPORTED_CLASSES
    assert labels == sorted(labels)
    share = np.bincount(rows.columns, minlength=100) - rows.point.sum(axis=0)
    z = np.abs(share / np.sqrt(np.sum(rows.point * (1 - rows.point), axis=0)))
    assert set(labels) == {classes[c] for c in np.argsort(-z)[:MAX_REPORTED_CLASSES]}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("truth", lambda a: a + 3), ("label", lambda a: a - 5), ("codes", lambda a: a + 21),
        ("point", lambda a: a[:1]), ("point", lambda a: a * np.nan),
        ("values", lambda a: a.astype(np.float32)), ("sums", lambda a: a[1:]),
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused(name, bad):
    config = WindowConfig(metrics_window=50, slices=("country",))
    window = WindowedValidity(config)
    window.update(made(30, TWO, n_slices=1))
    state = window.state()
    state.arrays[name] = bad(state.arrays[name])
    with pytest.raises(ValueError, match=name):
        WindowedValidity(config).restore(state)


@pytest.mark.parametrize(
    "stored", [None, [], [["a"], ["b"]], ["a"], [[1]], [["a", "a"]], [["a", "b", "c"]], [{"a": 0}]]
)
def test_damaged_values_of_slices_are_refused(stored):
    with pytest.raises(ValueError, match="slices"):
        SliceValues(1, max_values=2).restore({"named": stored})
