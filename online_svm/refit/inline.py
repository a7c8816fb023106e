"""InlineRefitter: refits in the process that answers."""

from collections import deque

from online_svm.config import PredictorConfig
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitResult, RefitTask


class InlineRefitter:
    """Refits in this process, when a result is asked for.

    Parameters
    ----------
    config : PredictorConfig
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._config = config
        self._learner = Learner(config)
        self._tasks: deque[RefitTask] = deque()

    @property
    def is_busy(self) -> bool:
        """False: nothing is computed elsewhere."""
        return False

    def submit(self, task: RefitTask) -> None:
        """Keep the task until its result is asked for."""
        self._tasks.append(task)

    def begin(self) -> None:
        """Do nothing: there is no background."""

    def result(self) -> RefitResult:
        """Compute and return the result of the oldest task that has none."""
        return self._learner.refit(self._tasks.popleft())

    def state(self) -> bytes:
        """Return the learner's state."""
        return self._learner.state()

    def reset(self, state: bytes | None) -> None:
        """Continue from `state`, or from nothing; a state that cannot be read changes nothing."""
        config = self._config
        self._learner = Learner(config) if state is None else Learner.from_state(state, config)
        self._tasks.clear()
