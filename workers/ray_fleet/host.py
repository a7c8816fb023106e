"""One shard of a fleet, in a process that Ray started.

Ray stores the arguments of the constructor, for restarts: how to connect to Redis, the name of the
fleet, and the index of the shard. Everything else is read from Redis, so that a restarted actor has
the current definition of the fleet.
"""

import os
import platform
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from workers.broker.connection import Connection
from workers.config.setting_sources import matching_sections, merged_sections
from workers.config.settings import WorkerSettings, load_with
from workers.errors import WorkerError
from workers.feed.selection import Selection, owner
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhooks
from workers.ray_fleet.definition import FleetDefinition, FleetStore
from workers.stop import Stop

log = Logger("online_svm.fleet")

REGISTRY_SECONDS = 1.0  # seconds between two reads of the definition, and of the list of feeds
RETRY_SECONDS = 5.0  # seconds until the shard tries again after an error


class ShardHost:
    """Answers the feeds of shard `index` of a fleet in a thread, until it is drained.

    `access` are the settings of the connection to Redis; credentials only as file names.
    """

    def __init__(self, access: Mapping[str, str], fleet: str, index: int) -> None:
        self._access, self._fleet, self._index = dict(access), fleet, index
        self._stop = Stop()
        self._run: Stop | None = None  # stops the current `Worker`
        self._defined: FleetDefinition | None = None
        self._problem: str | None = None
        self._watch = WorkerWatch()
        self._since = time.time()
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for name, target in (("feeds", self._serve), ("definition", self._follow))
        ]
        for thread in self._threads:
            thread.start()

    def status(self) -> dict[str, Any]:
        """Return the status of this shard, as JSON."""
        defined = self._defined
        return {
            "shard": self._index,
            "shards": defined.shards if defined else None,
            "host": platform.node(),
            "pid": os.getpid(),
            "since": self._since,
            "problem": self._problem,
            "feeds": {feed: record.described() for feed, record in sorted(self._watch.feeds.items())
                      if self._owns(feed)},
        }  # fmt: skip

    def drain(self) -> bool:
        """Take a snapshot of each feed, release the leases; return whether that succeeded."""
        self._stop.request()
        if (run := self._run) is not None:
            run.request()
        for thread in self._threads:
            thread.join(self._stop.grace + RETRY_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    def __ray_shutdown__(self) -> None:
        """Drain the shard when Ray ends the actor gracefully."""
        self.drain()

    def _owns(self, feed: str) -> bool:
        """Return whether this shard owns a feed, by the current definition."""
        defined = self._defined
        if defined is None or self._index >= defined.shards:
            return False
        return owner(feed, defined.shards) == self._index

    def _follow(self) -> None:
        """Poll the definition; stop the current worker if more than `shards` changed."""
        connection = None
        while not self._stop.requested:
            try:
                if connection is None:
                    nothing = FleetDefinition(patterns=(self._fleet,), shards=0)
                    url = self._settings(nothing, "").url or ""
                    connection = Connection(url, self._stop)
                self._adopt(FleetStore(connection, self._fleet).get())
            except WorkerError as error:
                if self._defined is None:
                    self._problem = f"{type(error).__name__}: {error}"
            self._stop.wait(REGISTRY_SECONDS)
        if connection is not None:
            connection.close()

    def _adopt(self, found: FleetDefinition | None) -> None:
        before, self._defined = self._defined, found
        is_other = before is None or found is None or _but_shards(before) != _but_shards(found)
        if is_other and (run := self._run) is not None:
            run.request()

    def _serve(self) -> None:
        """Answer the feeds; after an error start again."""
        while not self._stop.requested:
            defined, self._run = self._defined, Stop()
            try:
                if defined is None:
                    self._stop.wait(REGISTRY_SECONDS / 10)
                    continue
                self._answer(defined, self._run)
            except Exception as error:  # restarting the process by Ray would have no other effect
                self._problem = f"{type(error).__name__}: {error}"
                log.exception(
                    "the shard begins again", shard=self._index, again_after=RETRY_SECONDS
                )
                self._stop.wait(RETRY_SECONDS)

    def _answer(self, defined: FleetDefinition, run: Stop) -> None:
        # Imported here: an actor answers `status` before numpy and scipy are loaded.
        from workers.runner.service import Worker
        from workers.session.preflight import KnownFeeds

        settings = self._settings(defined, "")
        run.grace = self._stop.grace = settings.grace
        is_other = _but_shards(self._defined) != _but_shards(defined)
        if self._stop.requested or is_other:
            return  # requested before `_run` was set
        url = settings.url or ""
        with closing(Webhooks(url)) as webhooks:
            self._problem, self._watch = None, WorkerWatch(webhooks=webhooks)
            Worker(
                Selection(defined.patterns, self._owns), settings, url, run,
                name=f"{self._fleet}-{self._index}", watch=self._watch,
                poll_seconds=REGISTRY_SECONDS, settings_of=partial(self._settings, defined),
                known=KnownFeeds.of_user(url),
            ).run()  # fmt: skip

    def _settings(self, defined: FleetDefinition, feed: str) -> WorkerSettings:
        """Return the settings of a feed, or of the process for "".

        The environment of this machine supplies settings that the fleet does not define.
        """
        names = matching_sections(defined.feeds, feed) if feed else ()
        section = defined.file | merged_sections(defined.feeds, names)
        return load_with(defined.settings | self._access, None, False, section)


def _but_shards(definition: FleetDefinition | None) -> FleetDefinition | None:
    return definition and definition.model_copy(update={"shards": 0})
