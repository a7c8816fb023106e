"""The learner "linear": a feature map and linear machines on it, at a constant cost a refit.

The map, the scaling under it and its gamma are fitted on the proper training set T, anew as T
grows, and with the weights from nothing: all examples are still in the window then. The refit
whose window is full fits them for the last time. The weights mean something only in that map, and
from now on they stand for examples that are gone. So `rescale_every` has no effect here; features
whose scale changes for good after the first window want another scaling before them.

From then on each refit gives the new examples of T to a `ProximalMachine`; those that leave the
window live on in its weights. An example outside T trains neither this model nor any later one as
long as it is outside (with an interleaved split: ever), so calibration examples are as fresh to
the model as its next one, and the guarantee is that of the other learners.

The defaults (Nystroem, 500 components, fading .999) were chosen by the log loss of the Venn
predictor on river's Bananas and Phishing and on synthetic streams whose boundary stands still,
turns slowly or jumps. There its ratio to that of the kernel machine was .98 to 1.02; with Fourier
features up to 1.09, with a fading of .9998 up to 1.05, with .998 the same as with .999.
"""

from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.storage.arrays import nest, under
from online_svm.svm.kernel_model import KernelModel
from online_svm.svm.linear.feature_maps import FeatureMap, fit_map, map_from_state
from online_svm.svm.linear.fourier import FourierModel
from online_svm.svm.linear.proximal import ProximalMachine
from online_svm.types import Arrays, Floats, Ints


class LinearLearner:
    """The map and the machines of one stream. Rows are scaled, and of T alone.

    Parameters
    ----------
    config : PredictorConfig

    Attributes
    ----------
    is_settled : bool
        Whether map and scaling have been fitted for the last time.
    """

    def __init__(self, config: PredictorConfig) -> None:
        self.config = config
        self.is_settled = False
        self._kernel: Kernel | None = None
        self._map: FeatureMap | None = None
        self._machine: ProximalMachine | None = None

    def begin(self, kernel: Kernel, X: Floats, is_last: bool) -> None:
        """Fit the map on the rows of T, shape (n, d), and forget every weight.

        Parameters
        ----------
        kernel : Kernel
        X : ndarray of shape (n, d)
            Without a row there is no map yet, and every score is -1.
        is_last : bool
            Whether the window is full, so that the map is to stay.
        """
        config = self.config
        self._kernel, self._map, self._machine = kernel, None, None
        if len(X):
            seed = config.seed
            self._map = fit_map(config.feature_map, kernel, config.n_components, seed, X)
        self.is_settled = is_last and len(X) > 0

    def learn(
        self, X: Floats, codes: Ints, penalties: Floats, left: int, steps: int
    ) -> KernelModel | FourierModel:
        """Learn the new examples of T and return the model.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            All rows of T, in order.
        codes : ndarray of shape (n,)
            Their classes.
        penalties : ndarray of shape (n_classes,)
            C of each class.
        left : int
            Examples of the last T that are not in this one.
        steps : int
            Examples of the window that left with them.
        """
        n_classes = len(penalties)
        if self._map is None:
            return self._unfitted(n_classes, X.shape[1])
        machine = self._machine
        if machine is None or machine.n_classes != n_classes:
            machine = self._new_machine(n_classes, self._map)
        else:
            machine.release(left, steps)
        known = len(machine)
        machine.extend(self._map.transform(X[known:]), codes[known:])
        self._machine = machine
        weights = machine.solve(penalties)
        return self._map.model(np.ascontiguousarray(weights[:, :-1]), weights[:, -1].copy())

    def state(self) -> Arrays:
        """Return the state, without the rows and the kernel."""
        parts: Arrays = {"is_settled": np.array([self.is_settled])}
        if self._map is not None:
            parts |= nest("map", self._map.state())
        if self._machine is not None:
            parts |= nest("machine", self._machine.state())
        return parts

    @classmethod
    def from_state(
        cls, state: Arrays, config: PredictorConfig, kernel: Kernel, X: Floats, n_classes: int
    ) -> Self:
        """Return the learner that `state` describes, whose T has the rows X."""
        learner = cls(config)
        learner.is_settled = bool(state["is_settled"][0])
        learner._kernel = kernel
        copied = {name: array.copy() for name, array in state.items()}
        mapped, machine = under("map", copied), under("machine", copied)
        if not mapped:
            return learner
        learner._map = map_from_state(mapped, kernel)
        if machine:
            learner._machine = ProximalMachine.from_state(
                machine, learner._map.transform(X), n_classes, config.tol, config.fading
            )
        return learner

    def _new_machine(self, n_classes: int, feature_map: FeatureMap) -> ProximalMachine:
        config = self.config
        return ProximalMachine(n_classes, feature_map.n_features, config.tol, config.fading)

    def _unfitted(self, n_classes: int, dimension: int) -> KernelModel:
        assert self._kernel is not None
        machines = 1 if n_classes == 2 else n_classes
        nothing = np.empty((machines, 0))
        return KernelModel.build(
            self._kernel, np.empty((0, dimension)), nothing, np.full(machines, -1.0)
        )
