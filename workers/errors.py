"""Errors of the service, and the exit code of a command that one of them ends.

WorkerError
├── BadConfiguration         2   settings that cannot work, or that the feed or Redis refuses
│   ├── InvalidFeedName          (also ValueError)
│   ├── ConfigurationChanged     the feed was started with another predictor configuration
│   ├── RedisUnsuitable          too old, or a policy that would evict streams
│   │   └── ReplyNotGiven        one entry or value exceeds the output buffer limit of Redis
│   ├── AccessDenied             wrong password, or a command that the user may not run
│   └── EmbeddedFailed           the embedded server did not start, or cannot be reached
│       └── EmbeddedNotRunning   no embedded server runs, and the command starts none
├── Fenced                   3   a newer worker owns the feed
├── StateLost                4   a worker cannot resume from the stored state
│   ├── InputLost                unanswered input entries were deleted
│   ├── OutputAhead              an output stream already holds later entries
│   ├── StateAhead               the state counts more answers than `out` was given
│   ├── NotRepairable            a replay gives neither the stored state nor the answers
│   ├── EndOfStream              a stream holds the largest ID, so nothing can follow
│   ├── SnapshotsLost            no kept snapshot can be read
│   └── WrongKeyType             a key of the feed holds another type
├── ReplayMismatch           5   recomputing gave other bytes than the ones committed
├── Unavailable              2   Redis did not answer in time
├── Stopped                  0   a graceful stop was requested during a wait or a replay
├── RefitFailed              1   every attempt of the refit process failed
├── ReadTooLarge             -   the reader requests fewer entries at once
│   └── ReadCut                  Redis closed the connection during the reply
├── InvalidStoredSnapshot    -   one stored snapshot cannot be used; the previous one is tried
├── InvalidPublication       -   a published state cannot be used; the gateway keeps the one before
└── CommitRefused            -   the session reads its position again and continues
    ├── PositionMoved            the committed cursor is not the start of this batch
    └── BatchChanged             the entries after the cursor are not this batch

An error of the library (online_svm/errors.py) ends a command with 4 for a snapshot that cannot be
read, else with 2. Any other exception is a bug: a traceback, and exit code 1.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from online_svm.errors import InvalidSnapshot, OnlineSVMError


class WorkerError(Exception):
    """Base class of the errors that the service raises."""

    exit_code = 1


class BadConfiguration(WorkerError):
    """A setting that cannot work; nothing was written."""

    exit_code = 2


class InvalidFeedName(BadConfiguration, ValueError):
    """A feed name that cannot be part of a key."""


class ConfigurationChanged(BadConfiguration):
    """The feed was started with another predictor configuration."""


class RedisUnsuitable(BadConfiguration):
    """A Redis that is too old, or that may evict keys of the feed."""


class ReplyNotGiven(RedisUnsuitable):
    """Redis closes the connection even when one entry, or a small part of one value, is read."""


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
    """A worker cannot resume from the stored state. Nothing was written."""

    exit_code = 4


class InputLost(StateLost):
    """Input entries were deleted before they were answered, or while a replay needs them."""


class OutputAhead(StateLost):
    """An output stream already holds later entries than those to be written."""


class StateAhead(StateLost):
    """The state counts more answers than were ever added to `out`."""


class NotRepairable(StateLost):
    """State and answers contradict each other, and a replay reproduces neither."""


class EndOfStream(StateLost):
    """A stream holds an entry with the largest ID, so Redis accepts no entry after it."""


class SnapshotsLost(StateLost):
    """None of the kept snapshots can be read."""


class WrongKeyType(StateLost):
    """A key of the feed has another type than this program stores there."""


class ReplayMismatch(WorkerError):
    """Recomputing gave other bytes than were committed."""

    exit_code = 5


class Unavailable(WorkerError):
    """Redis did not answer, or refused writes, for longer than the time limit."""

    exit_code = 2


class Stopped(WorkerError):
    """A graceful stop was requested while the worker waited or replayed."""

    exit_code = 0


class RefitFailed(WorkerError):
    """The refit process failed on one task in every attempt."""


class ReadTooLarge(WorkerError):
    """A reply exceeds the reader's bound of bytes; the reader stopped while it arrived."""


class ReadCut(ReadTooLarge):
    """Redis closed the connection during a reply, probably by client-output-buffer-limit."""


class InvalidStoredSnapshot(WorkerError):
    """One stored snapshot is missing, damaged, or of another feed or a newer format."""


class InvalidPublication(WorkerError):
    """A published state cannot be used: it is damaged, gone or of another feed."""


class CommitRefused(WorkerError):
    """The commit wrote nothing; the session reads its position again and continues."""


class PositionMoved(CommitRefused):
    """The committed cursor is not the start of this batch."""


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


def without_snapshots(feed: str, problems: str) -> SnapshotsLost:
    """Return the error for a feed whose kept snapshots cannot be used, for these reasons."""
    return SnapshotsLost(
        f"feed {feed!r}: no kept snapshot can be used. {problems} Where all input is kept, "
        f"online-svm verify {feed} --repair makes one; else {way_back(feed)}"
    )


def way_back(feed: str) -> str:
    """Return the commands that let a feed go on whose state or input is lost.

    A backup is put back after a reset, since the answers after it are given up.
    """
    return (
        f"go back to a backup with online-svm reset {feed}, then online-svm restore {feed} FILE; "
        f"or begin anew with online-svm reset {feed}"
    )


class Trouble(NamedTuple):
    """A failure that lasts."""

    reason: str  # one line, for a person
    since: float  # `time.monotonic` at the first of the consecutive failures


def still(before: Trouble | None, reason: str) -> Trouble:
    """Return the trouble with the newest reason; it keeps the start of the one `before`."""
    return Trouble(reason, time.monotonic() if before is None else before.since)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn an OSError in the block into BadConfiguration: a file of the user cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"{place}: cannot be written: {error.strerror or error}"
        raise BadConfiguration(reason) from None
