"""Work of the predictor for a refit of its default schedule.

The real classes are run: `Learner.refit` (scaling, new points, solution, scores of the calibration
part, model), and the activation of an `ActiveModel` (scores of what was learned since the freeze,
counts, maps).
"""

from collections.abc import Callable, Iterator

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.active_model import ActiveModel
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.stream.labels import ClassView
from online_svm.stream.split import training_mask
from online_svm.types import Bools, Floats, Ints
from scripts.bench.report import Row
from scripts.bench.timing import timed


class RefitBench:
    """Refits over a window that rolls along a stream.

    Parameters
    ----------
    config : PredictorConfig
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
        0 or 1.
    """

    def __init__(self, config: PredictorConfig, X: Floats, codes: Ints) -> None:
        assert config.window is not None
        self.config, self.X, self.codes, self.window = config, X, codes, config.window
        self.view = ClassView(config.classes or (), declared=True)
        self._learner, self._sent = Learner(config), 0

    def split(self, freeze: int) -> tuple[slice, Bools]:
        """Return the window before `freeze`, and which of it trains."""
        config, start = self.config, freeze - self.window
        mask = training_mask(config.split, start, freeze, config.training_share, config.seed)
        return slice(start, freeze), mask

    def refit(self, freeze: int, since: int) -> ActiveModel:
        """Refit at `freeze`, and activate when that many more examples have been learned."""
        held, trains = self.split(freeze)
        codes, after = self.codes[held], slice(freeze, freeze + since)
        new, self._sent = self.X[self._sent : freeze], freeze
        task = RefitTask(held.start, freeze, freeze - len(new), new, codes, np.ones(2))
        result = self._learner.refit(task)
        active = ActiveModel(self.config, result, self.view, 1, codes[trains])
        active.calibrate(np.concatenate([codes[~trains], self.codes[after]]), self.X[after], 1)
        return active


def refit_rows(
    X: Floats, codes: Ints, refits: int, svc_seconds: Callable[[Floats, Ints], float]
) -> Iterator[Row]:
    """Time refits of the default configuration against a fit of SVC on the same training part.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        At least a window, and `refits` + 1 times the examples between two refits.
    codes : ndarray of shape (n,)
    refits : int
        For each of the two rows: one without an example between freeze and activation, one with
        as many as the default lag has.
    svc_seconds : callable
        Seconds that SVC takes to fit given rows.
    """
    config = PredictorConfig(classes=("0", "1"), features=X.shape[1])
    for since in (0, config.lag):
        bench, times = RefitBench(config, X, codes), []
        bench.refit(bench.window, since)
        for i in range(refits):
            freeze = bench.window + (i + 1) * config.refit_every
            ours, _ = timed(lambda: bench.refit(freeze, since))  # noqa: B023 - called at once
            held, trains = bench.split(freeze)
            times.append((ours, svc_seconds(X[held][trains], codes[held][trains])))
        ours, peer = (float(np.median(column)) for column in zip(*times, strict=True))
        name = f"refit, {config.refit_every} in and out of {bench.window}, {since} since"
        yield Row(name, ours, peer, "medians, beside SVC.fit alone")
