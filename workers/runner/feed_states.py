"""The states of a feed in a worker, the events that move it, and all transitions, in one table.

A feed is in exactly one state. `FeedTask` raises the events: what the lease did, what the session
can do after a step, and how a step failed. `FeedLoop` groups its feeds by state; in each turn it
asks the feeds of a group for the one thing that they can do in this state.
"""

from enum import StrEnum
from typing import Final


class State(StrEnum):
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


class Event(StrEnum):
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


AT_WORK: Final = frozenset({State.READY, State.IDLE, State.REFIT, State.BLOCKED})
"""States in which the session answers, once it gets what it waits for."""

_FOUND: Final = {
    Event.MUST_RECOVER: State.STARTING,
    Event.HAS_WORK: State.READY,
    Event.IS_SPENT: State.IDLE,
    Event.NEEDS_REFIT: State.REFIT,
    Event.IS_BLOCKED: State.BLOCKED,
}
"""Where a feed goes after a step, by what its session can do then."""

_FAILED: Final = {Event.FAILED: State.PARKED, Event.CLOSED: State.CLOSED}

_INTERRUPTED: Final = {Event.STOPPED: State.STOPPED, **_FAILED}

_WORKING: Final = {**_FOUND, Event.SILENCE: State.SILENT, **_INTERRUPTED}

TRANSITIONS: Final[dict[State, dict[Event, State]]] = {
    State.LEASE: {Event.LEASED: State.HELD, **_FAILED},
    State.HELD: {Event.LEASED: State.HELD, Event.BEGUN: State.STARTING, **_FAILED},
    # Without a session that can continue, a silent node is an error like any other.
    State.STARTING: {**_FOUND, Event.SILENCE: State.PARKED, **_INTERRUPTED},
    State.READY: _WORKING,
    State.IDLE: _WORKING,
    State.REFIT: _WORKING,
    State.BLOCKED: _WORKING,
    State.SILENT: _WORKING,
    State.PARKED: {Event.RETRIED: State.LEASE, Event.CLOSED: State.CLOSED},
    # Only its last commit is still confirmed; whatever the session could do, it answers no more.
    State.STOPPED: {**dict.fromkeys((*_FOUND, Event.SILENCE), State.STOPPED), **_INTERRUPTED},
    State.CLOSED: {},
}
"""The next state, by state and event. A pair that is missing cannot occur."""
