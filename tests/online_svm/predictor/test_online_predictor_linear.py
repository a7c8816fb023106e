"""OnlinePredictor with a linear machine on a feature map: what left the window is still known."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import StandardScaler

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitResult, RefitTask
from online_svm.storage import frames
from online_svm.stream.prediction import Prediction, PredictionBlock, ValidityReport
from online_svm.stream.split import training_mask
from online_svm.svm.linear.proximal import ROUNDS, SWEEPS
from online_svm.types import Floats
from workers.refit.process_refitter import ProcessRefitter

Labels = list[str]

BASE: dict[str, Any] = {"learner": "linear", "classes": ("a", "b"), "features": 3}
SHORT: dict[str, Any] = BASE | {"window": 60, "refit_every": 25, "n_components": 20}
CONFIGS = [
    PredictorConfig(**SHORT, metrics_every=7, maps_every=9),
    PredictorConfig(
        **SHORT, refit_lag=0, split="oldest", feature_map="fourier", map_data="training",
        class_weight="balanced", taxonomy="class-quantile",
    ),
    PredictorConfig(
        **SHORT | {"classes": ("a", "b", "c"), "refit_every": 70}, scale="none", kernel="poly",
        taxonomy="venn-abers", maps=("mixed", "isotonic", "platt"),
    ),
]  # fmt: skip
IDS = ["nystroem", "fourier", "three"]


def stream(n: int, seed: int = 0, classes: int = 2) -> tuple[Floats, Labels]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    codes = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return X, ["abc"[code] for code in codes]


def rows(answers: list[PredictionBlock | ValidityReport]) -> list[Prediction]:
    blocks = [block for block in answers if isinstance(block, PredictionBlock)]
    return [block.row(i) for block in blocks for i in range(len(block))]


class Recorder(InlineRefitter):
    """Keeps what it was asked and what it answered."""

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__(config)
        self.tasks: list[RefitTask] = []
        self.results: list[RefitResult] = []

    def submit(self, task: RefitTask) -> None:
        self.tasks.append(task)
        super().submit(task)

    def result(self) -> RefitResult:
        self.results.append(super().result())
        return self.results[-1]

    def pairs(self) -> list[tuple[RefitTask, RefitResult]]:
        """Return the finished tasks with their results; the last task may be under way."""
        return list(zip(self.tasks, self.results, strict=False))


def refits(config: PredictorConfig, X: Floats, labels: Labels) -> Recorder:
    recorder = Recorder(config)
    OnlinePredictor(config, recorder).step_many(X, labels)
    return recorder


class Literal:
    """The specification with scikit-learn's transformers and plain loops of numpy."""

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self.fitted_on = 0
        self.settled = False
        self.held: list[int] = []
        self.start = 0

    def refit(self, X: Floats, y: Floats, start: int, freeze: int) -> Floats:
        """Return the scores of the examples start ... freeze - 1; y is -1 or 1."""
        config = self.config
        trains = training_mask(config.split, start, freeze, config.training_share, config.seed)
        T, is_full = start + np.flatnonzero(trains), freeze - start == config.window
        if not self.settled and (len(T) >= 2 * self.fitted_on or is_full):
            self.fit_map(X[T])
            self.fitted_on, self.settled = len(T), is_full
            self.past, self.alpha, self.start = np.zeros(self.size + 1), dict[int, float](), start
        gone = [i for i in self.alpha if i < start]
        self.past = config.fading ** (start - self.start) * self.past
        for i in gone:
            self.past = self.past + self.alpha.pop(i) * y[i] * self.features(X[i : i + 1])[0]
        self.start = start
        w = self.ascend(self.features(X[T]), y[T], T)
        return self.features(X[start:freeze]) @ w

    def fit_map(self, training: Floats) -> None:
        config, self.scaler = self.config, StandardScaler().fit(training)
        scaled = self.scaler.transform(training)
        gamma, size = 1.0 / (scaled.shape[1] * scaled.var()), config.n_components
        if config.feature_map == "fourier":
            self.map = RBFSampler(gamma=gamma, n_components=size, random_state=0)
        else:
            size = min(size, len(training))
            self.map = Nystroem(gamma=gamma, n_components=size, random_state=0)
        self.map.fit(scaled)
        self.size = size

    def features(self, X: Floats) -> Floats:
        return np.column_stack([self.map.transform(self.scaler.transform(X)), np.ones(len(X))])

    def ascend(self, F: Floats, y: Floats, numbers: NDArray[np.int64]) -> Floats:
        alpha = np.array([self.alpha.get(int(i), 0.0) for i in numbers])
        w = self.past + F.T @ (alpha * y)

        def step(i: int) -> float:
            nonlocal w
            gradient, old = 1.0 - y[i] * (F[i] @ w), alpha[i]
            alpha[i] = np.clip(old + gradient / (F[i] @ F[i]), 0.0, self.config.C)
            w = w + (alpha[i] - old) * y[i] * F[i]
            return abs(gradient) if alpha[i] != old else 0.0

        for _ in range(ROUNDS):
            found = {i: step(i) for i in range(len(F))}
            if max(found.values()) < self.config.tol:
                break
            moved = [i for i, violation in found.items() if violation > 0.0]
            for _ in range(SWEEPS):
                if max(map(step, moved)) < self.config.tol:
                    break
        self.alpha = dict(zip(numbers.tolist(), alpha.tolist(), strict=True))
        return w


