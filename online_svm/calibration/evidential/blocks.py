"""Evidence that is counted in blocks of neighbouring scores: one mass function a block."""

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from online_svm.calibration.argument_checks import check_finite
from online_svm.calibration.diagram import Blocks, midpoints
from online_svm.calibration.evidential.binomial import (
    BINOMIAL_MODELS,
    BinomialModel,
    binomial_contour,
    binomial_mass,
)
from online_svm.calibration.evidential.evidential_map import (
    EvidentialMap,
    check_alpha,
    check_option,
)
from online_svm.calibration.evidential.masses import vacuous
from online_svm.calibration.fitted_map import CountsMap
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.arrays import read_floats, read_ints
from online_svm.types import Arrays, Floats, Ints


class BlockMap(CountsMap, EvidentialMap):
    """A map that is constant on each block of scores; between two it changes half way.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}
    alpha : float

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each block but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each block.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each block.
    """

    _learned = "totals_"
    edges_: Floats
    totals_: Ints
    positives_: Ints
    masses_: Floats

    def __init__(self, model: BinomialModel = "likelihood", alpha: float = 0.05) -> None:
        self.model: BinomialModel = model
        self.alpha = alpha
        self._check_parameters()

    def _check_parameters(self) -> None:
        check_option(self.model, BINOMIAL_MODELS, "model")
        check_alpha(self.alpha)

    @abstractmethod
    def _shape(self, masses: Floats) -> Floats:
        """Turn the masses that each block has by itself into those of the map."""

    @override
    def mass(self, scores: ArrayLike) -> Floats:
        values = self._asked(scores)
        return self.masses_[self._block(values)] if len(self.totals_) else vacuous(len(values))

    @override
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        block = self._block(self._asked([s]))
        proportions = check_proportions(tau)
        if not len(self.totals_):
            return np.ones(len(proportions))
        k, n = self.positives_[block], self.totals_[block]
        return binomial_contour(self.model, k, n, proportions, self.alpha)

    def _state(self) -> Arrays:
        return {
            "model": np.array([BINOMIAL_MODELS.index(self.model)], dtype=np.int64),
            "alpha": np.array([float(self.alpha)]),
            "edges": self.edges_,
            "totals": self.totals_,
            "positives": self.positives_,
        }

    @classmethod
    def _from_state(cls, state: Arrays) -> Self:
        model, alpha = (
            int(read_ints(state, "model", 1)[0]),
            float(read_floats(state, "alpha", 1)[0]),
        )
        totals = read_ints(state, "totals")
        positives = read_ints(state, "positives", len(totals))
        possible = 0 <= model < len(BINOMIAL_MODELS) and 0.0 <= alpha <= 1.0
        if not possible or ((positives < 0) | (positives > totals) | (totals < 1)).any():
            raise InvalidSnapshot("map state: a count, the model or alpha is out of range")
        restored = cls(model=BINOMIAL_MODELS[model], alpha=alpha)
        edges = read_floats(state, "edges", max(len(totals) - 1, 0))
        restored._set(edges, totals, positives)
        return restored

    def _set_blocks(self, blocks: Blocks) -> None:
        edges = midpoints(blocks.upper[:-1], blocks.lower[1:])
        self._set(edges, blocks.totals, blocks.positives)

    def _set(self, edges: Floats, totals: Ints, positives: Ints) -> None:
        self.edges_, self.totals_, self.positives_ = edges, totals, positives
        self.masses_ = self._shape(binomial_mass(self.model, positives, totals, self.alpha))

    def _block(self, scores: Floats) -> Ints:
        return np.searchsorted(self.edges_, scores, side="left")


def check_proportions(tau: ArrayLike) -> Floats:
    """Return proportions as an array of shape (m,).

    Raises
    ------
    InvalidInput
        If one is outside [0, 1].

    Examples
    --------
    >>> check_proportions(0.5).tolist()
    [0.5]
    """
    values = check_finite(np.atleast_1d(np.asarray(tau, dtype=np.float64)), "tau")
    if ((values < 0.0) | (values > 1.0)).any():
        raise InvalidInput("tau: a proportion is outside [0, 1]")
    return values
