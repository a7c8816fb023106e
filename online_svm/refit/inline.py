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
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._config = config
        self._learner = Learner(config)
        self._tasks: deque[RefitTask] = deque()

    @override
    def submit(self, task: RefitTask) -> None:
        self._tasks.append(task)

    @override
    def result(self) -> RefitResult:
        return self._learner.refit(self._tasks.popleft())

    @override
    def state(self) -> bytes:
        return self._learner.state()

    @override
    def withdraw(self) -> None:
        self.reset(None)

    @override
    def reset(self, state: bytes | None) -> None:
        config = self._config
        self._learner = Learner(config) if state is None else Learner.from_state(state, config)
        self._tasks.clear()