@pytest.mark.parametrize("feature_map", ["nystroem", "fourier"])
@pytest.mark.parametrize("split", ["interleaved", "oldest"])
def test_scores_are_those_of_the_specification_read_literally(feature_map: str, split: str) -> None:
    X, labels = stream(400)
    config = PredictorConfig(**SHORT, feature_map=feature_map, split=split, fading=0.99)
    found, literal = refits(config, X, labels), Literal(config)
    y = np.where(np.array(labels) == "b", 1.0, -1.0)
    for task, result in found.pairs():
        expected = literal.refit(X, y, task.start, task.freeze)
        trains = training_mask(config.split, task.start, task.freeze, 0.7)
        ours = np.empty(len(trains))
        ours[trains], ours[~trains] = result.training_scores[:, 0], result.calibration_scores[:, 0]
        np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=6), stop=st.integers(0, 300))
def test_answers_depend_on_neither_blocks_nor_restarts(
    config: PredictorConfig, cuts: list[int], stop: int
) -> None:
    X, labels = stream(300, classes=len(config.classes or ()))
    whole = OnlinePredictor(config)
    expected = rows(whole.step_many(X, labels))
    predictor, found = OnlinePredictor(config), list[Prediction]()
    for a, b in pairwise(sorted([0, stop, *cuts, 300])):
        found += rows(predictor.step_many(X[a:b], labels[a:b]))
        if b == stop:
            restarted = OnlinePredictor(config)
            restarted.restore(predictor.snapshot())
            predictor = restarted
    assert found == expected
    assert predictor.snapshot() == whole.snapshot()


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_answers_do_not_depend_on_where_refits_are_computed(config: PredictorConfig) -> None:
    X, labels = stream(300, classes=len(config.classes or ()))
    here = OnlinePredictor(config)
    expected = rows(here.step_many(X, labels))
    with ProcessRefitter(config) as refitter:
        there = OnlinePredictor(config, refitter)
        assert rows(there.step_many(X, labels)) == expected
        assert there.snapshot() == here.snapshot()


def changed(labels: Labels, i: int) -> Labels:
    return [*labels[:i], "b" if labels[i] == "a" else "a", *labels[i + 1 :]]


@pytest.mark.parametrize("learner", ["svc", "linear"])
def test_the_linear_learner_alone_remembers_what_left_the_window(learner: str) -> None:
    X, labels = stream(400)
    config = PredictorConfig(**SHORT | {"learner": learner}, tol=1e-9)
    first = int(np.flatnonzero(training_mask("interleaved", 0, 400, 0.7)[50:])[0]) + 50
    before = refits(config, X, labels).results[-1]
    after = refits(config, X, changed(labels, first)).results[-1]
    moves = not np.allclose(before.training_scores, after.training_scores, atol=1e-5)
    assert moves == (learner == "linear")


def test_no_model_was_ever_trained_on_a_calibration_example() -> None:
    X, labels = stream(300)
    config = PredictorConfig(**SHORT)
    before = refits(config, X, labels).results
    for i in np.flatnonzero(~training_mask("interleaved", 0, 300, 0.7))[::12]:
        after = refits(config, X, changed(labels, int(i))).results
        for one, other in zip(before, after, strict=True):
            assert one.model.scores(X).tobytes() == other.model.scores(X).tobytes()


def test_answers_are_exact_where_those_of_the_other_learners_are() -> None:
    X, labels = stream(200)
    assert rows(OnlinePredictor(PredictorConfig(**SHORT)).step_many(X, labels))[-1].guarantee == (
        "exact"
    )


def test_map_and_scaling_stay_once_the_window_was_full() -> None:
    X, labels = stream(400)
    X[200:] *= 100.0
    found = refits(PredictorConfig(**SHORT), X, labels)
    settled = [
        (result.model.state()["vectors"].tobytes(), result.scaling.width.tobytes())
        for task, result in found.pairs()
        if task.freeze >= 60
    ]
    assert len(settled) > 10
    assert len(set(settled)) == 1
    early = [result.scaling.width.tobytes() for result in found.results[:3]]
    assert len({*early, settled[0][1]}) > 1


