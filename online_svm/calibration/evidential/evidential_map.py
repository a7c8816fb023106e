"""EvidentialMap: masses at a score, and what is read off them."""

from abc import abstractmethod

from numpy.typing import ArrayLike

from online_svm.calibration.evidential.masses import belief_plausibility, pignistic
from online_svm.calibration.score_map import IntervalMap
from online_svm.errors import InvalidInput
from online_svm.types import Floats


class EvidentialMap(IntervalMap):
    """A map from scores of a two-class machine to mass functions on {0, 1}.

    `predict` gives the pignistic probability of the positive class, `predict_interval` its belief
    and plausibility. Fitted on no example a map is vacuous. Its masses carry no guarantee of their
    own. `fit` takes no weights: the masses say how many independent examples there were, and a
    weight is none.

    A subclass says which masses a score has (`_mass`).
    """

    @abstractmethod
    def _mass(self, scores: Floats) -> Floats: ...

    def _interval(self, scores: Floats) -> Floats:
        return belief_plausibility(self._mass(scores))

    def _predict(self, scores: Floats) -> Floats:
        return pignistic(self._mass(scores))

    def mass(self, scores: ArrayLike) -> Floats:
        """Return m({1}), m({0}) and m({0, 1}) for each score.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples, 3)

        Raises
        ------
        InvalidInput
            If a score is not finite, or the map is not fitted.

        Examples
        --------
        >>> from online_svm import EvidentialBinning, EvidentialLogistic
        >>> EvidentialBinning("dempster", n_bins=1).fit([0.0, 1.0, 2.0], [0, 1, 1]).mass([5.0])
        array([[0.5 , 0.25, 0.25]])
        >>> fitted = EvidentialLogistic("confidence").fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
        >>> fitted.mass([2.0]).round(2)
        array([[0.08, 0.01, 0.91]])
        """
        return self._mass(self._asked(scores))

    @abstractmethod
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        """Return the plausibility at score s of each proportion of positives tau.

        That of a map in blocks is the contour of the block by itself. Its integrals are the
        block's masses, for the likelihood and the confidence interval (Xu et al. 2016, eqs 22
        and 23).

        Parameters
        ----------
        s : float
        tau : array-like of shape (m,)
            In [0, 1].

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        InvalidInput
            If s is not finite, a proportion is outside [0, 1], the map is not fitted, or (for
            the "likelihood" of a logistic map) it was restored from a state, which does not hold
            the examples.

        Examples
        --------
        >>> from online_svm import EvidentialIsotonic, EvidentialLogistic
        >>> EvidentialIsotonic().fit([0.0, 1.0], [0, 1]).contour(1.0, [0.0, 0.25, 1.0])
        array([0.  , 0.25, 1.  ])
        >>> fitted = EvidentialLogistic().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
        >>> fitted.contour(0.0, [0.1, 0.5, 0.9]).round(3)
        array([0.237, 1.   , 0.237])
        """


def check_option(value: str, allowed: tuple[str, ...], name: str) -> None:
    """Raise InvalidInput unless `value` is among those allowed.

    Examples
    --------
    >>> check_option("raw", ("platt", "raw"), "targets")
    """
    if value not in allowed:
        raise InvalidInput(f"{name}: must be one of {allowed}, not {value!r}")


def check_alpha(alpha: float) -> None:
    """Check alpha, one minus the confidence level.

    Raises
    ------
    InvalidInput
        If it is outside [0, 1].

    Examples
    --------
    >>> check_alpha(0.05)
    """
    if not 0.0 <= alpha <= 1.0:  # a NaN fails too
        raise InvalidInput(f"alpha: {alpha} is outside [0, 1]; use 0.05 for 95 % confidence")
