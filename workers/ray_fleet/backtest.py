"""The configurations of a backtest as tasks on a Ray cluster."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from online_svm.errors import OnlineSVMError
from workers.errors import BadConfiguration, WorkerError
from workers.offline.backtest.history import RecordedEntries, read
from workers.offline.backtest.kept_results import libraries
from workers.offline.backtest.prequential import Configuration, answer
from workers.offline.backtest.result import BacktestResult, result_of
from workers.offline.backtest.run import Finish, ProcessDied, Progress

POLL_SECONDS = 2.0  # seconds between two reports of progress while no task ends


class RayTasks:
    """Computes configurations on a cluster, one per processor; see `run.Compute`.

    Each machine gets the history once. A task whose machine is lost restarts on another one: a
    result depends only on history and configuration.
    """

    def __init__(self, ray: Any) -> None:  # the module, see `connection.connected`
        self._ray = ray

    def __call__(
        self,
        configurations: Sequence[Configuration],
        waiting: Sequence[int],
        recording: RecordedEntries,
        finish: Finish,
        progress: Progress,
    ) -> None:
        """Compute the configurations with the indices `waiting`; pass each result to `finish`.

        Raises ProcessDied if a task was killed repeatedly; BadConfiguration if a machine of the
        cluster has other libraries than this one; the WorkerError or OnlineSVMError of a task.
        """
        history = self._ray.put(recording.path.read_bytes())
        measure = self._ray.remote(_measure).options(num_cpus=1)
        ours, done = libraries(), [0] * len(configurations)
        indices = {measure.remote(configurations[i], history, ours): i for i in waiting}
        pending = list(indices)
        try:
            while pending:
                ended, pending = self._ray.wait(pending, timeout=POLL_SECONDS)
                for reference in ended:
                    index = indices[reference]
                    finish(index, self._result(reference))
                    done[index] = recording.entries
                progress(done)
        except BaseException:
            for reference in pending:
                self._ray.cancel(reference, force=True)
            raise

    def _result(self, ended: Any) -> BacktestResult:
        errors = self._ray.exceptions
        try:
            found: BacktestResult = self._ray.get(ended)
        except errors.RayTaskError as error:
            if isinstance(error.cause, WorkerError | OnlineSVMError):
                raise error.cause from None
            raise
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            raise ProcessDied(
                "a task of the backtest was killed again and again, or ran out of memory; give the "
                "machines of the cluster fewer processors (ray start --num-cpus)"
            ) from None
        return found


def _measure(
    configuration: Configuration, history: bytes, wanted: dict[str, str]
) -> BacktestResult:
    """Compute the result of one configuration, on a machine of the cluster."""
    ours = libraries()
    if ours != wanted:
        other = ", ".join(f"{name} {ours[name]}" for name in wanted if ours[name] != wanted[name])
        raise BadConfiguration(
            f"a machine of the cluster has {other}: results would not be the same as here; install "
            "the versions of this machine on all"
        )
    with TemporaryDirectory(prefix="online-svm-backtest-") as directory:
        path = Path(directory) / "history"
        path.write_bytes(history)
        with threadpool_limits(1):  # one task a processor
            return result_of(answer(configuration, read(path), _ignore))


def _ignore(_entries: int) -> None:
    pass
