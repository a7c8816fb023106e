"""Remember feeds that had a state, so that no worker starts such a feed again after Redis lost it.

After FLUSHALL Redis cannot tell a lost feed from a new one. So a process remembers each feed that
it saw, and leaves a file for later processes in the state directory of this user. `online-svm
reset` marks in Redis that a feed may start again.
"""

from hashlib import sha256
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from workers.broker.embedded_directory import state_directory
from workers.broker.feed_reader import FeedReader
from workers.config.redis_url import redacted
from workers.errors import StateLost
from workers.log import Logger

log = Logger("online_svm.worker")

_UNKEPT = "later processes will not know which feeds were answered: set XDG_STATE_HOME"


class KnownFeeds:
    """The feeds of one database of one Redis that were seen with a state.

    Parameters
    ----------
    directory : Path, optional
        Directory of the files that outlive this process.
    is_kept : bool
        Whether this process writes such files.
    """

    def __init__(self, url: str, directory: Path | None = None, is_kept: bool = True) -> None:
        self._server, self._is_kept = _identity(url), is_kept
        name = sha256(self._server.encode()).hexdigest()[:16]
        self._folder = None if directory is None else directory / "feeds" / name
        self._seen: set[str] = set()

    @classmethod
    def of_user(cls, url: str, is_kept: bool = True) -> Self:
        """Return the feeds seen by all processes of this user; see `state_directory`."""
        try:
            return cls(url, state_directory(), is_kept)
        except RuntimeError as error:  # no home directory
            log.warning(_UNKEPT, reason=str(error))
            return cls(url)

    def __contains__(self, feed: str) -> bool:
        return feed in self._seen or self._file(feed) is not None

    def add(self, feed: str) -> None:
        """Remember a feed that has a state."""
        if feed in self._seen:
            return
        self._seen.add(feed)
        if self._folder is None or not self._is_kept:
            return
        try:
            # One by one: `mkdir` would create parents that other users may enter.
            for folder in (self._folder.parents[1], self._folder.parent, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._folder / feed
            if not file.exists():
                file.write_text(f"{self._server}\n")
        except OSError as error:
            log.warning(_UNKEPT, reason=str(error))
            self._folder = None

    def check_new(self, reader: FeedReader, lost: StateLost) -> None:
        """Raise `lost`, with the evidence, if a feed without a state had one and was not reset."""
        feed = reader.keys.feed
        if feed not in self or reader.exists(reader.keys.restart_mark):
            return
        file = self._file(feed)
        where = "this process saw it" if file is None else f"{file} says that it was answered"
        raise StateLost(f"{lost} ({where})")

    def _file(self, feed: str) -> Path | None:
        """Return the file of a feed, if there is one."""
        if self._folder is None:
            return None
        file = self._folder / feed
        try:
            return file if file.exists() else None
        except OSError as error:  # the directory of another user
            log.warning(_UNKEPT, reason=str(error))
            self._folder = None
            return None


def _identity(url: str) -> str:
    """Return the server and database of a URL, without credentials.

    Examples
    --------
    >>> _identity("redis://worker:secret@h:6379/0"), _identity("unix:///run/redis.sock?db=1")
    ('redis://h:6379/0', 'unix:///run/redis.sock?db=1')
    """
    try:
        database = parse_qs(urlsplit(url).query).get("db")
    except ValueError:  # the connection reports the invalid address
        database = None
    return redacted(url) + (f"?db={database[0]}" if database else "")
