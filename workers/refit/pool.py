"""One pool of refit processes for many feeds.

A feed has a `PooledRefitter`, which takes the place of a `ProcessRefitter`: the same results and
states, with the same bits, and the same replacement of processes that die, hang or fail. What
differs is where its learner lives: in one of the processes of the pool, beside those of other
feeds. Whose turn it is, and which process computes, `schedule.py` says.
"""

import os
from typing import Self

from online_svm.config import PredictorConfig
from workers.config.settings import REFIT_MEMORY
from workers.refit.observer import RefitObserver
from workers.refit.pool_process import PoolProcess
from workers.refit.pooled_refitter import PooledRefitter
from workers.refit.process_refitter import PATIENCE
from workers.refit.schedule import Schedule
from workers.refit.seat import Seat
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
    ) -> None:
        self._stop = stop or Stop()
        seats = [Seat() for _ in range(processes or default_processes())]
        seats[0].is_begun = True
        each = memory // len(seats)
        self._schedule = Schedule(seats)
        self._processes = [PoolProcess(self._schedule, seat, patience, each) for seat in seats]

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
