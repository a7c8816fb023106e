"""Read-only checks before the first write: permissions, keys, configuration, ends, snapshots."""

from dataclasses import dataclass

from workers.broker import permissions
from workers.broker.commit_script import lost, may_be_in_file
from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import (
    InvalidStoredSnapshot,
    OutputAhead,
    SnapshotsLost,
    StateAhead,
    StateLost,
    WrongKeyType,
)
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import check_config, pinned_config
from workers.feed.position import END, LAST_ID, parse_id
from workers.feed.retention import DOWNSTREAM, Retention
from workers.feed.state import FeedState, PinnedConfig, Pointer
from workers.feed.stored_settings import effective_settings
from workers.session import snapshots
from workers.session.known_feeds import KnownFeeds
from workers.session.server_checks import check_server, durability, name_of
from workers.stop import Stop


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
        f"for byte; else online-svm restore {keys.feed} FILE, or: online-svm reset {keys.feed}"
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
        raise SnapshotsLost(
            f"feed {store.keys.feed!r}: no kept snapshot can be used. {' '.join(problems)} Restore "
            f"one from a backup, or begin anew with: online-svm reset {store.keys.feed}"
        )
    return tuple(problems)


def _problem(store: Store, pointer: Pointer, state: FeedState) -> str | None:
    try:
        snapshots.read(store, pointer, state.pinned.config_hash)
    except InvalidStoredSnapshot as error:
        return f"Snapshot {store.keys.snapshot(pointer.n, pointer.sha256)} cannot be used: {error}."
    return None
