"""InlineRefitter: refits in the process that answers."""

from collections import deque

from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitResult, RefitTask, Refitter


class InlineRefitter(Refitter):
    """Refits in this process, when a result is asked for.

    Parameters
    ----------
    config : PredictorConfig
    rests : bool
        Whether what only the next refit needs is set down to its state in between: kernel matrices
        take no memory then, and are computed anew. It changes no result.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> task = RefitTask(0, 4, 0, X, np.array([0, 1, 0, 1]), np.ones(2))
    >>> refitters = [InlineRefitter(PredictorConfig(), rests=rests) for rests in (False, True)]
    >>> for refitter in refitters:
    ...     refitter.submit(task)
    ...     _ = refitter.result()
    >>> refitters[0].state() == refitters[1].state()
    True
    """

    def __init__(self, config: PredictorConfig, rests: bool = False) -> None:
        self._config, self._rests = config, rests
        self._learner: Learner | bytes = Learner(config)
        self._tasks: deque[RefitTask] = deque()

    @override
    def submit(self, task: RefitTask) -> None:
        self._tasks.append(task)

    @override
    def result(self) -> RefitResult:
        learner = self._awake()
        found = learner.refit(self._tasks.popleft())
        self._learner = learner.state() if self._rests else learner
        return found

    @override
    def state(self) -> bytes:
        return self._learner if isinstance(self._learner, bytes) else self._learner.state()

    @override
    def withdraw(self) -> None:
        self.reset(None)

    @override
    def reset(self, state: bytes | None) -> None:
        config = self._config
        self._learner = Learner(config) if state is None else Learner.from_state(state, config)
        self._tasks.clear()

    def _awake(self) -> Learner:
        if isinstance(self._learner, bytes):
            return Learner.from_state(self._learner, self._config)
        return self._learner
