"""Log from which a lost learner is built again: its last fetched state, and the tasks since."""

from online_svm.config import PredictorConfig
from workers.refit.messages import CONFIG, LOAD, TASK, Message

MIN_BYTES = 1 << 20
"""The state is fetched when the tasks since the last one have more bytes than it, and more than
this; it then replaces them. Fetching a state costs about as much as sending it."""


class LearnerLog:
    """The state of a learner, and the tasks that it was given since.

    A result is a function of the state and of the tasks since. So a learner that is built from them
    in another process goes on with the same bits.

    Parameters
    ----------
    config : PredictorConfig
    state : bytes, optional
        Of a learner to continue from.

    Attributes
    ----------
    state : bytes or None
        None if there was none yet.
    tasks : list of Message
        In order, finished or not.

    Examples
    --------
    >>> log = LearnerLog(PredictorConfig())
    >>> log.add((TASK, b"first"))
    >>> log.add((TASK, b"second"))
    >>> [body for kind, body in log.set_up(unfinished=1)[1:]]
    [b'first']
    >>> log.replace(b"state", unfinished=1)
    >>> [body for kind, body in log.set_up()[1:]]
    [b'state', b'second']
    """

    def __init__(self, config: PredictorConfig, state: bytes | None = None) -> None:
        self._config = config.model_dump_json().encode()
        self.state = state
        self.tasks: list[Message] = []

    def add(self, task: Message) -> None:
        """Note a task."""
        assert task[0] == TASK
        self.tasks.append(task)

    def replace(self, state: bytes, unfinished: int = 0) -> None:
        """Let a fetched state stand for the tasks before it: all but so many of the last ones."""
        self.state = state
        self.tasks = self.tasks[len(self.tasks) - unfinished :]

    def is_long(self, least: int = MIN_BYTES, share: float = 1.0) -> bool:
        """Whether the tasks have more bytes than this share of the state, and more than `least`."""
        most = max(least, share * len(self.state or b""))
        return sum(len(body) for _, body in self.tasks) > most

    def set_up(self, unfinished: int = 0) -> list[Message]:
        """Return the messages that bring a new learner here, before so many of the last tasks."""
        load = [] if self.state is None else [(LOAD, self.state)]
        return [(CONFIG, self._config), *load, *self.tasks[: len(self.tasks) - unfinished]]
