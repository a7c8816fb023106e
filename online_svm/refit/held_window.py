"""HeldWindow: the available examples that a learner holds, and which of them are in T."""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.refit.task import RefitTask
from online_svm.stream.split import window_parts
from online_svm.types import Bools, Floats

Counts = tuple[int, int, int]
"""Examples of the last window that are gone, those of its T among them, those still held."""


class HeldWindow:
    """The rows of the last task, by which the next one says only what is new.

    Parameters
    ----------
    config : PredictorConfig
    start : int
        Number of the first example.
    rows : ndarray of shape (n, n_features), optional

    Attributes
    ----------
    start, rows
        The same, now.

    Examples
    --------
    >>> window = HeldWindow(PredictorConfig(split="oldest", train_fraction=0.5))
    >>> task = RefitTask(0, 2, 0, np.array([[1.0], [2.0]]), np.array([0, 1]), np.ones(2))
    >>> window.take(task)
    (array([ True, False]), (0, 0, 0))
    >>> task = RefitTask(1, 3, 2, np.array([[3.0]]), np.array([1, 0]), np.ones(2))
    >>> window.take(task)[1], window.rows.ravel().tolist()
    ((1, 1, 1), [2.0, 3.0])
    """

    def __init__(self, config: PredictorConfig, start: int = 0, rows: Floats | None = None) -> None:
        self._config, self.start = config, start
        self.rows: Floats = np.empty((0, 0)) if rows is None else rows

    @property
    def trains(self) -> Bools:
        """Which of the examples are in T, shape (n,)."""
        return self._parts(self.start, len(self.rows))

    def take(self, task: RefitTask) -> tuple[Bools, Counts]:
        """Hold the examples of a task; return which of them are in T, and what became of others."""
        forgotten = min(task.start - self.start, len(self.rows))
        left = int(self.trains[:forgotten].sum())
        held = len(self.rows) - forgotten
        kept = self.rows[forgotten:].reshape(-1, task.X.shape[1])
        self.rows = np.concatenate([kept, task.X])
        self.start = task.start
        return self._parts(task.start, task.freeze - task.start), (forgotten, left, held)

    def _parts(self, start: int, count: int) -> Bools:
        """Return which of `count` examples from number `start` on are in T."""
        config, stop = self._config, start + count
        return window_parts(config.split, start, stop, config.training_share, config.seed)[0]
