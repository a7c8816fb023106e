"""Explain an answer: its model, similar examples, support vectors, contributions of features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.refit.feature_encoder import BOOLEAN, CATEGORY, NUMBER, TEXT
from online_svm.refit.scaling import Scaling
from online_svm.stream.prediction import PredictionBlock
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats

if TYPE_CHECKING:
    from online_svm.predictor.online_predictor import OnlinePredictor

N_NEAREST_EXAMPLES = 50
"""Calibration examples nearest to the explained one whose classes are counted."""


@dataclass(frozen=True, slots=True)
class SupportVector:
    """A support vector in the units of the features."""

    # Values as they were sent; None for a feature that is not numeric. A missing value is the mean
    # of the training set.
    values: tuple[float | None, ...]
    # For features that are not numeric: whether the vector has the example's code (texts are not
    # stored). None for numbers and for features unknown to the model.
    same: tuple[bool | None, ...]
    distance: float  # Euclidean distance to the example, in scaled features
    # Weight in each decision function. A positive weight favours the class of the function; with
    # two classes, the second.
    coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence behind one answer."""

    model: int  # version of the model
    calibration: int  # version of the calibrators
    freeze: int  # examples learned when the training set was frozen
    classes: tuple[str | None, ...]
    scores: tuple[float, ...]  # decision values of the example
    counts: tuple[int, ...]  # calibration examples of each class
    near: tuple[int, ...]  # the same among the `N_NEAREST_EXAMPLES` with the nearest scores
    kernel: str  # of the machine whose support vectors follow; empty if no machine has any
    support_vectors: tuple[SupportVector, ...]  # nearest first


def explain(active: ActiveModel, x: ArrayLike, most: int = 5) -> Explanation:
    """Return the evidence behind the answer to an example; the model is unchanged.

    Parameters
    ----------
    active : ActiveModel
        The model before the answer.
    x : array-like of shape (n_features,)
        The features as they were sent.
    most : int
        Support vectors to return.

    Examples
    --------
    >>> from online_svm import OnlinePredictor, PredictorConfig
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["a", "b"], committee="single"))
    >>> X = np.arange(20.0)[:, None] % 2
    >>> answers = predictor.step_many(X, ["ab"[i % 2] for i in range(20)])
    >>> found = explain(predictor.active, [1.0], most=1)
    >>> found.kernel, found.support_vectors[0].values, sum(found.counts)
    ('rbf', (1.0,), 7)
    """
    row = np.asarray(x, dtype=np.float64)[None, :]
    scaled = active.result.scaling.transform(row)
    scores = active.result.model.scores(scaled)
    codes = active.calibration.codes
    size = len(active.view.classes)
    order = np.argsort(np.linalg.norm(active.calibration.scores - scores, axis=1), kind="stable")
    machine = _machine(active)
    return Explanation(
        model=active.version,
        calibration=active.calibration_version,
        freeze=active.result.freeze,
        classes=active.view.classes,
        scores=tuple(scores[0].tolist()),
        counts=tuple(np.bincount(codes, minlength=size).tolist()),
        near=tuple(np.bincount(codes[order[:N_NEAREST_EXAMPLES]], minlength=size).tolist()),
        kernel="" if machine is None else machine.kernel.name,
        support_vectors=(
            () if machine is None else _nearest(active, machine, scaled[0], row.shape[1], most)
        ),
    )


def _machine(active: ActiveModel) -> KernelModel | None:
    """Return the first machine with support vectors, if any."""
    model = active.result.model
    machines = model.machines if isinstance(model, CommitteeModel) else (model,)
    return next((machine for machine in machines if isinstance(machine, KernelModel)), None)


def _nearest(
    active: ActiveModel, machine: KernelModel, scaled: Floats, n_features: int, most: int
) -> tuple[SupportVector, ...]:
    distances = np.linalg.norm(machine.vectors - scaled[:, None], axis=0)
    chosen = np.argsort(distances, kind="stable")[:most]
    scaling = active.result.scaling
    none: list[bool | None] = [None] * n_features
    found = []
    for j in chosen:
        vector = machine.vectors[:, j]
        values = (vector * scaling.width + scaling.mean).tolist()
        encoder, same = scaling.encoder, none
        if encoder is not None:
            values, same = encoder.decoded(values, vector == scaled, n_features)
        weights = tuple(machine.coef[:, j].tolist())
        found.append(SupportVector(tuple(values), tuple(same), float(distances[j]), weights))
    return tuple(found)


