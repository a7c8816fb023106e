"""OnlinePredictor with the P-SVM: a stream in which some examples have a probability, no label."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.preprocessing import StandardScaler

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample, InvalidInput
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit import learner, scaling
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import Prediction, PredictionBlock, ValidityReport
from online_svm.stream.split import is_early_refit, is_refit_due, training_mask
from online_svm.svm.probabilistic_svc import ProbabilisticSVC
from online_svm.types import Floats

Stream = tuple[Floats, list[str | None], Floats]

BASE: dict[str, Any] = {"learner": "psvm", "classes": ("a", "b"), "features": 3}
CONFIGS = [
    PredictorConfig(**BASE, window=60, refit_every=25, metrics_every=7),
    PredictorConfig(
        **BASE, window=80, refit_every=30, refit_lag=0, split="oldest", map_data="training",
        class_weight="balanced", taxonomy="class-quantile",
    ),
    PredictorConfig(
        **BASE, refit_every=20, window=50, taxonomy="venn-abers", maps=("implied",),
    ),
]  # fmt: skip


def stream(n: int, share: float = 0.3, seed: int = 0) -> Stream:
    """Return two overlapping classes, a share of the examples with a noisy posterior instead."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + np.where(codes[:, None] == 1, 0.8, -0.8)
    given = rng.random(n) < share
    posterior = 1.0 / (1.0 + np.exp(-1.6 * X.sum(axis=1)))
    noisy = np.clip(posterior + rng.uniform(-0.1, 0.1, n), 0.0, 1.0)
    labels = [None if p else "ab"[code] for p, code in zip(given, codes, strict=True)]
    return X, labels, np.where(given, noisy, np.nan)


def rows(answers: list[PredictionBlock | ValidityReport]) -> list[Prediction]:
    blocks = [block for block in answers if isinstance(block, PredictionBlock)]
    return [block.row(i) for block in blocks for i in range(len(block))]


def run(config: PredictorConfig, data: Stream, cuts: list[int]) -> list[Any]:
    """Return every prediction, report and the final state as comparable values."""
    predictor, out = OnlinePredictor(config), list[Any]()
    X, labels, probs = data
    for a, b in pairwise([0, *cuts, len(labels)]):
        for answer in predictor.step_many(X[a:b], labels[a:b], probs[a:b]):
            out.extend(rows([answer]) if isinstance(answer, PredictionBlock) else [answer])
    return [*out, predictor.snapshot()]


class Reference:
    """The specification read literally, with `ProbabilisticSVC` and scikit-learn's scaler."""

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self.seen: list[tuple[Floats, str | None, float]] = []
        self.active: dict[str, Any] | None = None
        self.pending: dict[str, Any] | None = None

    def step(self, x: Floats, label: str | None, p: float) -> tuple[float, Floats]:
        answer = self.answer(x)
        self.seen.append((x, label, p))
        if self.active is not None:
            self.active["calibration"].append(len(self.seen) - 1)
        self.schedule()
        return answer

    def answer(self, x: Floats) -> tuple[float, Floats]:
        if self.active is None:
            return math.nan, np.tile([0.0, 1.0], (2, 1))
        labelled = [i for i in self.active["calibration"] if self.seen[i][1] is not None]
        labelled = labelled[-self.config.window :] if self.config.window else labelled
        score = self.score(x)
        inside = [self.seen[i][1] for i in labelled if self.side(i) == (score > 0)]
        counts = np.array([inside.count(c) for c in "ab"])
        return score, np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1)

    def schedule(self) -> None:
        n, config = len(self.seen), self.config
        if self.pending and self.pending["at"] == n:
            self.active, self.pending = self.pending, None
            self.active["calibration"] += range(self.active["freeze"], n)
        if not is_refit_due(n, config.refit_every):
            return
        start = 0 if config.window is None else max(0, n - config.window)
        known = {label for _, label, _ in self.seen[start:] if label is not None}
        if self.active is None and len(known) < 2:
            return
        trains = training_mask(config.split, start, n, config.training_share, config.seed)
        early = n < config.lags_from or is_early_refit(n, config.refit_every)
        lag = 0 if early else config.lag
        self.pending = self.fit([i for i in range(start, n) if trains[i - start]]) | {
            "calibration": [i for i in range(start, n) if not trains[i - start]],
            "at": n + lag,
            "freeze": n,
            "sides": {},
        }
        if lag == 0:
            self.active, self.pending = self.pending, None

    def fit(self, T: list[int]) -> dict[str, Any]:
        X = np.array([self.seen[i][0] for i in T])
        scaler = StandardScaler().fit(X)
        signs = np.array([{"a": -1, "b": 1, None: 0}[self.seen[i][1]] for i in T])
        prob = np.array([self.seen[i][2] for i in T])
        config = self.config
        machine = ProbabilisticSVC(config.C, config.C_prob, gamma=0.3, eta=config.eta, tol=1e-9)
        return {"machine": machine.fit(scaler.transform(X), signs, prob), "scaler": scaler}

    def score(self, x: Floats) -> float:
        assert self.active is not None
        row = self.active["scaler"].transform(x[None, :])
        return float(self.active["machine"].decision_function(row)[0])

    def side(self, i: int) -> bool:
        assert self.active is not None
        sides = self.active["sides"]
        if i not in sides:
            sides[i] = self.score(self.seen[i][0]) > 0
        return bool(sides[i])


