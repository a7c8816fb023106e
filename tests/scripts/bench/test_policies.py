"""`bench policies`: its streams, what it counts, and going on where it was cut off."""

import math

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from scripts.bench.policies import (
    DRAWN,
    ChangingStream,
    PolicyLosses,
    StreamAnswers,
    answered,
    result,
    run,
    scored,
    stream,
)


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_is_a_draw_whose_change_is_in_the_middle(name):
    one, again, other = (stream(name, seed, 1000) for seed in (1, 1, 2))
    assert (len(one.X), len(one.codes), one.change) == (1000, 1000, 500)
    assert set(one.codes.tolist()) == {0, 1}
    assert (one.X.tolist(), one.codes.tolist()) == (again.X.tolist(), again.codes.tolist())
    assert one.X.tolist() != other.X.tolist()


@pytest.mark.parametrize("name", ["abrupt", "exchange"])
def test_what_was_right_before_an_abrupt_change_is_worse_after_it(name):
    one = stream(name, 0, 4000)
    model = KNeighborsClassifier(25).fit(one.X[:1500], one.codes[:1500])
    right = model.predict(one.X) == one.codes
    assert right[1500:2000].mean() > right[2000:].mean()
    if name == "exchange":
        assert right[2000:].mean() < 0.2


def test_a_gradual_change_begins_and_ends_as_the_abrupt_one():
    sudden, slow = stream("abrupt", 0, 2000), stream("gradual", 0, 2000)
    same = (sudden.X == slow.X).all(axis=1)
    assert same[:1000].all()
    assert same[1400:].all()
    assert 0.35 < same[1000:1400].mean() < 0.65
    assert same[1000:1100].mean() < same[1300:1400].mean()


def test_two_categories_swap_their_rates():
    one = stream("swap", 0, 10_000)
    halves = [(one.X[part, 0], one.codes[part]) for part in (slice(5000), slice(5000, None))]
    rates = [codes[category == which].mean() for category, codes in halves for which in (0, 1)]
    assert rates == pytest.approx([0.2, 0.6, 0.6, 0.2], abs=0.03)


def test_a_rare_class_stays_as_rare_and_as_far_away_when_it_moves():
    one = stream("rare", 0, 10_000)
    for half, axis in ((slice(0, 5000), 0), (slice(5000, None), 1)):
        X, is_rare = one.X[half], one.codes[half] == 1
        assert is_rare.mean() == pytest.approx(0.01, abs=0.005)
        apart = X[is_rare].mean(axis=0) - X[~is_rare].mean(axis=0)
        assert apart[axis] == pytest.approx(3.0, abs=0.5)
        assert apart[1 - axis] == pytest.approx(0.0, abs=0.5)


def test_a_reset_is_silent_for_a_while_and_a_refit_is_not():
    asked = stream("exchange", 0, 2000)
    refit, reset = (answered(name, asked) for name in ("refit", "reset"))
    assert refit.acted
    assert refit.acted[0] == reset.acted[0] > 1000
    silent = np.flatnonzero(reset.is_warming[1000:]) + 1000
    assert silent[0] == reset.acted[0]
    assert (reset.probabilities[silent] == 0.5).all()
    assert not refit.is_warming[1000:].any()
    assert scored(asked, reset).warming == len(silent)


def test_a_silent_answer_counts_as_all_classes_alike():
    n = 400
    said = np.tile([0.7, 0.1, 0.1, 0.1], (n, 1))
    is_warming = np.zeros(n, dtype=np.bool_)
    is_warming[:20] = is_warming[300:310] = True
    said[is_warming] = 1 / 4
    codes = np.zeros(n, dtype=np.int64)
    codes[350:] = 1
    asked, answers = (
        ChangingStream(np.zeros((n, 1)), codes, 4, 300),
        StreamAnswers(said, is_warming, []),
    )
    found = scored(asked, answers)
    of_answered = 90 * -math.log(0.7) + 50 * -math.log(0.1)  # of 250 ... 399 but for ten
    assert found.log_loss == pytest.approx((of_answered + 10 * math.log(4)) / 150)
    after = 10 * math.log(4) + 40 * -math.log(0.7) + 50 * -math.log(0.1)
    assert found.log_loss_after == pytest.approx(after / 100)
    assert found.warming == 10  # those before the first model followed no reset
    asked = ChangingStream(np.zeros((300, 1)), np.zeros(300, dtype=np.int64), 2, None)
    found = scored(asked, StreamAnswers(np.full((300, 2), 0.5), np.ones(300, dtype=np.bool_), []))
    assert found == PolicyLosses(pytest.approx(math.log(2)), None, 0, [])


def test_a_line_has_the_means_of_the_draws_and_their_standard_errors():
    draws = [PolicyLosses(loss, 0.5, 20, [5040]) for loss in (0.25, 0.75)]
    swap = result("swap", "report", draws)
    values = swap.values
    assert (values["log_loss"], values["log_loss_error"]) == (0.5, 0.25)
    assert (values["draws"], values["warming"], values["acted"]) == (2, 20, [[5040], [5040]])
    assert "log loss 0.5000 ± 0.2500" in str(swap)
    elec2 = result("elec2", "report", [PolicyLosses(0.25, None, 20, [])])
    assert (elec2.values["log_loss_error"], elec2.values["log_loss_after"]) == (None, None)
    assert "log loss 0.2500  " in str(elec2)


def test_a_stream_without_its_file_is_named(tmp_path):
    kept = {"results": tmp_path / "kept.jsonl", "data_dir": tmp_path}
    elec2, swap = run("elec2,swap", "report", 1, 500, **kept)
    assert "elec.csv is not in " in elec2.plain()["skipped"]
    assert "elec2           report     not run: elec.csv" in str(elec2)
    assert swap.plain()["draws"] == 1
