"""OnlinePredictor against a slow reading of the specification, and against itself."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm import config as settings
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample, InvalidInput, InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit import learner, scaling
from online_svm.storage.container import pack, unpack
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import Prediction, PredictionBlock, ValidityReport
from online_svm.stream.split import is_early_refit, is_refit_due, training_mask

Stream = tuple[NDArray[np.float64], list[str | None]]


def stream(n: int, n_classes: int = 2, seed: int = 0) -> Stream:
    """Return overlapping Gaussian classes, in random order."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    centres = rng.normal(scale=1.2, size=(n_classes, 3))
    X = centres[codes] + rng.normal(size=(n, 3)) * np.array([1.0, 1.0, 5.0])
    return X, [f"c{code}" for code in codes]


def rows(answers: list[PredictionBlock | ValidityReport]) -> list[Prediction]:
    blocks = [block for block in answers if isinstance(block, PredictionBlock)]
    return [block.row(i) for block in blocks for i in range(len(block))]


def run(config: PredictorConfig, data: Stream, cuts: list[int] | None = None) -> list[Any]:
    """Return every prediction and report as comparable values."""
    X, labels = data
    predictor = OnlinePredictor(config)
    bounds = [0, *(cuts or []), len(labels)]
    out: list[Any] = []
    for a, b in pairwise(bounds):
        for answer in predictor.step_many(X[a:b], labels[a:b]):
            out.extend(rows([answer]) if isinstance(answer, PredictionBlock) else [answer])
    return [*out, predictor.snapshot()]


class Reference:
    """Section 3 of the design, read literally: lists, scikit-learn, and no state worth the name."""

    def __init__(self, config: PredictorConfig, classes: list[str]) -> None:
        self.config, self.classes = config, classes
        self.seen: list[tuple[NDArray[np.float64], str]] = []
        self.active: dict[str, Any] | None = None
        self.pending: dict[str, Any] | None = None

    def step(self, x: NDArray[np.float64], label: str) -> NDArray[np.float64]:
        interval = self.interval(x)
        self.seen.append((x, label))
        if self.active is not None:
            self.active["calibration"].append(len(self.seen) - 1)
        self.schedule()
        return interval

    def interval(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.active is None:
            return np.tile([0.0, 1.0], (len(self.classes), 1))
        members = self.active["calibration"]
        if self.config.window is not None:
            members = members[-self.config.window :]
        k = self.category(x)
        known = self.active["categories"]
        for i in members:
            if i not in known:
                known[i] = self.category(self.seen[i][0])
        inside = [self.seen[i][1] for i in members if known[i] == k]
        counts = np.array([inside.count(c) for c in self.classes])
        return np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1)

    def schedule(self) -> None:
        n, config = len(self.seen), self.config
        if self.pending and self.pending["at"] == n:
            self.active, self.pending = self.pending, None
        if not is_refit_due(n, config.refit_every):
            return
        start = 0 if config.window is None else max(0, n - config.window)
        if self.active is None and len({label for _, label in self.seen[start:]}) < 2:
            return
        trains = training_mask(config.split, start, n, config.training_share, config.seed)
        T = [i for i in range(start, n) if trains[i - start]]
        rest = [i for i in range(start, n) if not trains[i - start]]
        early = n < config.lags_from or is_early_refit(n, config.refit_every)
        lag = 0 if early else config.lag
        self.pending = self.fit(T) | {
            "calibration": rest,
            "at": n + lag,
            "freeze": n,
            "categories": {},
        }
        if lag == 0:
            self.active, self.pending = self.pending, None

    def fit(self, T: list[int]) -> dict[str, Any]:
        X = np.array([self.seen[i][0] for i in T])
        y = np.array([self.seen[i][1] for i in T])
        scaler = StandardScaler(
            with_mean=self.config.scale == "standard", with_std=self.config.scale == "standard"
        ).fit(X)
        machines = []
        for name in self.classes[1:] if len(self.classes) == 2 else self.classes:
            target = y == name
            if target.all() or not target.any():
                machines.append(1.0 if target.all() else -1.0)
            else:
                svc = SVC(C=self.config.C, gamma=self.config.gamma, tol=1e-6)
                machines.append(svc.fit(scaler.transform(X), target))
        return {"machines": machines, "scaler": scaler}

    def category(self, x: NDArray[np.float64]) -> int:
        assert self.active is not None
        row = self.active["scaler"].transform(x[None, :])
        scores = [
            m if isinstance(m, float) else float(m.decision_function(row)[0])
            for m in self.active["machines"]
        ]
        return int(scores[0] > 0) if len(scores) == 1 else int(np.argmax(scores))