@pytest.mark.parametrize("split", ["oldest", "interleaved"])
@pytest.mark.parametrize("schedule", [(60, 25, 20), (None, 15, 0), (40, 50, 49)])
def test_answers_are_those_of_the_specification_read_literally(
    schedule: tuple[int | None, int, int], split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "TOLERANCE", 1e-8)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    window, every, lag = schedule
    config = PredictorConfig(
        **BASE, window=window, refit_every=every, refit_lag=lag, split=split, gamma=0.3,
        C=2.0, C_prob=5.0, eta=0.05,
    )  # fmt: skip
    X, labels, probs = stream(150)
    reference = Reference(config)
    expected = [reference.step(*row) for row in zip(X, labels, probs, strict=True)]
    answers = rows(OnlinePredictor(config).step_many(X, labels, probs))
    for answer, (score, intervals) in zip(answers, expected, strict=True):
        assert (answer.status == "warming") == math.isnan(score)
        if answer.status == "ok":
            assert answer.scores[0] == pytest.approx(score, abs=1e-5)
            assert np.allclose(answer.venn, intervals, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_with_labels_only_the_scores_are_those_of_the_svm(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "TOLERANCE", 1e-7)
    monkeypatch.setattr(scaling, "DEGREE", 2)
    monkeypatch.setattr(scaling, "COEF0", 1.0)
    X, labels, _ = stream(160, share=0.0)
    shared: dict[str, Any] = {
        "classes": ("a", "b"), "window": 70, "refit_every": 30, "kernel": kernel,
        "class_weight": {"b": 2.0},
    }  # fmt: skip
    plain = rows(
        OnlinePredictor(PredictorConfig(**shared, committee="single")).step_many(X, labels)
    )
    tubes = rows(OnlinePredictor(PredictorConfig(**shared, learner="psvm")).step_many(X, labels))
    assert [p.status for p in plain] == [p.status for p in tubes]
    for one, other in zip(plain, tubes, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
    assert {p.guarantee for p in tubes if p.status == "ok"} == {"exact"}


def test_the_map_of_the_machine_itself_comes_last_and_is_scored() -> None:
    predictor = OnlinePredictor(CONFIGS[0])
    answers = predictor.step_many(*stream(120))
    last = rows(answers)[-1]
    assert list(last.maps) == ["platt", "isotonic", "binning", "psvm"]
    a = math.log(1.0 / 0.1 - 1.0)
    p = 1.0 / (1.0 + math.exp(-a * last.scores[0]))
    assert last.maps["psvm"] == pytest.approx((1.0 - p, p), abs=1e-15)
    reports = [answer for answer in answers if isinstance(answer, ValidityReport)]
    assert reports[-1].maps["psvm"].brier is not None


@given(
    cuts=st.lists(st.integers(0, 90), max_size=6),
    kinds=st.lists(st.sampled_from("ypn"), min_size=90, max_size=90),
    lag=st.integers(0, 14),
)
def test_any_batches_of_any_stream_give_the_same_bytes(
    cuts: list[int], kinds: list[str], lag: int
) -> None:
    X, labels, _ = stream(90, share=0.0)
    kept = [label if kind == "y" else None for label, kind in zip(labels, kinds, strict=True)]
    probs = np.where(np.array(kinds) == "p", np.linspace(0.0, 1.0, 90), np.nan)
    config = PredictorConfig(**BASE, window=30, refit_every=15, refit_lag=lag, metrics_every=4)
    data = X, kept, probs
    assert run(config, data, sorted(cuts)) == run(config, data, [])


def test_step_and_step_many_agree() -> None:
    X, labels, probs = stream(100)
    one, many = OnlinePredictor(CONFIGS[0]), OnlinePredictor(CONFIGS[0])
    single = [
        one.step(Example(x, y, None if math.isnan(p) else p))
        for x, y, p in zip(X, labels, probs, strict=True)
    ]
    assert single == rows(many.step_many(X, labels, probs))
    assert one.snapshot() == many.snapshot()


def test_a_probability_is_learned_and_counted_but_not_scored() -> None:
    X, labels, probs = stream(150, share=0.5)
    predictor = OnlinePredictor(PredictorConfig(**BASE, window=None, refit_every=50, refit_lag=0))
    answers = predictor.step_many(X, labels, probs)
    assert predictor.n == 150
    assert [p.n for p in rows(answers)] == list(range(150))
    report = predictor._answerer.scoring._validity.report(150)
    warm = [p.status == "ok" for p in rows(answers)]
    scored = sum(1 for y, ok in zip(labels, warm, strict=True) if ok and y is not None)
    assert report.scored == scored < 150
    active = predictor.active
    assert active is not None
    trains = training_mask("interleaved", 0, 150, 0.7)
    outside = [y for y, t in zip(labels, trains, strict=True) if y is not None and not t]
    assert len(active.calibration.codes) == len(outside)
    assert (active.calibration.codes >= 0).all()


def test_a_later_training_set_of_probabilities_alone_is_learned() -> None:
    X, labels, probs = stream(80, share=1.0)
    trains = training_mask("interleaved", 0, 80, 0.7)
    for i in [*range(40), *(40 + np.flatnonzero(~trains[40:]))]:
        labels[i], probs[i] = "ab"[i % 2], math.nan
    config = PredictorConfig(
        **BASE, window=40, refit_every=40, refit_lag=0, maps=("implied", "platt")
    )
    predictor = OnlinePredictor(config)
    predictor.step_many(X, labels, probs)
    low, high = (predictor.step(Example(x)) for x in ([-2.0] * 3, [2.0] * 3))
    assert low.svm_label == "a"
    assert high.svm_label == "b"
    assert low.maps["implied"] == (0.5, 0.5)  # no label was there to vote on


@pytest.mark.parametrize("learner", ["svc", "psvm"])
def test_there_is_no_answer_before_something_was_trained_on(learner: str) -> None:
    X, labels, _ = stream(60, share=0.0)
    config = PredictorConfig(
        classes=("a", "b"), learner=learner, train_fraction=0.01, refit_every=20
    )
    assert not training_mask("interleaved", 0, 60, 0.01).any()
    assert {answer.status for answer in rows(OnlinePredictor(config).step_many(X, labels))} == {
        "warming"
    }


@pytest.mark.parametrize("learner", ["svc", "psvm"])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_a_later_training_set_of_nothing_leaves_an_answer(learner: str, scale: str) -> None:
    X, labels, _ = stream(60, share=0.0)
    labels[:20] = ["a", "b"] * 10
    settings = {"window": 20, "refit_every": 20, "refit_lag": 0, "train_fraction": 0.1}
    config = PredictorConfig(classes=("a", "b"), learner=learner, scale=scale, seed=12, **settings)
    trains = training_mask("interleaved", 0, 40, 0.1, seed=12)
    assert {labels[i] for i in np.flatnonzero(trains[:20])} == {"a", "b"}
    assert not trains[20:].any()
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    assert answers[20].status == "ok"
    assert answers[40].scores == (-1.0,)
    assert answers[40].venn[0][0] == pytest.approx(labels[20:40].count("a") / 21)


def test_probabilities_move_the_scores() -> None:
    X, labels, probs = stream(100, share=0.5)
    config = PredictorConfig(**BASE, refit_every=100, refit_lag=0)
    with_p, without = OnlinePredictor(config), OnlinePredictor(config)
    with_p.step_many(X, labels, probs)
    without.step_many(X, labels, np.where(np.isnan(probs), np.nan, 0.5))
    assert with_p.step(Example(X[0])).scores != without.step(Example(X[0])).scores


def test_the_guarantee_is_approximate_while_probabilities_are_among_the_available() -> None:
    X, labels, _ = stream(200, share=0.0)
    probs = np.full(200, np.nan)
    probs[64], labels[64] = 0.5, None
    config = PredictorConfig(**BASE, window=50, refit_every=20, refit_lag=0)
    answers = rows(OnlinePredictor(config).step_many(X, labels, probs))
    kinds = [p.guarantee for p in answers]
    assert kinds[:10] == ["none"] * 10
    # Known from the 65th on, in the window of the refits at n = 80 and 100, no more at 120.
    assert kinds[10:] == ["exact"] * 55 + ["approximate"] * 55 + ["exact"] * 80
    assert "probability instead of a label" in (answers[70].reason or "")


def test_with_probabilities_alone_nothing_is_claimed() -> None:
    X, _, _ = stream(60)
    predictor = OnlinePredictor(PredictorConfig(**BASE, refit_every=20))
    answers = rows(predictor.step_many(X, [None] * 60, np.linspace(0.0, 1.0, 60)))
    assert {p.status for p in answers} == {"warming"}
    assert predictor.n == 60


@pytest.mark.parametrize(
    ("example", "code"),
    [
        (Example([1.0, 2.0, 3.0], "a", 0.5), "duplicate_field"),
        (Example([1.0, 2.0, 3.0], p=1.5), "out_of_range"),
        (Example([1.0, 2.0, 3.0], p=-0.1), "out_of_range"),
        (Example([1.0, 2.0, 3.0], p=math.nan), "not_finite"),
        (Example([1.0, 2.0, 3.0], p=math.inf), "not_finite"),
        (Example([1.0, 2.0, 3.0], p=10**400), "not_finite"),
        (Example([1.0, 2.0, 3.0], p=True), "unparsable"),
        (Example([1.0, 2.0, 3.0], p="0.5"), "unparsable"),  # type: ignore[arg-type]
        (Example([1.0, 2.0], p=0.5), "dimension"),
    ],
)
def test_a_probability_that_cannot_be_used_changes_nothing(example: Example, code: str) -> None:
    predictor = OnlinePredictor(CONFIGS[0])
    predictor.step_many(*stream(60))
    before = predictor.snapshot()
    with pytest.raises(InvalidExample) as refused:
        predictor.step(example)
    assert refused.value.code == code
    assert predictor.snapshot() == before


def test_a_probability_is_refused_where_the_learner_takes_labels_only() -> None:
    predictor = OnlinePredictor(PredictorConfig(classes=("a", "b")))
    with pytest.raises(InvalidExample, match="use learner psvm") as refused:
        predictor.step(Example([1.0], p=0.5))
    assert refused.value.code == "unsupported"
    with pytest.raises(InvalidInput, match="use learner psvm"):
        predictor.step_many(np.ones((1, 1)), [None], np.array([0.5]))


@pytest.mark.parametrize(
    ("labels", "probs", "message"),
    [
        (["a", None], [0.5, math.nan], "row 0 has a label as well"),
        ([None, None], [0.5, 1.1], "row 1 has one that is not in"),
        ([None, None], [0.5], "for 2 rows"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(
    labels: list[str | None], probs: list[float], message: str
) -> None:
    predictor = OnlinePredictor(CONFIGS[0])
    with pytest.raises(InvalidInput, match=message):
        predictor.step_many(np.ones((2, 3)), labels, np.array(probs))


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": None},
        {"classes": ("a", "b", "c")},
        {"eta": 0.5},
        {"eta": 0.0},
        {"C_prob": 0.0},
    ],
)
def test_settings_that_a_p_svm_cannot_work_with_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="|".join(changes) + "|learner"):
        PredictorConfig(**(BASE | changes))


def last_residual(seed: int, *, asks_doubted: bool) -> float:
    """Return 1{y = b} - p^y(b) of an example after 40 others; nan without an answer.

    Who is doubted, and so has a probability instead of a label, depends on x and on the class.
    """
    rng = np.random.default_rng(seed)
    y = rng.random(400) < 0.4
    X = rng.normal(size=(400, 1)) + 1.2 * y[:, None]
    doubted = rng.random(400) < np.where(y, 0.8, 0.1) * np.where(X[:, 0] > 0.0, 1.0, 0.5)
    last = 40 + int(np.flatnonzero(doubted[40:] == asks_doubted)[0])
    kept = [*range(40), last]
    config = PredictorConfig(**(BASE | {"features": 1}), maps=(), refit_every=40, seed=seed)
    predictor = OnlinePredictor(config.model_copy(update={"refit_lag": 0}))
    labels = [None if doubted[i] else "ab"[int(y[i])] for i in kept[:-1]]
    probs = np.where(doubted[kept[:-1]], 0.5 + 0.5 * np.tanh(X[kept[:-1], 0] - 0.6), np.nan)
    predictor.step_many(X[kept[:-1]], labels, probs)
    answer = predictor.step(Example(X[last]))
    if answer.status != "ok":
        return math.nan
    return float(y[last]) - answer.venn[1][int(y[last])]


@pytest.mark.parametrize("asks_doubted", [False, True])
def test_validity_is_exact_for_labelled_examples_and_not_for_doubted_ones(
    asks_doubted: bool,
) -> None:
    found = np.array([last_residual(seed, asks_doubted=asks_doubted) for seed in range(800)])
    residuals = found[~np.isnan(found)]
    assert len(residuals) > 740  # in the others nobody of T has the label b
    z = residuals.mean() / (residuals.std() / math.sqrt(len(residuals)))
    assert (abs(z) > 4.0) == asks_doubted
