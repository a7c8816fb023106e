"""Checks before the first write: the server, the keys, the agreement, the snapshots. Reads only."""

from collections.abc import Collection
from dataclasses import dataclass

from workers.broker.commit_script import lost, may_be_in_file
from workers.broker.redis_errors import needs_cluster_url
from workers.broker.store import Store
from workers.config.redis_servers import CLUSTER, kind_of
from workers.config.settings import WorkerSettings
from workers.errors import (
    InvalidStoredSnapshot,
    RedisUnsuitable,
    SnapshotsLost,
    StateLost,
    WrongKeyType,
)
from workers.feed.agreement import agreement, check_config, check_environment
from workers.feed.position import END, LAST_ID
from workers.feed.state import Agreement, FeedState, Pointer
from workers.feed.stored_settings import effective_settings
from workers.session import snapshots
from workers.session.consistency import check_ends
from workers.session.durability import durability
from workers.session.known_feeds import KnownFeeds

OLDEST_REDIS = (6, 2)
"""Exclusive ranges and XTRIM MINID, which the commit needs, came with 6.2."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """The result of the checks.

    Attributes
    ----------
    redis : str
        Version of the server.
    state : FeedState or None
        None for a feed that does not exist yet.
    warnings : tuple of str
        Problems that do not stop a worker.
    """

    redis: str
    state: FeedState | None
    warnings: tuple[str, ...]

    @property
    def is_behind(self) -> bool:
        """Whether a worker that begins now has to replay or to warm up first."""
        if self.state is None or self.state.snapshot is None:
            return True
        return self.state.snapshot.cursor != self.state.position.cursor


@dataclass(frozen=True, slots=True)
class Found:
    """A server and a feed that passed the checks.

    Attributes
    ----------
    server : dict
        The fields of INFO.
    state : FeedState or None
        None for a feed that does not exist yet.
    """

    server: dict[str, str]
    state: FeedState | None


def find(
    store: Store, server: dict[str, str] | None = None, known: KnownFeeds | None = None
) -> Found:
    """Return the server and the state, if a worker with matching settings may begin.

    Parameters
    ----------
    store : Store
    server : dict, optional
        The fields of INFO of a server that was checked.
    known : KnownFeeds, optional
        Feeds that had a state: none of them is begun. This one is added if it has one.

    Raises
    ------
    RedisUnsuitable, StateLost, WrongKeyType
        If the server cannot be used, or the feed cannot be continued.
    """
    if server is None:
        server = store.server()
        check_server(server, store.url)
    check_types(store)
    state = store.state()
    if state is None:
        try:
            check_nothing_is_left(store)
            if known is not None:
                known.check_new(store, lost(store.keys))
        except StateLost:
            # Another worker may have begun the feed between the two looks.
            state = store.state()
            if state is None:
                raise
    if known is not None and state is not None:
        known.add(store.keys.feed)
    return Found(server, state)


def check(
    store: Store,
    ours: Agreement,
    accept_environment: bool = False,
    before: Preflight | None = None,
    found: Found | None = None,
) -> Preflight:
    """Check whether a worker may begin; return what was found.

    Parameters
    ----------
    store : Store
    ours : Agreement
    accept_environment : bool
        Whether the environment may differ from the feed's.
    before : Preflight, optional
        The result of an earlier check. Snapshots it knew are not read again: their names contain
        their hashes, and loading one checks it.
    found : Found, optional
        The result of `find`, if it was just called.

    Raises
    ------
    RedisUnsuitable, ConfigurationChanged, EnvironmentChanged
        If the server cannot be used, or the agreement differs.
    StateLost, WrongKeyType, SnapshotsLost, OutputAhead, StateAhead
        If the feed cannot be continued from what is stored.
    """
    found = found or find(store)
    state, version = found.state, found.server["redis_version"]
    # Who has an earlier result has told what it warned of.
    warnings = durability(store, found.server) if before is None else ()
    if state is None:
        return Preflight(version, None, warnings)
    feed = store.keys.feed
    check_config(feed, state.agreement, ours)
    if not accept_environment:
        check_environment(feed, state.agreement, ours)
    check_ends(store, state)
    known = () if before is None or before.state is None else before.state.snapshots
    warnings += check_snapshots(store, state, known)
    if state.position.cursor == LAST_ID:
        warnings += (f"{store.keys.input}: {END}",)
    return Preflight(version, state, warnings)


def run(
    store: Store,
    given: WorkerSettings,
    accept_environment: bool = False,
    known: KnownFeeds | None = None,
) -> tuple[Preflight, WorkerSettings]:
    """Return what was found, and the settings in force, if a worker with these may begin.

    Raises
    ------
    BadConfiguration, StateLost
        As `check` and `stored_settings.effective_settings`.
    """
    found = find(store, known=known)
    settings = effective_settings(given, store.keys.feed, found.state)
    ours = agreement(settings.predictor, settings.limits)
    return check(store, ours, accept_environment, None, found), settings


def check_server(server: dict[str, str], url: str) -> None:
    """Raise RedisUnsuitable for a server that is too old, or would evict streams.

    The same for a server that is part of a cluster, where the URL names one server alone.
    """
    version = server.get("redis_version", "0.0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        wanted = ".".join(map(str, OLDEST_REDIS))
        raise RedisUnsuitable(f"Redis {version} is too old: {wanted} or newer is needed")
    if server.get("cluster_enabled") == "1" and kind_of(url) != CLUSTER:
        raise needs_cluster_url(url)
    policy = server.get("maxmemory_policy", "noeviction")
    # A volatile-* policy evicts only keys with a time to live; nothing that must last has one.
    if policy.startswith("allkeys"):
        raise RedisUnsuitable(
            f"Redis may evict streams and snapshots (maxmemory-policy {policy}): "
            "set maxmemory-policy noeviction"
        )


def check_types(store: Store) -> None:
    """Raise WrongKeyType for the first key of the feed that holds another type."""
    expected = store.expected_types()
    for key, kind in store.types().items():
        if kind != expected[key]:
            raise WrongKeyType(
                f"{key} holds a {kind}, not a {expected[key]}: move that key away, or use another "
                "feed name"
            )


def check_nothing_is_left(store: Store) -> None:
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


def check_snapshots(
    store: Store, state: FeedState, known: Collection[Pointer] = ()
) -> tuple[str, ...]:
    """Return a warning for each snapshot that cannot be used; `known` ones are not checked.

    Raises
    ------
    SnapshotsLost
        If none can be used, and the input before them is gone.
    """
    pointers = [p for p in state.snapshots if p not in known]
    problems = [problem for p in pointers if (problem := _problem(store, p, state)) is not None]
    if len(problems) == 2:
        now = store.state()
        if now is not None and now.snapshots != state.snapshots:
            # The worker that has the feed brought newer ones, and dropped these, meanwhile.
            return check_snapshots(store, now, known)
        raise SnapshotsLost(
            f"feed {store.keys.feed!r}: no kept snapshot can be used. {' '.join(problems)} Restore "
            f"one from a backup, or begin anew with: online-svm reset {store.keys.feed}"
        )
    return tuple(problems)


def _problem(store: Store, pointer: Pointer, state: FeedState) -> str | None:
    try:
        snapshots.read(store, pointer, state.agreement.config_hash)
    except InvalidStoredSnapshot as error:
        return f"Snapshot {store.keys.snapshot(pointer.n, pointer.sha256)} cannot be used: {error}."
    return None