MAX_CONTRIBUTIONS = 4096
"""Features of an example, from the first, whose contributions are computed."""

_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Contribution:
    """The effect of one feature on the probability of the predicted label."""

    feature: int  # index in the row of features
    name: str  # its name; the index if features have no names
    # The value that took its place: the mean of a number in the training set. None for the most
    # frequent category, whose text is not stored, and for a missing value.
    typical: float | None
    effect: float  # probability of the label, less that with the typical value


def contributions(
    predictor: "OnlinePredictor",
    x: ArrayLike,
    answer: Callable[[Floats], PredictionBlock] | None = None,
) -> tuple[Contribution, ...]:
    """Return the effect of each feature on the answer to an example, the largest first.

    Each feature is replaced alone: a number by its mean in the training set, a category by the most
    frequent one, a time by a missing value. So features that act only together may both have a
    large effect or both none, and the effects do not add up. Features whose value is typical, texts
    and features unknown to the model are left out. What is learned is unchanged.

    Parameters
    ----------
    predictor : OnlinePredictor
        The predictor before the answer. While it warms up nothing is returned.
    x : array-like of shape (n_features,)
        The features as they were sent.
    answer : callable, optional
        What answers rows; the predictor without it.

    Examples
    --------
    >>> from online_svm import OnlinePredictor, PredictorConfig
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["a", "b"]))
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> answers = predictor.step_many(X, ["ab"[int(row[1] > 0)] for row in X])
    >>> [found.feature for found in contributions(predictor, [1.0, 2.0])]
    [1, 0]
    """
    if predictor.active is None:
        return ()
    answer = predictor.frozen().answer if answer is None else answer
    row = np.asarray(x, dtype=np.float64)
    typical = typical_row(predictor.active.result.scaling, len(row))
    known = [
        f for f, (cell, value) in enumerate(typical[:MAX_CONTRIBUTIONS])
        if value is not None and not _are_same(row[f], cell)
    ]  # fmt: skip
    own = answer(row[None, :])
    label = int(own.label[0])
    effects: list[float] = []
    for begin in range(0, len(known), _ROWS_AT_ONCE):
        part = known[begin : begin + _ROWS_AT_ONCE]
        rows = np.repeat(row[None, :], len(part), axis=0)
        rows[np.arange(len(part)), part] = [typical[f][0] for f in part]
        effects += (own.point[0, label] - answer(rows).point[:, label]).tolist()
    names = predictor.schema.names or range(len(row))
    found = [
        Contribution(f, str(names[f]), _number_or_none(typical[f][1]), effect)
        for f, effect in zip(known, effects, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-abs(one.effect), one.feature)))


def typical_row(scaling: Scaling, n_features: int) -> list[tuple[float, float | None]]:
    """Return the typical cell of each feature, and the number to show for it.

    The number is NaN for a cell that is no number, and None for a feature that has no effect.
    """
    if scaling.encoder is None:
        return [(value, value) for value in scaling.fill.tolist()]
    encoder = scaling.encoder
    found: list[tuple[float, float | None]] = [(np.nan, None)] * n_features
    for c, f in enumerate(encoder.sources.tolist()):
        begin, stop = encoder.starts[c : c + 2].tolist()
        if f >= n_features or encoder.kinds[c] == TEXT:
            continue
        if encoder.kinds[c] == NUMBER:
            value = float(scaling.fill[begin])
            found[f] = value, value
        elif encoder.kinds[c] in (BOOLEAN, CATEGORY):
            first, last = encoder.firsts[c : c + 2].tolist()
            often = int(np.argmax(scaling.fill[begin:stop]))
            at = first + np.flatnonzero(encoder.places[first:last] == often)
            found[f] = (float(encoder.cells[at[0]]) if len(at) else np.nan), np.nan
        else:
            found[f] = np.nan, np.nan
    return found


def _number_or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value


def _are_same(cell: float, typical: float) -> bool:
    return bool(cell == typical or (np.isnan(cell) and np.isnan(typical)))
