"""`--set score`: its methods beside independent routes, its figures, and the stored page."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from online_svm import OnlineCalibrator
from scripts import make_own_score_page
from scripts.bench.quality import own_score
from scripts.bench.quality.score_methods import (
    FIT_EVERY,
    LOOP,
    METHODS,
    OURS,
    RAW,
    calibeaten,
    feed,
    in_batches,
    online_platt,
)


def drawn(n=700):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, n)
    return p, (rng.random(n) < p**2).astype(np.int64)


def platt(p, happened):
    """Platt's sigmoid with his targets, by a general optimiser."""
    hits = happened.sum()
    targets = np.where(happened == 1, (hits + 1) / (hits + 2), 1 / (len(p) - hits + 2))

    def loss(weights):
        s = weights[0] * logit(p) + weights[1]
        return np.sum(np.logaddexp(0, s) - targets * s)

    slope, intercept = minimize(loss, [0.5, 0.0], method="Nelder-Mead", tol=1e-10).x
    return lambda asked: expit(slope * logit(asked) + intercept)


@pytest.mark.parametrize("late", [0, 250])
def test_rolling_platt_is_the_optimum_on_labels_that_came(late):
    p, codes = drawn()
    found = METHODS["Platt, last 500"](p, codes, late)
    for n in (300, 650):
        used = slice(max(0, n - late - 500), n - late)
        wanted = platt(p[used], codes[used])(p[n : n + FIT_EVERY])
        np.testing.assert_allclose(found[n : n + FIT_EVERY], wanted, atol=1e-5)
    first = late + FIT_EVERY
    np.testing.assert_array_equal(found[:first], p[:first])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("late", [0, 60])
def test_no_method_sees_a_label_before_it_comes(name, late):
    p, codes = drawn(500)
    hidden = codes.copy()
    hidden[400 - late :] = 1 - hidden[400 - late :]
    answers = [METHODS[name](p, one, late)[:401] for one in (codes, hidden)]
    size = 400 if name == LOOP and late == 0 else 401
    np.testing.assert_array_equal(answers[0][:size], answers[1][:size])


def test_a_feed_without_delay_answers_as_the_calibrator():
    p, codes = drawn()
    wanted = OnlineCalibrator().progressive_proba(p, codes, [0, 1])[:, 1]
    np.testing.assert_array_equal(feed(p, codes, 0)[:, 0], wanted)
    np.testing.assert_array_equal(in_batches(p, codes, 0), wanted)


def test_delayed_online_methods_learn_what_came():
    p, codes = drawn(200)
    scores, late = logit(p), 30
    found = online_platt(p, codes, late)
    np.testing.assert_array_equal(found[: late + 1], expit(scores[: late + 1]))
    # The frequency, so far, in the same tenth; its middle counts as one answer.
    tenths = np.floor(10 * p).astype(int)
    for n in (50, 199):
        same = codes[: n - late][tenths[: n - late] == tenths[n]]
        wanted = (same.sum() + (tenths[n] + 0.5) / 10) / (len(same) + 1)
        assert calibeaten(p, codes, late)[n] == pytest.approx(wanted)


def test_coverage_counts_bins_whose_frequency_is_inside():
    p, codes = drawn(3000)
    truth = p**2
    wide = own_score.covered_by_range(truth, truth - 0.1, truth + 0.1, codes)
    none = own_score.covered_by_range(truth, truth + 0.2, truth + 0.3, codes)
    assert sum(n for n, _, _ in wide) == 3000
    assert [held for _, held, _ in wide] == [n for n, _, _ in wide]
    assert not any(held for _, held, _ in none)


def test_a_small_run_prints_means_and_goals_and_continues(tmp_path, monkeypatch):
    X = np.random.default_rng(1).normal(size=(700, 2))
    codes = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
    monkeypatch.setattr(own_score, "stream", lambda *_: (X, codes))
    monkeypatch.setattr(own_score, "MODELS", {"logistic": own_score.MODELS["logistic"]})
    monkeypatch.setattr(own_score, "LATE", (0, 60))
    own_score.scored.cache_clear()
    found = list(own_score.run("elec2", results=tmp_path / "kept"))
    plain = [row for one in found for row in one.plain()]
    assert json.loads(json.dumps(plain)) is not None
    rows = {(one["late"], one["method"]): one for one in found[0].rows}
    assert rows.keys() == {(late, name) for late in (0, 60) for name in METHODS}
    p, truth = own_score.scored("elec2", "logistic", own_score.EXAMPLES, None)
    hit = np.where(truth == 1, p, 1 - p)[own_score.WARM_UP :]
    wanted = -np.log(np.maximum(hit, 1e-6)).mean()
    assert rows[0, RAW]["log_loss"] == pytest.approx(wanted)
    assert rows[0, RAW]["coverage"] is None
    assert rows[60, OURS]["coverage"]
    assert [len(one.checks) for one in found if one.checks] == [2, 2, 1]
    assert list(own_score.run("elec2", results=tmp_path / "kept")) == found


def test_online_platt_scaling_reaches_the_best_slope_and_intercept():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    known = 1.0 / (1.0 + np.exp(1.0 - 0.5 * values))
    happened = rng.random(len(values)) < known
    said = online_platt(expit(values), happened)
    np.testing.assert_allclose(said[-100:], known[-100:], atol=0.03)
    beaten = calibeaten(said, happened)
    ends = [happened[:-1][np.floor(10.0 * said[:-1]) == b] for b in range(10)]
    last = int(10.0 * said[-1])
    midpoint = (last + 0.5) / 10.0
    assert beaten[-1] == pytest.approx((midpoint + ends[last].sum()) / (1 + len(ends[last])))


def test_the_page_has_the_stored_figures(tmp_path):
    assert make_own_score_page.main(["--check"]) == 0
    lines = make_own_score_page.STORED.read_text().splitlines()
    cells = [*map(json.loads, lines)]
    other = tmp_path / "other.jsonl"
    for cell in cells:
        cell["measured"][0]["log_loss"] += 9.0 * (cell["method"] == OURS)
    other.write_text("\n".join(map(json.dumps, cells)))
    ours = [cell for cell in cells if cell["method"] == OURS and not cell["late"]]
    mean = f"{np.mean([cell['measured'][0]['log_loss'] for cell in ours]):.4f}"
    assert mean.startswith("9.")
    for shown in (make_own_score_page.render, make_own_score_page.tables):
        assert mean in shown(other)
        assert mean not in shown()
