"""Errors of the service. Each one that ends a command carries its exit code.

WorkerError
├── BadConfiguration         2   settings that cannot work, or that the feed or Redis refuses
│   ├── InvalidFeedName          (also ValueError)
│   ├── ConfigurationChanged     the feed was begun with another predictor configuration
│   ├── RedisUnsuitable          too old, or a policy that would evict streams
│   │   └── ReplyNotGiven        one entry or value is larger than Redis gives in a reply
│   ├── AccessDenied             wrong password, or a command that the user may not run
│   └── EmbeddedFailed           the embedded server did not start, or cannot be reached
│       └── EmbeddedNotRunning   nothing is there to look at
├── Fenced                   3   a newer worker owns the feed
├── StateLost                4   what is stored cannot be continued from
│   ├── InputLost                input entries are gone that were not answered yet
│   ├── OutputAhead              an output stream already holds later entries
│   ├── StateAhead               the answers end before the state does
│   ├── NotRepairable            a replay does not give what is stored
│   ├── EndOfStream              the input holds the last ID that a stream can have
│   ├── SnapshotsLost            no kept snapshot can be read
│   └── WrongKeyType             a key of the feed holds another type
├── ReplayMismatch           5   recomputing gave other bytes than the ones committed
├── Unavailable              2   Redis did not answer in the time that was given
├── Stopped                  0   a graceful stop was asked for while waiting or replaying
├── RefitFailed              1   the refit process failed again and again
├── ReadTooLarge             -   the reader asks for fewer entries at once
│   └── ReadCut                  Redis closed the connection while it gave them
├── InvalidStoredSnapshot    -   one stored snapshot cannot be used; the previous one is tried
├── InvalidPublication       -   a published state cannot be used; the scorer keeps the one it has
└── CommitRefused            -   the session reads its position again and goes on
    ├── PositionMoved            the committed cursor is not the one this batch starts from
    └── BatchChanged             the entries after the cursor are not this batch

An error of the library (online_svm/errors.py) that reaches the end of a command has the code of
the kind it is of: 4 for a snapshot that cannot be read, 2 for an argument that cannot be used.
Any other exception is a fault of the program: a traceback, and 1.
"""

import time
from typing import NamedTuple

from online_svm.errors import InvalidSnapshot, OnlineSVMError


class WorkerError(Exception):
    """Base class of every error the service raises on purpose."""

    exit_code = 1


class BadConfiguration(WorkerError):
    """A setting that cannot work; nothing was written."""

    exit_code = 2


class InvalidFeedName(BadConfiguration, ValueError):
    """A feed name that cannot be part of a key."""


class ConfigurationChanged(BadConfiguration):
    """The feed was begun with another predictor configuration."""


class RedisUnsuitable(BadConfiguration):
    """A Redis that is too old, or that may evict what the feed is made of."""


class ReplyNotGiven(RedisUnsuitable):
    """Redis closes each connection that reads one entry, or a small part of one value."""


class AccessDenied(BadConfiguration):
    """Redis refuses the credentials, or a command or key to this user."""


class EmbeddedFailed(BadConfiguration):
    """The embedded server could not be started in its directory, or cannot be reached there."""


class EmbeddedNotRunning(EmbeddedFailed):
    """No embedded server runs, and the command does not start one."""


class Fenced(WorkerError):
    """A newer worker owns the feed. Nothing was written."""

    exit_code = 3


class StateLost(WorkerError):
    """What is stored cannot be continued from. Nothing was written."""

    exit_code = 4


class InputLost(StateLost):
    """Input entries are gone that were not answered yet, or that a replay needs."""


class OutputAhead(StateLost):
    """An output stream already holds entries later than the ones to be written."""


class StateAhead(StateLost):
    """The state counts more answers than `out` was ever given."""


class NotRepairable(StateLost):
    """State and answers do not agree, and a replay does not prove either of them."""


class EndOfStream(StateLost):
    """A stream holds the last ID that there is, so Redis takes no entry after it."""


class SnapshotsLost(StateLost):
    """None of the kept snapshots can be read."""


class WrongKeyType(StateLost):
    """A key of the feed holds another type than this program stores there."""


class ReplayMismatch(WorkerError):
    """Recomputing gave other bytes than the ones that were committed."""

    exit_code = 5


class Unavailable(WorkerError):
    """Redis did not answer, or refused writes, for longer than was allowed."""

    exit_code = 2


class Stopped(WorkerError):
    """A graceful stop was asked for while the worker was waiting or replaying."""

    exit_code = 0


class RefitFailed(WorkerError):
    """The refit process failed again and again on one task."""


class ReadTooLarge(WorkerError):
    """A reply has more bytes than its reader takes; it was given up while it arrived."""


class ReadCut(ReadTooLarge):
    """Redis closed the connection in the reply: it may be above its client-output-buffer-limit."""


class InvalidStoredSnapshot(WorkerError):
    """One stored snapshot is missing, damaged, or of another feed or a newer format."""


class InvalidPublication(WorkerError):
    """A published state cannot be used: it is damaged, gone or of another feed."""


class CommitRefused(WorkerError):
    """The commit wrote nothing; the session reads its position again and goes on."""


class PositionMoved(CommitRefused):
    """The committed cursor is not the one this batch starts from."""


class BatchChanged(CommitRefused):
    """The entries after the cursor are not this batch."""


def exit_code(error: WorkerError | OnlineSVMError) -> int:
    """Return the exit code of a command that ends with this error.

    Examples
    --------
    >>> exit_code(Fenced()), exit_code(InvalidSnapshot()), exit_code(OnlineSVMError())
    (3, 4, 2)
    """
    if isinstance(error, WorkerError):
        return error.exit_code
    kind = StateLost if isinstance(error, InvalidSnapshot) else BadConfiguration
    return kind.exit_code


class Trouble(NamedTuple):
    """Something that fails now."""

    reason: str  # one line, for a person
    since: float  # seconds by `time.monotonic`, of the first failure in a row


def still(before: Trouble | None, reason: str) -> Trouble:
    """Return the trouble with a new reason; it began with the one before it."""
    return Trouble(reason, time.monotonic() if before is None else before.since)
