"""When the next refit is: decided at each, by labels that train alone."""

from itertools import pairwise

import numpy as np
import pytest

from online_svm import config as settings
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.refit_schedule import RefitDistance
from online_svm.refit.committee.staleness import UNKNOWN, Staleness
from online_svm.refit.learner import InlineRefitter
from online_svm.stream.alarm import Alarm
from online_svm.stream.split import training_mask

COUNT = 640
GIVEN = {"window": 160, "gamma": 0.5, "metrics_every": 50}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Let refits be 20 apart at least, and vary from the hundredth example on."""
    monkeypatch.setattr(settings, "REFIT_EVERY", 20)
    monkeypatch.setattr(settings, "EARLY_UNTIL", 100)


class Recorder(InlineRefitter):
    """Keeps what each task froze, and the bytes of its model."""

    def __init__(self, config):
        super().__init__(config)
        self.freezes, self.models, self.found = [], [], []

    def result(self):
        task = self._tasks[0]
        result = super().result()
        self.freezes.append((task.start, task.freeze))
        self.found.append(result.staleness)
        parts = result.model.state() | result.scaling.state()
        self.models.append([(name, part.tobytes()) for name, part in parts.items()])
        return result


def config_of(classes=2, **changes):
    names = tuple(f"c{k}" for k in range(classes))
    return ProtocolConfig(classes=names, **GIVEN | changes)


def stream(classes=2, seed=0, count=COUNT):
    """Return rows and codes; what separates the classes turns by a right angle in the middle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    said = np.where(np.arange(count) < count // 2, X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=count)
    return X, np.digitize(said, np.linspace(-0.5, 0.5, classes + 1)[1:-1])


def refitted(config, X, codes):
    """Return the refitter that a predictor of these examples had, and the answers."""
    refitter = Recorder(config)
    predictor = OnlinePredictor(config, refitter)
    return refitter, predictor.step_many(X, [f"c{code}" for code in codes])


def distances(refitter):
    return [b - a for (_, a), (_, b) in pairwise(refitter.freezes)]


@pytest.mark.parametrize("classes", [2, 4])
def test_no_label_that_calibrates_has_a_say_in_when_a_refit_is_or_in_its_model(classes):
    config, others = config_of(classes, monitors="off"), 0
    for seed in range(2):
        X, codes = stream(classes, seed)
        rng = np.random.default_rng(seed)
        trains = training_mask("interleaved", 0, COUNT, config.training_share, config.seed)
        drawn = rng.integers(0, classes, COUNT)
        outside, inside = np.where(trains, codes, drawn), np.where(trains, drawn, codes)
        assert (outside != codes).sum() > 50
        here, there = (refitted(config, X, y)[0] for y in (codes, outside))
        assert len(set(distances(here)[-20:])) > 1
        assert here.freezes == there.freezes
        assert here.models == there.models
        assert here.found == there.found
        others += refitted(config, X, inside)[0].freezes != here.freezes
    assert others > 0


def test_what_is_found_is_what_the_models_of_the_last_two_refits_said_of_new_rows_of_T():
    config, (X, codes) = config_of(), stream()
    results = []

    class Keeper(Recorder):
        def result(self):
            results.append(super().result())
            return results[-1]

    OnlinePredictor(config, Keeper(config)).step_many(X, [f"c{code}" for code in codes])
    trains = training_mask("interleaved", 0, COUNT, config.training_share, config.seed)
    assert [r.staleness for r in results[:2]] == [UNKNOWN, UNKNOWN]
    for older, last, now in zip(results, results[1:], results[2:], strict=False):
        new = np.arange(last.freeze, now.freeze)[trains[last.freeze : now.freeze]]
        odds = [r.model.scores(r.scaling.transform(X[new]))[:, 0] for r in (older, last)]
        losses = [np.logaddexp(0.0, np.where(codes[new] == 1, -s, s)) for s in odds]
        apart = np.clip(losses[0] - losses[1], -8.0, 8.0)
        assert now.staleness.n == len(new)
        assert abs(now.staleness.total - 2**20 * apart.sum()) <= len(new)
    assert sum(r.staleness.total for r in results) > 0  # the turn


def test_refits_are_as_far_apart_as_the_window_at_most_and_close_after_a_change():
    refitter, _ = refitted(config_of(), *stream(count=1400))
    found = distances(refitter)
    assert set(found) >= {20, 40, 80, 160}
    assert max(found) == 160
    assert set(found[-10:]) == {20}


def test_a_given_distance_is_kept():
    refitter, _ = refitted(config_of(refit_every=40), *stream())
    assert set(distances(refitter)[-10:]) == {40}
    assert set(refitter.found) == {UNKNOWN}


def test_an_alarm_that_is_acted_on_begins_with_the_shortest_distance():
    config = config_of(on_drift="refit", window=100)
    refitter, answers = refitted(config, *stream(count=1800))
    acted = [a.n for a in answers if isinstance(a, Alarm) and a.action != "report"]
    assert acted
    for n in acted:
        later = [freeze - n for start, freeze in refitter.freezes if start == n]
        assert later[:4] == [10, 14, 20, 28][: len(later)]


def test_a_total_of_more_than_half_a_standard_error_halves_the_distance_and_others_double_it():
    distance, seen = RefitDistance(ProtocolConfig()), []
    for total in (0, 0, 0, 0, 101, 0, -400, 0):
        distance.follow(500, Staleness(100, total, 10_000))
        seen.append(distance.examples)
    assert seen == [40, 80, 160, 320, 640, 1280, 2000, 2000]
    distance.follow(500, Staleness(100, 1000, 10_000))
    assert distance.examples == 1000
    for total, expected in ((50, 40), (51, 20)):  # half a standard error, and more
        distance = RefitDistance(ProtocolConfig())
        distance.follow(500, Staleness(100, total, 10_000))
        assert distance.examples == expected


@pytest.mark.parametrize(
    "damage", [{"examples": 10}, {"examples": 4000}, {"squares": -1}, {"total": 0.5}]
)
def test_a_distance_that_cannot_be_is_refused(damage):
    config = ProtocolConfig()
    state = RefitDistance(config).state()
    with pytest.raises((InvalidSnapshot, ValueError)):
        RefitDistance(config).restore(state | damage)
