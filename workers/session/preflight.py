"""Read-only checks before the first write: server, permissions, keys, configuration, snapshots.

Redis 7.0 to 8.4 reads its append-only file as the user `default`, and checks the permissions of
that user for commands between MULTI and EXEC, which include all writes of scripts. If `default`
lacks permissions, a restart skips the commits of every feed and reads everything else.

After FLUSHALL Redis cannot tell a lost feed from a new one. So a process remembers each feed that
it saw, and leaves a file for later processes in the state directory of this user (`KnownFeeds`).
`online-svm reset` marks in Redis that a feed may start again.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from workers.broker import permissions
from workers.broker.client import needs_cluster_url
from workers.broker.commit_script import lost, may_be_in_file
from workers.broker.connection import Connection
from workers.broker.embedded_directory import state_directory
from workers.broker.feed_reader import FeedReader
from workers.broker.permissions import of_commit
from workers.broker.store import Store
from workers.config.redis_url import CLUSTER, kind_of, redacted
from workers.config.settings import WorkerSettings
from workers.errors import (
    InvalidStoredSnapshot,
    OutputAhead,
    RedisUnsuitable,
    StateAhead,
    StateLost,
    Stopped,
    Unavailable,
    WorkerError,
    WrongKeyType,
    way_back,
    without_snapshots,
)
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import check_config, pinned_config
from workers.feed.position import END, LAST_ID, parse_id
from workers.feed.retention import DOWNSTREAM, Retention
from workers.feed.state import FeedState, PinnedConfig, Pointer
from workers.feed.stored_settings import effective_settings
from workers.log import Logger
from workers.session import snapshots
from workers.stop import Stop

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


OLDEST_REDIS = (6, 2)  # 6.2 introduced exclusive ranges and XTRIM MINID, which the commit needs

_FIRST_AFFECTED = (7, 0)
_FIXED_REDIS = (8, 6)
_FIXED_VALKEY = (9, 1, 2)
"""Valkey 8.0.11 and 8.1.10 are fixed as well; there, the warning is superfluous but harmless."""

NO_FILE = "Redis keeps no append-only file: what it loses in a crash is lost (appendonly yes)"

_SEE = "see deploy/redis/README.md, 'A restart'"

SKIPS = (
    "at its next restart this Redis will skip what feeds committed since the last rewrite of its "
    "append-only file: its user `default` may not run {}. Before that, give it its rights and "
    "leave it off: ACL SETUSER default off resetpass allkeys allchannels +@all, and the same in "
    f"the users' file; {_SEE}"
)

UNSEEN = (
    "a restart of this Redis may skip what feeds committed: whether its user `default` has the "
    f"rights that reading the append-only file takes cannot be seen without +acl|dryrun; {_SEE}"
)


def name_of(server: dict[str, str]) -> str:
    """Return name and version of a server by its INFO; Valkey also states a version of Redis.

    >>> name_of({"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    'Valkey 9.1.2'
    """
    valkey = server.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {server.get('redis_version', '0.0')}"


def check_server(server: dict[str, str], url: str) -> None:
    """Raise RedisUnsuitable for a server that is too old, or would evict streams.

    Also if the server is part of a cluster, but the URL is for a single server.
    """
    version = server.get("redis_version", "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        wanted = ".".join(map(str, OLDEST_REDIS))
        raise RedisUnsuitable(f"{name_of(server)} is too old: Redis {wanted} or newer is needed")
    if server.get("cluster_enabled") == "1" and kind_of(url) != CLUSTER:
        raise needs_cluster_url(url)
    policy = server.get("maxmemory_policy", "noeviction")
    # A volatile-* policy evicts only keys that expire anyway.
    if policy.startswith("allkeys"):
        raise RedisUnsuitable(
            f"Redis may evict streams and snapshots (maxmemory-policy {policy}): "
            "set maxmemory-policy noeviction"
        )


def durability(reader: FeedReader, server: dict[str, str]) -> tuple[str, ...]:
    """Return a warning if the feed's server may lose committed data at a restart."""
    if server.get("aof_enabled", "0") != "1":
        return (NO_FILE,)
    if not checks_rights_of_file(server):
        return ()
    for command in of_commit(reader.keys):
        try:
            is_allowed = reader.may_run("default", command)
        except (Unavailable, Stopped):
            raise
        except WorkerError:  # ACL DRYRUN is missing, or not permitted
            return (UNSEEN,)
        if not is_allowed:
            return (SKIPS.format(f"{command[0]} on {command[1]}"),)
    return ()


def checks_rights_of_file(server: dict[str, str]) -> bool:
    """Return whether the server checks permissions when it reads its append-only file.

    Examples
    --------
    >>> checks_rights_of_file({"redis_version": "7.0.15"})
    True
    >>> checks_rights_of_file({"redis_version": "6.2.14"})
    False
    >>> checks_rights_of_file({"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    False
    """
    if "valkey_version" in server:
        return _numbers(server["valkey_version"]) < _FIXED_VALKEY
    return _FIRST_AFFECTED <= _numbers(server["redis_version"]) < _FIXED_REDIS


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def open_store(
    feed: str,
    settings: WorkerSettings,
    url: str,
    stop: Stop | None = None,
    connections: tuple[Connection, Connection] | None = None,
) -> Store:
    """Return the store of a feed with these settings."""
    return Store(
        url, feed, stop, retry_timeout=settings.wait_redis, retention=Retention.of(settings),
        connections=connections, wait_replicas=settings.wait_replicas,
    )  # fmt: skip


def commands_of(url: str, keys: FeedKeys, settings: WorkerSettings) -> list[permissions.Command]:
    """Return the commands that a worker with these settings uses."""
    group = DOWNSTREAM if settings.downstream == "block" else None
    commands = permissions.of_worker(keys, group)
    commands += permissions.of_replication(url, settings.wait_replicas)
    if settings.publish_every:
        commands += permissions.of_publisher(keys)
    if settings.alarm_url is not None:
        commands += permissions.of_webhook(keys)
    return commands


@dataclass(frozen=True, slots=True)
class FeedEnds:
    """The last IDs of a feed's state and answers; after every commit they are equal."""

    state: bytes  # cursor in `st`
    out: bytes  # last generated ID of `out`

    @property
    def is_behind(self) -> bool:
        """Whether `out` has answers after the cursor."""
        return parse_id(self.state) < parse_id(self.out)

    @property
    def is_ahead(self) -> bool:
        """Whether `out` lacks the answers up to the cursor."""
        return parse_id(self.out) < parse_id(self.state)


def find_ends(store: Store, state: FeedState) -> FeedEnds:
    """Return the last IDs of a feed's state and answers.

    If `out` does not exist, a user deleted it on purpose: its end counts as equal.
    """
    out = last_id(store, store.keys.out)
    return FeedEnds(state.position.cursor, state.position.cursor if out is None else out)


def last_id(store: Store, stream: str) -> bytes | None:
    """Return the last generated ID of a stream; None if it does not exist."""
    return store.stream_info(stream).last_id if store.has_stream(stream) else None


def check_ends(store: Store, state: FeedState) -> None:
    """Raise OutputAhead or StateAhead unless state and answers end at the same ID.

    `state` was read before; commits of a running worker since then are no error.
    """
    found, keys = find_ends(store, state), store.keys
    if found.is_behind and (now := store.state()) is not None:
        # A worker may have committed between the two reads. Commits are atomic, so a state that is
        # read after the answers has at least their last ID.
        if parse_id(now.position.cursor) >= parse_id(found.out):
            return
        found, state = FeedEnds(now.position.cursor, found.out), now
    if not (found.is_behind or found.is_ahead):
        return
    newer, older = (keys.out, keys.state) if found.is_behind else (keys.state, keys.out)
    error = OutputAhead if found.is_behind else StateAhead
    raise error(
        f"{newer} is newer than {older}: the state ends at {found.state.decode()} (seq "
        f"{state.position.seq}), the answers end at {found.out.decode()}. online-svm verify "
        f"{keys.feed} --repair mends it where answering the input again gives those answers byte "
        f"for byte; else {way_back(keys.feed)}"
    )


@dataclass(frozen=True, slots=True)
class Preflight:
    """The result of the checks."""

    server: str  # its name and version
    state: FeedState | None  # None for a feed that does not exist yet
    warnings: tuple[str, ...]  # problems that do not stop a worker

    @property
    def is_behind(self) -> bool:
        """Whether a worker would first have to replay or warm up."""
        if self.state is None or self.state.snapshot is None:
            return True
        return self.state.snapshot.cursor != self.state.position.cursor


@dataclass(frozen=True, slots=True)
class Found:
    """A server and a feed that passed the checks."""

    server: dict[str, str]  # the fields of INFO
    state: FeedState | None  # None for a feed that does not exist yet


def find(
    store: Store, server: dict[str, str] | None = None, known: KnownFeeds | None = None
) -> Found:
    """Return the server and the state, if a worker with matching settings may start.

    `server` is INFO of a server that was already checked. A feed without state must not be in
    `known`; one with state is added to it. Raises RedisUnsuitable, StateLost, WrongKeyType.
    """
    if server is None:
        server = store.server()
        check_server(server, store.url)
    check_types(store)
    state = store.state()
    if state is None:
        try:
            check_no_remains(store)
            if known is not None:
                known.check_new(store, lost(store.keys))
        except StateLost:
            # Another worker may have created the feed between the two reads.
            state = store.state()
            if state is None:
                raise
    if known is not None and state is not None:
        known.add(store.keys.feed)
    return Found(server, state)


def check(
    store: Store, pinned: PinnedConfig, found: Found | None = None, is_take_over: bool = False
) -> Preflight:
    """Check whether a worker may start.

    `found` is a fresh result of `find`. At a take-over the server is already checked, and the
    snapshots are read next. Raises RedisUnsuitable if the server cannot be used;
    ConfigurationChanged; StateLost, WrongKeyType, SnapshotsLost, OutputAhead, StateAhead if the
    stored feed cannot be continued.
    """
    found = found or find(store)
    state, server = found.state, name_of(found.server)
    warnings = () if is_take_over else durability(store, found.server)
    if state is None:
        return Preflight(server, None, warnings)
    feed = store.keys.feed
    check_config(feed, state.pinned, pinned)
    check_ends(store, state)
    if not is_take_over:
        warnings += check_snapshots(store, state)
    if state.position.cursor == LAST_ID:
        warnings += (f"{store.keys.input}: {END}",)
    return Preflight(server, state, warnings)


def run(
    store: Store, given: WorkerSettings, known: KnownFeeds | None = None
) -> tuple[Preflight, WorkerSettings]:
    """Check whether a worker may start; return the result and the effective settings.

    Raises as `check` and `stored_settings.effective_settings`.
    """
    found = find(store, known=known)
    settings = effective_settings(given, store.keys.feed, found.state)
    pinned = pinned_config(settings.predictor, settings.limits)
    return check(store, pinned, found), settings


def check_types(store: Store) -> None:
    """Raise WrongKeyType if a key of the feed holds another type."""
    expected = store.expected_types()
    for key, kind in store.types().items():
        if kind != expected[key]:
            raise WrongKeyType(
                f"{key} holds a {kind}, not a {expected[key]}: move that key away, or use another "
                "feed name"
            )


def check_no_remains(store: Store) -> None:
    """Raise StateLost if a feed without state has outputs or snapshots."""
    keys, found = store.keys, store.types()
    left = [key for key in keys.outputs[:-1] if key in found]
    if not left and store.has_snapshots():
        left = [keys.snapshots]
    if left:
        raise StateLost(
            f"{keys.state} is gone but {left[0]} is there, so the state was lost: "
            f"{may_be_in_file(keys)}"
        )


def check_snapshots(store: Store, state: FeedState) -> tuple[str, ...]:
    """Return a warning for each unusable snapshot. Raises SnapshotsLost if both are unusable."""
    found = (_problem(store, pointer, state) for pointer in state.snapshots)
    problems = [problem for problem in found if problem is not None]
    if len(problems) == 2:
        now = store.state()
        if now is not None and now.snapshots != state.snapshots:
            # A worker has replaced these snapshots by newer ones meanwhile.
            return check_snapshots(store, now)
        raise without_snapshots(store.keys.feed, " ".join(problems))
    return tuple(problems)


def _problem(store: Store, pointer: Pointer, state: FeedState) -> str | None:
    try:
        snapshots.read(store, pointer, state.pinned.config_hash)
    except InvalidStoredSnapshot as error:
        return f"Snapshot {store.keys.snapshot(pointer.n, pointer.sha256)} cannot be used: {error}."
    return None