class WaitingReference(Reference):
    """The calibration of a pending refit also holds what was learned since the freeze."""

    def schedule(self) -> None:
        if self.pending and self.pending["at"] == len(self.seen):
            self.pending["calibration"] += range(self.pending["freeze"], len(self.seen))
        super().schedule()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("split", ["oldest", "interleaved"])
@pytest.mark.parametrize(
    "schedule",
    [
        {"window": None, "refit_every": 1, "refit_lag": 0, "scale": "none"},
        {"window": 60, "refit_every": 25, "refit_lag": 20},
        {"window": 40, "refit_every": 100, "refit_lag": 99},
    ],
    ids=["paper", "rolling", "slow"],
)  # fmt: skip
def test_intervals_are_those_of_the_specification_read_literally(
    schedule: dict[str, Any], split: str, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "TOLERANCE", 1e-6)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    X, labels = stream(160, n_classes)
    classes = [f"c{k}" for k in range(n_classes)]
    config = PredictorConfig(
        classes=tuple(classes), split=split, gamma=0.3, committee="single", **schedule
    )
    reference = WaitingReference(config, classes)
    expected = [reference.step(x, str(y)) for x, y in zip(X, labels, strict=True)]
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    agree = [
        np.allclose(a.venn or np.tile([0.0, 1.0], (n_classes, 1)), e, rtol=0, atol=1e-15)
        for a, e in zip(answers, expected, strict=True)
    ]
    assert sum(agree) >= 0.99 * len(agree)


CONFIGS = [
    PredictorConfig(window=60, refit_every=25, metrics_every=7),
    PredictorConfig(
        classes=("c0", "c1"), window=80, refit_every=30, refit_lag=0, split="oldest",
        map_data="training",
    ),
    PredictorConfig.paper(("c0", "c1"), gamma=0.5, maps=("platt",)),
    PredictorConfig(window=60, refit_every=25, committee="single"),
]  # fmt: skip


@given(
    cuts=st.lists(st.integers(0, 90), max_size=6),
    unlabelled=st.sets(st.integers(0, 89)),
    n_classes=st.integers(1, 4),
    lag=st.integers(0, 14),
)
def test_any_batches_of_any_stream_give_the_same_bytes(
    cuts: list[int], unlabelled: set[int], n_classes: int, lag: int
) -> None:
    X, labels = stream(90, n_classes, seed=n_classes)
    data = X, [None if i in unlabelled else label for i, label in enumerate(labels)]
    config = PredictorConfig(window=30, refit_every=15, refit_lag=lag, metrics_every=4)
    assert run(config, data, sorted(cuts)) == run(config, data)


def test_a_snapshot_changes_nothing() -> None:
    X, labels = stream(120)
    config = CONFIGS[0]
    disturbed, plain = OnlinePredictor(config), OnlinePredictor(config)
    for x, label in zip(X, labels, strict=True):
        disturbed.snapshot()
        assert disturbed.step(Example(x, label)) == plain.step(Example(x, label))


def test_a_snapshot_of_another_configuration_is_refused() -> None:
    data = OnlinePredictor(PredictorConfig(seed=1)).snapshot()
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        OnlinePredictor(PredictorConfig(seed=2)).restore(data)


