"""Explain an answer by its model, similar calibration examples and nearest support vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats

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
