"""Explanation of an answer: the model, the calibration examples like it, its support vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.committee.model import CommitteeModel
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats

NEAREST = 50
"""Calibration examples that are counted as like the answered one."""


@dataclass(frozen=True, slots=True)
class SupportVector:
    """A training example that a machine keeps.

    Attributes
    ----------
    values : tuple of (float or None)
        Its features, in the units they were sent in; None for what is no number. A gap has the mean
        of the training set.
    same : tuple of (bool or None)
        Of features that are no numbers, whether they are coded as those of the example; no text is
        kept that could be shown. None for numbers and for what the model does not know.
    distance : float
        Euclidean, between the scaled features.
    coefficients : tuple of float
        Its weight in each decision function: positive speaks for the class of that function, which
        for two classes is the second.
    """

    values: tuple[float | None, ...]
    same: tuple[bool | None, ...]
    distance: float
    coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an answer rests on.

    Attributes
    ----------
    model, calibration : int
        Versions of the machine and of the maps.
    freeze : int
        Examples learned when the training set was frozen.
    classes : tuple of (str or None)
    scores : tuple of float
        Of the example, one a decision function.
    counts : tuple of int
        Calibration examples of each class.
    near : tuple of int
        The same among the `NEAREST` whose scores are nearest.
    kernel : str
        Of the machine with the support vectors below; empty for one without.
    support_vectors : tuple of SupportVector
        Those nearest to the example.
    """

    model: int
    calibration: int
    freeze: int
    classes: tuple[str | None, ...]
    scores: tuple[float, ...]
    counts: tuple[int, ...]
    near: tuple[int, ...]
    kernel: str
    support_vectors: tuple[SupportVector, ...]


def explain(active: ActiveModel, x: ArrayLike, most: int = 5) -> Explanation:
    """Return what the answer to an example rests on; the model is not changed.

    Parameters
    ----------
    active : ActiveModel
        As it was before the answer.
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
        near=tuple(np.bincount(codes[order[:NEAREST]], minlength=size).tolist()),
        kernel="" if machine is None else machine.kernel.name,
        support_vectors=(
            () if machine is None else _nearest(active, machine, scaled[0], row.shape[1], most)
        ),
    )


def _machine(active: ActiveModel) -> KernelModel | None:
    """Return the machine with support vectors; of a committee the first that has them."""
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
        coding, same = scaling.coding, none
        if coding is not None:
            values, same = coding.uncoded(values, vector == scaled, n_features)
        weights = tuple(machine.coef[:, j].tolist())
        found.append(SupportVector(tuple(values), tuple(same), float(distances[j]), weights))
    return tuple(found)