def test_the_state_does_not_grow_with_the_stream() -> None:
    X, labels = stream(3000)
    alone = {
        "early_until": 0,
        "monitors": "off",
        "metrics_window": None,
    }  # theirs has tests of its own
    predictor, sizes = OnlinePredictor(PredictorConfig(**SHORT | alone)), []
    for stop in range(300, 3001, 300):
        predictor.step_many(X[stop - 300 : stop], labels[stop - 300 : stop])
        sizes.append(len(predictor.snapshot()))
    assert max(sizes) < 1.05 * min(sizes)


def test_a_class_that_is_discovered_begins_the_weights_from_the_window() -> None:
    X, labels = stream(200)
    config = PredictorConfig(**SHORT | {"classes": None})
    late = [
        "c" if i >= 150 and x[2] > 0.3 else y
        for i, (x, y) in enumerate(zip(X, labels, strict=True))
    ]
    predictor = OnlinePredictor(config)
    predictor.step_many(X, late)
    assert predictor.classes == ("a", "b", "c")
    assert len(rows(predictor.step_many(X[:1], [None]))[0].scores) == 3


def test_a_longer_memory_helps_where_nothing_drifts() -> None:
    X, labels = stream(4000, seed=3)
    long = {"window": 100, "refit_every": 50, "n_components": 40, "fading": 1.0}
    accuracy = {}
    for learner in ("svc", "linear"):
        config = PredictorConfig(**BASE | long | {"learner": learner})
        answers = rows(OnlinePredictor(config).step_many(X, labels))[500:]
        hits = [a.svm_label == y for a, y in zip(answers, labels[500:], strict=True)]
        accuracy[learner] = np.mean(hits)
    assert accuracy["linear"] > accuracy["svc"] + 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": None}, "learner: linear needs a window"),
        ({"maps": ("platt", "implied")}, "maps: implied is a bank of kernel machines"),
        ({"feature_map": "fourier", "kernel": "linear"}, "fourier needs kernel = 'rbf'"),
        ({"split": "crossfit"}, "crossfit needs learner"),
        ({"fading": 0.0}, "fading"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PredictorConfig(**BASE | changes)


def test_it_takes_labels_only() -> None:
    with pytest.raises(InvalidInput, match="labels only"):
        OnlinePredictor(PredictorConfig(**BASE)).step_many(np.ones((1, 3)), [None], np.array([0.5]))


@pytest.mark.parametrize("config", CONFIGS[:2], ids=IDS[:2])
def test_a_state_whose_parts_do_not_fit_is_refused(config: PredictorConfig) -> None:
    X, labels = stream(200)
    learner = Learner(config)
    for task in refits(config, X, labels).tasks:
        learner.refit(task)
    header, parts = frames.split(learner.state())
    names = [name for name in parts if name.startswith("linear.")]
    assert len(names) == 6
    for name in names:
        wrong = parts | {name: parts[name][..., :-1]}
        with pytest.raises(InvalidSnapshot, match=name.removeprefix("linear.")):
            Learner.from_state(frames.join(header, wrong), config)
    codes = parts["linear.machine.codes"].copy()
    codes[3] = 2
    with pytest.raises(InvalidSnapshot, match="codes"):
        Learner.from_state(frames.join(header, parts | {"linear.machine.codes": codes}), config)
    other = config.model_copy(update={"n_components": 7})
    with pytest.raises(InvalidSnapshot):
        Learner.from_state(learner.state(), other)


def test_a_refit_may_skip_examples_that_the_window_never_held() -> None:
    X, labels = stream(400)
    config = PredictorConfig(**SHORT | {"refit_every": 150})
    found = refits(config, X, labels)
    assert [task.first for task in found.tasks[-2:]] == [90, 240]
    assert all(np.isfinite(result.calibration_scores).all() for result in found.results)


def test_results_survive_the_pipe() -> None:
    X, labels = stream(100)
    for config in CONFIGS[:2]:
        result = refits(config, X, labels).results[-1]
        copy = RefitResult.from_state(result.state())
        assert copy.state() == result.state()
        assert copy.model.scores(X).tobytes() == result.model.scores(X).tobytes()
        assert replace(result, freeze=0).state() != result.state()


@pytest.mark.parametrize("name", ["weights", "offset", "coef", "intercept"])
def test_a_model_of_fourier_features_whose_parts_do_not_fit_is_refused(name: str) -> None:
    X, labels = stream(100)
    result = refits(CONFIGS[1], X, labels).results[-1]
    header, parts = frames.split(result.state())
    name = f"model.{name}"
    wider = np.concatenate([parts[name], parts[name]])
    for wrong in (np.repeat(parts[name], 2, axis=-1), wider, parts[name].astype("<f4")):
        with pytest.raises(ValueError, match="does not fit"):
            RefitResult.from_state(frames.join(header, parts | {name: wrong}))