def test_a_refused_snapshot_leaves_the_state_as_it_was() -> None:
    X, labels = stream(40)
    predictor = OnlinePredictor(CONFIGS[0])
    predictor.step_many(X, labels)
    before = predictor.snapshot()
    with pytest.raises(InvalidSnapshot):
        predictor.restore(before[:-100])
    assert predictor.snapshot() == before


@pytest.mark.parametrize(
    ("committee", "expected"),
    [("single", [10, 20, 40, 63, 113]), ("default", [10, 14, 20, 28, 40, 63, 113])],
)
def test_models_take_effect_exactly_lag_examples_after_their_freeze(
    committee: Any, expected: list[int]
) -> None:
    X, labels = stream(130)
    config = PredictorConfig(window=60, refit_every=50, refit_lag=13, committee=committee)
    versions = [p.model for p in rows(OnlinePredictor(config).step_many(X, labels))]
    changes = [n for n in range(1, 130) if versions[n] != versions[n - 1]]
    assert changes == expected


@pytest.mark.parametrize(
    ("committee", "expected"),
    [
        ("single", [10, 20, 40, 50, 100, 199, 249]),
        ("default", [10, 14, 20, 28, 40, 50, 56, 80, 100, 110, 145, 199, 249]),
    ],
)
def test_refits_that_begin_early_take_effect_at_once(
    committee: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "EARLY_UNTIL", 150)
    X, labels = stream(260)
    config = PredictorConfig(window=60, refit_every=50, committee=committee)
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    versions = [p.model for p in answers]
    changes = [n for n in range(1, 260) if versions[n] != versions[n - 1]]
    assert changes == expected
    predictor = OnlinePredictor(config)
    assert [predictor.step(Example(x, y)) for x, y in zip(X, labels, strict=True)] == answers


def test_before_two_classes_nothing_is_claimed() -> None:
    predictor = OnlinePredictor(PredictorConfig(classes=("a", "b")))
    answers = [predictor.step(Example([float(i)], "a")) for i in range(45)]
    assert {(p.status, p.label, p.lower, p.upper, p.guarantee) for p in answers} == {
        ("warming", None, 0.0, 1.0, "none")
    }
    report = predictor.step_many(np.ones((55, 1)), ["a"] * 55)[-1]
    assert isinstance(report, ValidityReport)
    assert (report.n, report.scored, report.venn.predicted.accuracy) == (100, 0, None)


def test_a_long_stretch_of_one_class_is_answered() -> None:
    X, labels = stream(60)
    rng = np.random.default_rng(5)
    X = np.concatenate([X, rng.normal(size=(400, 3))])
    answers = rows(
        OnlinePredictor(PredictorConfig(window=50, refit_every=20)).step_many(
            X, [*labels, *["c1"] * 400]
        )
    )
    last = answers[-1]
    assert last.label == "c1"
    assert all(0.0 <= low <= high <= 1.0 for low, high in last.intervals)
    assert all(np.isfinite(p).all() for p in last.maps.values())


def test_a_new_class_takes_effect_at_the_next_refit() -> None:
    X, labels = stream(200)
    labels = [*labels[:110], *["new"] * 5, *labels[115:]]
    config = PredictorConfig(refit_every=50, refit_lag=10)
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    assert answers[109].classes == ("c0", "c1", None)
    assert answers[109].intervals[2][0] == 0.0
    assert answers[159].classes == ("c0", "c1", None)
    assert answers[160].classes == ("c0", "c1", "new", None)
    assert {p.guarantee for p in answers[10:]} == {"approximate"}


