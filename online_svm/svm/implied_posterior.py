"""Provide class probabilities from the votes of machines with different class weights."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from online_svm.calibration.isotonic import IsotonicMap
from online_svm.calibration.one_against_all import OneAgainstAll, normalise_rows
from online_svm.errors import InvalidConfig
from online_svm.svm.implied_bank import BankPlan, ImpliedBank, Weighting, adjusted, fit_banks
from online_svm.svm.kernel_model import class_penalties, kernel_for, positive, positive_integer
from online_svm.svm.machine_parameters import SolverParameters, WeightParameters
from online_svm.svm.validation import (
    checked_examples,
    checked_rows,
    class_codes,
    declared_classes,
    refuse_missing_labels,
    warn_of_max_steps,
)
from online_svm.types import Floats, Ints


@dataclass(eq=False, repr=False)
class ImpliedPosterior(SolverParameters, WeightParameters, ClassifierMixin, BaseEstimator):
    """Posterior probabilities implied by a family of machines (Nalbantov & Ivanov).

    All machines of a bank are fitted to the same examples; from one machine to the next the weight
    of the positive class grows and the weight of the negative class shrinks. The estimate is the
    share of machines that vote "positive", (votes + 1)/(n_models + 2), where a vote on a decision
    surface counts half. It needs no calibrator and no held-out examples.

    With more than two classes there is one bank for each class against the rest, and the estimates
    are divided by their sum. This is a heuristic: the paper covers two classes. The estimates are
    points and have no guarantee.

    Parameters
    ----------
    n_models : int
        Number m of machines in a bank. Machine j has the penalties z C and z' C.
    C : float
        Penalty of a margin violation at z = 1; the middle machine of a balanced bank has C/2.
    kernel, gamma, degree, coef0, class_weight, cache_mb
        As in `OnlineSVC`; gamma="scale" and "balanced" weights come from the rows in `fit`.
    weighting : {"balanced", "prior"}
        "balanced": z = j/(m + 1) and z' = 1 - z. "prior": every machine has the same effective
        number of examples, z C+ n+ + z' C- n-. The two agree if C+ n+ = C- n-.
    priors : None, "data" or array-like of shape (n_classes,)
        Class frequencies of the posterior. None: the votes estimate it under the prior odds
        C+ n+ / (C- n-). "data": the frequencies in the data, n+ / n-.
    tol : float
        Largest violation of optimality of a machine.
    max_steps : int
        Limit on the pair steps of a machine; reaching it raises a ConvergenceWarning.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    gamma_ : float
    odds_ : ndarray of shape (n_banks,)
        C+ n+ / (C- n-) of each bank; for two classes one bank, where positive means the second.
    n_iter_ : int
        Largest number of pair steps of one machine.

    References
    ----------
    G. Nalbantov, S. Ivanov, Tutorial on implied posterior probability for SVMs.

    Examples
    --------
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"]
    >>> model = ImpliedPosterior(n_models=9, C=1.0, kernel="linear").fit(X, y)
    >>> model.predict_proba([[-2.0], [0.0], [2.0]]).round(2).tolist()
    [[0.91, 0.09], [0.5, 0.5], [0.09, 0.91]]
    """

    n_models: int = 199
    _: KW_ONLY
    C: float = 1.0  # by name: the first parameter is `n_models`
    weighting: Weighting = "balanced"
    priors: ArrayLike | Literal["data"] | None = None
    max_steps: int = 10_000_000

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the bank, or one bank a class.

        Raises InvalidInput if X is not a finite matrix, or y holds fewer than two classes;
        InvalidConfig if a parameter is out of its range.
        """
        self._check_parameters()
        rows, labels = checked_examples(self, X, y)
        self.classes_ = declared_classes(labels)
        codes = class_codes(self.classes_, labels)
        kernel = kernel_for(self, rows)
        self.gamma_ = kernel.gamma
        penalties = class_penalties(self.C, self.class_weight, self.classes_, codes)
        plan = BankPlan(self.n_models, self.weighting, self.tol, self.max_steps)
        banks = fit_banks(kernel, rows, codes, penalties, plan, self.cache_mb)
        self._banks = [bank.packed() for bank in banks]
        self._isotonic: OneAgainstAll | None = None
        return self._finish(banks, codes)

    def calibrate(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit isotonic regression on examples that were not in `fit`, for `predict_proba`.

        Raises InvalidInput if X is not a finite matrix, or a label was not in `fit`.
        """
        check_is_fitted(self)
        refuse_missing_labels(y)
        estimates = self._estimates(X)
        codes = class_codes(self.classes_, np.asarray(y))
        self._isotonic = OneAgainstAll(IsotonicMap).fit(estimates, codes)
        return self

    def vote_shares(self, X: ArrayLike) -> Floats:
        """Return (votes + 1)/(n_models + 2): shape (n,) for two classes, (n, K) for more.

        They are not adjusted to `priors`, not calibrated, and not divided by their sum. The values
        of a row do not depend on the other rows. Raises InvalidInput if X is not a finite matrix
        with the number of features in `fit`.
        """
        check_is_fitted(self)
        rows = checked_rows(self, X)
        return _squeezed(np.column_stack([bank.shares(rows) for bank in self._banks]))

    def crossings(self, X: ArrayLike) -> Ints:
        """Return how often each row's vote changes along z: shape (n,), or (n, K) for K > 2.

        The vote is "negative" at z = 0 and "positive" at z = 1, so the regular case is 1. A larger
        number is the paper's degeneracy: surfaces cross, and the posterior is ambiguous. Errors are
        as in `vote_shares`.
        """
        check_is_fitted(self)
        rows = checked_rows(self, X)
        return _squeezed(np.column_stack([bank.crossings(rows) for bank in self._banks]))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of each class, shape (n, n_classes).

        Errors are as in `vote_shares`.
        """
        check_is_fitted(self)
        estimates = self._estimates(X)
        if self._isotonic is not None:
            return self._isotonic.predict(estimates)
        if len(self._banks) == 1:
            return np.column_stack((1.0 - estimates, estimates))
        return normalise_rows(estimates)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest probability; ties go to the first class."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _estimates(self, X: ArrayLike) -> Floats:
        shares = self.vote_shares(X).reshape(-1, len(self._banks))
        return adjusted(shares, self._odds_factors)

    def _check_parameters(self) -> None:
        for name in ("n_models", "max_steps"):
            positive_integer(getattr(self, name), name)
        for name in ("C", "tol", "cache_mb"):
            positive(getattr(self, name), name)
        if self.weighting not in ("balanced", "prior"):
            raise InvalidConfig(
                f"weighting: {self.weighting!r} is unknown; use 'balanced' or 'prior'"
            )

    def _finish(self, banks: tuple[ImpliedBank, ...], codes: Ints) -> Self:
        self.odds_ = np.array([bank.odds for bank in banks])
        self.n_iter_ = max(bank.steps for bank in banks)
        self._odds_factors = self._requested_odds(codes) / self.odds_
        if self.n_iter_ >= self.max_steps:
            warn_of_max_steps(self.max_steps, self.tol)
        return self

    def _requested_odds(self, codes: Ints) -> Floats:
        """Return the requested prior odds of each bank's positive class."""
        if self.priors is None:
            return self.odds_
        if isinstance(self.priors, str):
            if self.priors != "data":
                raise InvalidConfig(f"priors: {self.priors!r} is unknown; use 'data' or an array")
            priors = np.bincount(codes) / len(codes)
        else:
            priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != self.classes_.shape or not (
            (priors > 0.0).all() and abs(priors.sum() - 1.0) < 1e-9
        ):
            raise InvalidConfig(
                f"priors: expected {len(self.classes_)} positive numbers that sum to one, "
                f"got {priors}"
            )
        odds = priors / (1.0 - priors)
        return odds[1:] if len(odds) == 2 else odds


def _squeezed(columns: NDArray[Any]) -> NDArray[Any]:
    return columns[:, 0] if columns.shape[1] == 1 else columns
