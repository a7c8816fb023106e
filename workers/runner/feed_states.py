"""The states of a feed in a worker, the events that move it, and all transitions, in one table.

A feed is in exactly one state. `FeedTask` raises the events: what the lease did, what the session
can do after a step, and how a step failed. `FeedLoop` groups its feeds by state; in each turn it
asks the feeds of a group for the one thing that they can do in this state.
"""

from enum import StrEnum
from typing import Final


class TaskState(StrEnum):
    """What a feed does, or what it waits for."""

    LEASE = "its lease is requested; another process may hold it"
    HELD = "its lease is held; it waits until few enough feeds are being taken over"
    STARTING = "it is checked and recovered, in steps; also after its position moved"
    READY = "it has input to answer or a refit to take, and waits for its turn"
    IDLE = "it waits for input"
    REFIT = "it waits for the result of a refit"
    BLOCKED = "it waits until its consumers acknowledge answers"
    SILENT = "its node of a cluster does not answer; it keeps its session"
    PARKED = "after an error it waits until it is tried again"
    STOPPED = "a stop interrupted a step, so the predictor may be ahead of the commits"
    CLOSED = "it is no longer served"


class TaskEvent(StrEnum):
    """What happened to a feed."""

    LEASED = "its lease was acquired"
    BEGUN = "there is room to take it over"
    MUST_RECOVER = "the session has to be created, or to recover"
    HAS_WORK = "the session has something to do"
    IS_SPENT = "the session has answered all input"
    NEEDS_REFIT = "the session needs a refit that is not finished"
    IS_BLOCKED = "the consumers of the session lag"
    SILENCE = "Redis did not answer, and the session can continue later"
    FAILED = "a step failed"
    STOPPED = "a stop interrupted a step"
    RETRIED = "the time to try again came"
    CLOSED = "its service ended"


AT_WORK: Final = frozenset({TaskState.READY, TaskState.IDLE, TaskState.REFIT, TaskState.BLOCKED})
"""States in which the session answers, once it gets what it waits for."""

_FOUND: Final = {
    TaskEvent.MUST_RECOVER: TaskState.STARTING,
    TaskEvent.HAS_WORK: TaskState.READY,
    TaskEvent.IS_SPENT: TaskState.IDLE,
    TaskEvent.NEEDS_REFIT: TaskState.REFIT,
    TaskEvent.IS_BLOCKED: TaskState.BLOCKED,
}
"""Where a feed goes after a step, by what its session can do then."""

_FAILED: Final = {TaskEvent.FAILED: TaskState.PARKED, TaskEvent.CLOSED: TaskState.CLOSED}

_INTERRUPTED: Final = {TaskEvent.STOPPED: TaskState.STOPPED, **_FAILED}

_WORKING: Final = {**_FOUND, TaskEvent.SILENCE: TaskState.SILENT, **_INTERRUPTED}

TRANSITIONS: Final[dict[TaskState, dict[TaskEvent, TaskState]]] = {
    TaskState.LEASE: {TaskEvent.LEASED: TaskState.HELD, **_FAILED},
    TaskState.HELD: {
        TaskEvent.LEASED: TaskState.HELD,
        TaskEvent.BEGUN: TaskState.STARTING,
        **_FAILED,
    },
    # Without a session that can continue, a silent node is an error like any other.
    TaskState.STARTING: {**_FOUND, TaskEvent.SILENCE: TaskState.PARKED, **_INTERRUPTED},
    TaskState.READY: _WORKING,
    TaskState.IDLE: _WORKING,
    TaskState.REFIT: _WORKING,
    TaskState.BLOCKED: _WORKING,
    TaskState.SILENT: _WORKING,
    TaskState.PARKED: {TaskEvent.RETRIED: TaskState.LEASE, TaskEvent.CLOSED: TaskState.CLOSED},
    # Only its last commit is still confirmed; whatever the session could do, it answers no more.
    TaskState.STOPPED: {
        **dict.fromkeys((*_FOUND, TaskEvent.SILENCE), TaskState.STOPPED),
        **_INTERRUPTED,
    },
    TaskState.CLOSED: {},
}
"""The next state, by state and event. A pair that is missing cannot occur."""