def test_an_unlabelled_example_is_answered_and_not_learned() -> None:
    X, labels = stream(60)
    predictor = OnlinePredictor(PredictorConfig(classes=("c0", "c1"), features=3))
    predictor.step_many(X, labels)
    before, arrays = unpack(predictor.snapshot())
    assert predictor.step(Example(X[0])).status == "ok"
    after, following = unpack(predictor.snapshot())
    # Only that it came is noted, for the guarantee.
    assert (before.pop("unlabelled"), after.pop("unlabelled")) == (None, 60)
    assert pack(after, following) == pack(before, arrays)


def bad_examples() -> Iterator[Example]:
    yield Example([1.0, 2.0])
    yield Example([1.0, 2.0, float("nan")], "c0")
    yield Example([1.0, 2.0, 3.0], "other")
    yield Example({"a": 1.0}, "c0")


@pytest.mark.parametrize("example", list(bad_examples()))
def test_a_bad_example_changes_nothing(example: Example) -> None:
    X, labels = stream(60)
    predictor = OnlinePredictor(PredictorConfig(classes=("c0", "c1"), features=3))
    predictor.step_many(X, labels)
    before = predictor.snapshot()
    with pytest.raises(InvalidExample):
        predictor.step(example)
    assert predictor.snapshot() == before


def test_rows_without_as_many_labels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 for 3 rows"):
        OnlinePredictor(PredictorConfig()).step_many(np.zeros((3, 1)), ["a", "b"])


def test_a_missing_value_counts_as_the_training_mean() -> None:
    X, labels = stream(100)
    config = PredictorConfig(missing="mean", scale="standard", maps=())
    with_gap, filled = OnlinePredictor(config), OnlinePredictor(config)
    with_gap.step_many(X, labels)
    filled.step_many(X, labels)
    active = filled.active
    assert active is not None
    mean = active.result.scaling.fill
    gap = with_gap.step(Example([X[0, 0], None, X[0, 2]]))
    assert gap.scores == filled.step(Example([X[0, 0], mean[1], X[0, 2]])).scores


def test_named_features_are_answered_like_the_array_in_sorted_order() -> None:
    X, labels = stream(60)
    arrays, names = OnlinePredictor(PredictorConfig()), OnlinePredictor(PredictorConfig())
    for x, label in zip(X, labels, strict=True):
        named = {"b": x[1], "c": x[2], "a": x[0]}
        assert arrays.step(Example(x, label)) == names.step(Example(named, label))


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_huge_features_get_a_defined_answer_from_a_polynomial_kernel(scale: str) -> None:
    X, labels = stream(60)
    config = PredictorConfig(kernel="poly", scale=scale, gamma=1.0)  # type: ignore[arg-type]
    predictor = OnlinePredictor(config)
    predictor.step_many(X * 1e-3, labels)
    for label in (None, "c0", "c1"):
        answer = predictor.step(Example([1e100, -1e100, 1e52], label))
        assert np.isfinite(answer.scores).all()
    assert np.isfinite(predictor.step_many(X, labels)[-1].scores).all()


def test_a_snapshot_whose_learner_is_damaged_changes_nothing() -> None:
    X, labels = stream(60)
    predictor = OnlinePredictor(CONFIGS[0])
    predictor.step_many(X[:40], labels[:40])
    twin = OnlinePredictor(CONFIGS[0])
    twin.step_many(X[:40], labels[:40])
    header, arrays = unpack(predictor.snapshot())
    for damage in ({"learner": np.zeros(9, dtype=np.uint8)}, {"learner": None}):
        kept = {name: a for name, a in (arrays | damage).items() if a is not None}
        with pytest.raises(InvalidSnapshot):
            predictor.restore(pack(header, kept))
    assert rows(predictor.step_many(X[40:], labels[40:])) == rows(
        twin.step_many(X[40:], labels[40:])
    )


@pytest.mark.parametrize("weights", [{"c9": 2.0}, {"c0": 1e308}])
def test_a_class_weight_that_cannot_work_is_named(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="class_weight"):
        PredictorConfig(classes=("c0", "c1"), class_weight=weights)
