"""One pool of refit processes for many feeds.

A feed has a `PooledRefitter`; its learner lives in one of the processes of the pool, beside those
of other feeds. Whose turn it is, and which process computes, `schedule.py` says. A result takes
effect at an example number that is fixed when the refit begins. So a process may be slow, die or
hang without changing any answer: another one goes on from the last state that was fetched.
"""

import os
from typing import Self

from online_svm.config import PredictorConfig
from workers.config.settings import REFIT_MEMORY
from workers.refit.child import Child
from workers.refit.learner_queue import ProcessSlot
from workers.refit.observer import RefitObserver
from workers.refit.pipe import ChildPipe
from workers.refit.pool_process import PATIENCE, PoolProcess
from workers.refit.pooled_refitter import PooledRefitter
from workers.refit.schedule import Schedule
from workers.stop import Stop


def default_processes() -> int:
    """Return how many processes compute refits by default: one less than there are cores."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


class RefitPool:
    """Computes the refits of many feeds, a few at a time.

    Processes begin when they are needed; the first begins its imports at once. All end with the
    pool.

    Parameters
    ----------
    processes : int, optional
        At most so many; by default one less than there are cores.
    stop : Stop, optional
        After a stop is requested, results are awaited for at most half of the grace period.
    memory : int
        Bytes that learners, with their kernel rows, may take in all processes together. Those that
        computed longest ago are set down to their states, and cost more time at their next refit.
        At least one a process stays, whatever it takes.
    patience : float
        Seconds for one exchange before a process counts as hung.
    first : Popen, optional
        A process that was begun early, to use first.

    Examples
    --------
    >>> from online_svm.predictor.online_predictor import OnlinePredictor
    >>> config = PredictorConfig(classes=["no", "yes"])
    >>> with RefitPool(processes=1) as pool, pool.refitter(config) as refitter:
    ...     predictor = OnlinePredictor(config, refitter)
    """

    def __init__(
        self,
        processes: int | None = None,
        stop: Stop | None = None,
        memory: int = REFIT_MEMORY,
        patience: float = PATIENCE,
        first: Child | None = None,
    ) -> None:
        self._stop = stop or Stop()
        slots = [ProcessSlot() for _ in range(processes or default_processes())]
        slots[0].is_begun = True
        slots[0].child = None if first is None else ChildPipe(first)
        each = memory // len(slots)
        self._schedule = Schedule(slots)
        self._processes = [PoolProcess(self._schedule, slot, patience, each) for slot in slots]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the present processes."""
        return [process.pid for process in self._processes if process.pid is not None]

    def refitter(
        self,
        config: PredictorConfig,
        observer: RefitObserver | None = None,
        stop: Stop | None = None,
    ) -> PooledRefitter:
        """Return the refitter of one feed; `close` gives up what it holds.

        Parameters
        ----------
        config : PredictorConfig
        observer : RefitObserver, optional
            Is told how long each refit took, and when a process fails; from any thread.
        stop : Stop, optional
            Of the process that waits for results, where the pool has another; each result wakes it.
        """
        return PooledRefitter(config, self._schedule, stop or self._stop, observer)

    def close(self) -> None:
        """End all processes; results that are awaited do not come."""
        self._schedule.close()
        for process in self._processes:
            process.join()
