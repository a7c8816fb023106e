"""When a predictor waits for a refit: before the first answer that needs it, and not sooner."""

import numpy as np
import pytest
from predictor_answers import flat

from online_svm import config as settings
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit.learner import InlineRefitter
from online_svm.stream.input_batch import Example, InputBatch
from online_svm.stream.validity_report import ValidityReport

BASE = {"classes": ("a", "b"), "window": 60, "refit_every": 30, "gamma": 0.5, "metrics_every": 10}
MODES = {
    "at once": {"refit_lag": 0},
    "early": {"committee": "single", "refit_lag": None},
    "late": {"refit_lag": 12},
    "drift": {"refit_lag": 12, "on_drift": "refit"},
    "varying": {"refit_every": None},
}
COUNT = 200


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Let refits that vary be 20 apart at least, and do so from the sixtieth example on."""
    monkeypatch.setattr(settings, "REFIT_EVERY", 20)
    monkeypatch.setattr(settings, "EARLY_UNTIL", 60)


class Unfinished(InlineRefitter):
    """A refitter that has a result, the next one, only when that is allowed."""

    is_finished = False

    def allow(self):
        self.is_finished = True

    def result(self):
        assert self.is_finished, "it was waited for"
        self.is_finished = False
        return super().result()


def config_of(mode):
    return ProtocolConfig.model_validate(BASE | MODES[mode])


def data():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(COUNT, 3))
    return X, np.where(X[:, 0] + generator.normal(size=COUNT) > 0, "b", "a").tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 64])
def test_so_many_examples_as_it_says_are_answered_without_a_wait(mode, size):
    config, (X, labels) = config_of(mode), data()
    refits = Unfinished(config)
    predictor, found = OnlinePredictor(config, refits), []
    waits = 0
    while predictor.n < COUNT:
        if predictor.is_waiting:
            after = predictor.until_wait
            waits += 1
            refits.allow()
            predictor.activate_if_due()
            # The refit that was waited for may have put the next one off.
            assert predictor.until_wait == after or mode == "varying"
            assert predictor.until_wait >= after
        assert predictor.until_wait > 0
        rows = slice(predictor.n, min(predictor.n + min(size, predictor.until_wait), COUNT))
        found += predictor.step_many(X[rows], labels[rows])
    assert waits > 4
    assert flat(found) == flat(OnlinePredictor(config).step_many(X, labels))


@pytest.mark.parametrize("mode", MODES)
def test_a_snapshot_and_what_scorers_get_are_those_of_the_refit_that_is_due(mode):
    """Each is the same, whether the refit took effect before, or does by it."""
    config, (X, labels) = config_of(mode), data()
    asked, plain = OnlinePredictor(config), OnlinePredictor(config)
    while plain.n < COUNT:
        for predictor in (asked, plain):
            predictor.step(Example(X[predictor.n], labels[predictor.n]))
        if plain.is_waiting:
            plain.activate_if_due()
            assert not plain.is_waiting
            version = plain.active.version
            assert asked.frozen().snapshot() == plain.frozen().snapshot()
            assert asked.active.version == version
    assert asked.snapshot() == plain.snapshot()


def test_a_row_without_a_label_needs_the_refit_that_is_due():
    config, (X, labels) = config_of("at once"), data()
    waiting, whole = OnlinePredictor(config), OnlinePredictor(config)
    waiting.step_many(X[:30], labels[:30])
    assert waiting.is_waiting
    expected = whole.step_many(X[:31], [*labels[:30], None])[-1]
    assert not isinstance(expected, ValidityReport)
    assert waiting.step(Example(X[30])) == expected.row(0)
    assert not waiting.is_waiting


def test_a_refit_that_is_due_is_calibrated_by_the_labels_of_before_a_correction():
    """The other label counts from the next refit on, as where the refit took effect before."""
    config = ProtocolConfig.model_validate(
        BASE | {"refit_lag": 0, "horizon": 3, "maturity": "arrival", "max_pending": 100}
    )
    X, labels = data()
    asked, plain = OnlinePredictor(config), OnlinePredictor(config)
    for predictor in (asked, plain):
        predictor.step_many(X[:60], labels[:60], ids=[str(i) for i in range(60)])
        assert predictor.is_waiting
    plain.activate_if_due()
    for predictor in (asked, plain):
        assert predictor.label("55", "a" if labels[55] == "b" else "b") == "corrected"
    assert asked.snapshot() == plain.snapshot()
    rows = slice(60, 130)
    later = [
        p.step_many(X[rows], labels[rows], ids=[str(i) for i in range(60, 130)])
        for p in (asked, plain)
    ]
    assert flat(later[0]) == flat(later[1])


@pytest.mark.parametrize("mode", [*MODES, "time"])
def test_steps_pause_before_each_wait_and_give_the_same_answers(mode):
    if mode == "time":  # an example may let many others be learned
        late = {"refit_lag": 0, "horizon": "40ms"}
        config, times = ProtocolConfig.model_validate(BASE | late), np.arange(COUNT) ** 2 // 40
    else:
        config, times = config_of(mode), None
    X, labels = data()
    refits = Unfinished(config)
    predictor = OnlinePredictor(config, refits)
    given = {} if times is None else {"times": times.tolist()}
    steps, pauses = predictor.processing(InputBatch(X, labels, range(COUNT), **given)), 0
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found = ended.value.found
            break
        assert predictor.is_waiting
        pauses += 1
        refits.allow()
    assert pauses > 4
    assert flat(found) == flat(
        OnlinePredictor(config).process(InputBatch(X, labels, range(COUNT), **given)).found
    )
