"""The store of a feed under its settings, and what a worker with them must be allowed."""

from workers.broker import permissions
from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.keys import FeedKeys
from workers.feed.output_retention import DOWNSTREAM, Retention
from workers.stop import Stop


def open_store(
    feed: str,
    settings: WorkerSettings,
    url: str,
    stop: Stop | None = None,
    connections: tuple[Connection, Connection] | None = None,
) -> Store:
    """Return the store of a feed under these settings.

    Parameters
    ----------
    feed : str
    settings : WorkerSettings
    url : str
    stop : Stop, optional
    connections : (Connection, Connection), optional
        For commands and for reads, where feeds share them.
    """
    return Store(
        url,
        feed,
        stop,
        patience=settings.wait_redis,
        retention=Retention.of(settings),
        connections=connections,
        wait_replicas=settings.wait_replicas,
    )


def commands_of(url: str, keys: FeedKeys, settings: WorkerSettings) -> list[permissions.Command]:
    """Return the commands of a worker with these settings."""
    group = DOWNSTREAM if settings.downstream == "block" else None
    commands = permissions.of_worker(keys, group)
    commands += permissions.of_replication(url, settings.wait_replicas)
    if settings.publish_every:
        commands += permissions.of_publisher(keys)
    if settings.alarm_url is not None:
        commands += permissions.of_webhook(keys)
    return commands
