"""What follows an alarm by `on_drift`: refits of later examples alone, or a reset."""

import numpy as np
import pytest
from drifting import cheap, inverted
from predictor_answers import alarms, blocks, said
from session_steps import OwnRefits

from online_svm.config import PredictorConfig
from online_svm.predictor import guarantee
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit.learner import InlineRefitter
from online_svm.stream.guarantee_reason import GuaranteeReason

COUNT, FIRST = 900, 500
ACTING = ("refit", "reset")
PROVISO = GuaranteeReason("false_alarm", (("level", 0.01),))


@pytest.fixture(scope="module")
def drift():
    """Rows and labels; those from `FIRST` on are inverted."""
    return inverted(COUNT, FIRST, COUNT)


def rows_of(answers, name):
    """Return one attribute of every row that is answered, and the number of learned examples."""
    values = [np.broadcast_to(getattr(block, name), len(block)) for block in blocks(answers)]
    return np.concatenate(values)


@pytest.mark.parametrize("policy", ACTING)
def test_after_an_alarm_refits_take_effect_ten_twenty_and_forty_examples_later(drift, policy):
    X, y = drift
    answers = OnlinePredictor(cheap(on_drift=policy, refit_lag=99)).step_many(X, y)
    alarm = alarms(answers)[0]
    assert alarm.action == policy
    n, model, status = (rows_of(answers, name) for name in ("n", "model", "status"))
    before, after = (model[n == alarm.n + k][0] for k in (-1, 10))
    # The refit under way, frozen at 500, is withdrawn: nothing takes effect between.
    between = {"refit": before, "reset": 0}[policy]
    assert set(model[(n >= alarm.n) & (n < alarm.n + 10)].tolist()) == {between}
    assert set(status[(n >= alarm.n) & (n < alarm.n + 10)].tolist()) == {
        {"refit": "ok", "reset": "warming"}[policy]
    }
    assert after == before + 1
    changes = n[1:][np.diff(model) > 0]
    assert [c - alarm.n for c in changes if c > alarm.n][:4] == [10, 20, 40, 80]


def test_after_a_reset_the_answers_are_those_of_a_predictor_that_saw_only_what_follows(
    drift, monkeypatch
):
    monkeypatch.setattr(guarantee, "MAX_CHANGES_PER_PERIOD", 1)
    X, y = drift
    settings = {"split": "oldest", "refit_lag": 99}
    answers = OnlinePredictor(cheap(on_drift="reset", **settings)).step_many(X, y)
    a = alarms(answers)[0].n
    alone = OnlinePredictor(cheap(monitors="off", **settings)).step_many(X[a:], y[a:])
    mine = [block for block in blocks(answers, "ok") if block.n[0] >= a]
    for name in ("point", "venn_lower", "venn_upper", "scores"):
        here, there = (
            np.concatenate([getattr(block, name) for block in one])
            for one in (mine, blocks(alone, "ok"))
        )
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("policy", ACTING)
def test_a_refit_that_begins_anew_closes_the_alarm(drift, policy):
    X, y = drift
    answers = OnlinePredictor(cheap(on_drift=policy)).step_many(X, y)
    a = alarms(answers)[0].n
    n, guarantee, reason = (rows_of(answers, name) for name in ("n", "guarantee", "reason"))
    open_ = guarantee[(n >= a) & (n < a + 10)].tolist()
    assert "exact" not in open_
    assert guarantee[n == a + 10] == ["exact"]
    assert reason[n == a + 10] == [PROVISO]
    assert reason[n == FIRST] == [PROVISO]


def test_refits_of_another_process_are_withdrawn_computed_or_not(drift):
    X, y = drift
    config = cheap(on_drift="reset", refit_lag=60)
    expected = said(OnlinePredictor(config), X, y)
    of_protocol = ProtocolConfig.model_fields.keys() - PredictorConfig.model_fields.keys()
    of_feed = PredictorConfig(**config.model_dump(exclude=of_protocol))
    with OwnRefits(of_feed) as refits:
        predictor, found = OnlinePredictor(config, refits), []
        for i in range(0, COUNT, 50):
            found += said(predictor, X[i : i + 50], y[i : i + 50])
            if i % 100 == 0:
                predictor.snapshot()  # waits until the refit under way is computed
    assert found == expected


class Spy(InlineRefitter):
    """Notes what is submitted, and how far the predictor was then."""

    def __init__(self, config):
        super().__init__(config)
        self.predictor, self.submitted = None, []

    def submit(self, task):
        self.submitted.append((task.start, task.freeze, self.predictor.n))
        super().submit(task)


@pytest.mark.parametrize("policy", ["report", *ACTING])
def test_nothing_is_submitted_before_the_answers_that_it_depends_on(drift, policy):
    X, y = drift
    config = cheap(on_drift=policy, refit_lag=60)
    spy = Spy(config)
    spy.predictor = OnlinePredictor(config, spy)
    a = next(a.n for a in alarms(spy.predictor.step_many(X, y)))
    early = [freeze for _, freeze, n in spy.submitted if freeze > n]
    if policy == "report":
        assert early, "where no answer matters, a refit may begin as soon as its examples are held"
        return
    assert not early
    assert min(start for start, freeze, _ in spy.submitted if freeze > a) == a


@pytest.mark.parametrize("policy", ACTING)
@pytest.mark.parametrize("most", [1, 2])
def test_a_stream_that_never_comes_to_rest_is_not_begun_anew_all_the_time(
    policy, most, monkeypatch
):
    monkeypatch.setattr(guarantee, "MAX_CHANGES_PER_PERIOD", most)
    X, _ = inverted(6000, 0, 0)
    y = ["ab"[i // 300 % 2 ^ (x > 0)] for i, x in enumerate(X[:, 0])]  # turned round every 300
    config = cheap(on_drift=policy, refit_every=50)
    found = alarms(OnlinePredictor(config).step_many(X, y))
    acted = [a.n for a in found if a.action == policy]
    changes = []
    for n in acted:  # all alarms within 50 examples are one change
        if not changes or n >= changes[-1] + 50:
            changes.append(n)
    assert len(changes) > most
    assert any(a.action == "report" for a in found)
    assert max(sum(n - 1000 < m <= n for m in changes) for n in changes) <= most


@pytest.mark.parametrize("policy", ACTING)
def test_a_model_of_later_examples_is_judged_by_its_own_answers_alone(policy):
    X, y = inverted(1500, 1000, 1500)
    predictor = OnlinePredictor(cheap(on_drift=policy))
    (first,) = {alarm.n for alarm in alarms(predictor.step_many(X, y))}
    for test in predictor._engine.scoring._monitors.report().tests:
        assert test["since"] is None or test["since"] >= first
        if test["kind"] == "calibration":
            since = test["deviation"]["since"]
            assert since is None or since >= first


def test_with_labels_late_the_answers_of_the_model_of_before_are_not_held_against_the_next(
    monkeypatch,
):
    """All of them are scored after the alarm: here 300, more than a test rests."""
    monkeypatch.setattr(guarantee, "MAX_CHANGES_PER_PERIOD", 9)
    X, y = inverted(2400, 1200, 2400)
    config = cheap(on_drift="reset", horizon=300)
    predictor = OnlinePredictor(config)
    ids = [str(i) for i in range(len(X))]
    acted = [a.n for a in alarms(predictor.step_many(X, y, ids=ids)) if a.action == "reset"]
    assert acted
    assert max(acted) < min(acted) + 50
