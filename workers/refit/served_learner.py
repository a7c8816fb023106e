"""What a refit process answers: learners, each of which may share its committee with helpers."""

import json

from online_svm.config import PredictorConfig
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.storage.memory import array_bytes
from workers.refit.child import (
    CONFIG,
    DONE,
    FAILED,
    FORGET,
    LOAD,
    MEMBERS,
    SELECT,
    STATE,
    WEIGH,
    WEIGHT,
    Message,
)
from workers.refit.helpers import Helpers, ParentGone


class ServedLearner:
    """A learner by messages; a helper says what its members say, and fits no stack.

    Parameters
    ----------
    helpers : Helpers
        Those that it shares its committee with.
    """

    def __init__(self, helpers: Helpers) -> None:
        self._helpers = helpers
        self._learner: Learner | None = None
        self._is_helper = False

    def answer(self, kind: bytes, body: bytes) -> Message:
        """Return the answer to a message.

        Raises
        ------
        ParentGone
            If nobody waits for it.
        """
        try:
            return DONE, self._done(kind, body)
        except ParentGone:
            raise
        except Exception as error:  # the parent reports any error and tries another process
            return FAILED, repr(error).encode()

    def _done(self, kind: bytes, body: bytes) -> bytes:
        if kind == CONFIG:
            config = PredictorConfig.model_validate_json(body)
            self._learner = Learner(config, self._helpers.share(config))
            return b""
        assert self._learner is not None
        if kind == MEMBERS:
            self._learner, self._is_helper = Learner(self._learner.config, json.loads(body)), True
            return b""
        return self._of(self._learner, kind, body)

    def _of(self, learner: Learner, kind: bytes, body: bytes) -> bytes:
        """Ask the helpers the same, do the own part meanwhile, and join them."""
        if kind == WEIGH:  # of a learner of many, which has no helpers
            return WEIGHT.pack(array_bytes(learner))
        self._helpers.ask(kind, body)
        if kind == LOAD:
            self._learner = Learner.from_state(body, learner.config, learner.members)
            self._helpers.replies()
            return b""
        if kind == STATE:
            return learner.state(self._helpers.states())
        task = RefitTask.from_state(body)
        if self._is_helper:
            return learner.say(task).state()
        return learner.refit(task, self._helpers.said).state()


class ServedLearners:
    """The learners of a process, one a feed; a message goes to the one that was selected last.

    A process of one feed selects none.

    Parameters
    ----------
    helpers : Helpers
        Those that a learner shares its committee with; none where learners are selected.
    """

    def __init__(self, helpers: Helpers) -> None:
        self._helpers = helpers
        self._selected = ServedLearner(helpers)
        self._by_key: dict[bytes, ServedLearner] = {}

    def answer(self, kind: bytes, body: bytes) -> Message:
        """Return the answer to a message.

        Raises
        ------
        ParentGone
            If nobody waits for it.
        """
        if kind == SELECT:
            if body not in self._by_key:
                self._by_key[body] = ServedLearner(self._helpers)
            self._selected = self._by_key[body]
            return DONE, b""
        if kind == FORGET:
            self._by_key.pop(body, None)
            return DONE, b""
        return self._selected.answer(kind, body)
