"""Whether a process of many feeds lives and is ready, and if not, why.

It is *ready* while Redis replies, the leases are renewed and the loop turns: then every feed is
answered that can be. A feed that is set aside does not make it unready; a restart would not help,
and the others are answered. It is told in `online_svm_stage`, in the log and in `events`.
"""

import time
from collections.abc import Iterator

from workers.fleet.watch import FleetWatch
from workers.monitor.health import LIVE, READY_TURN, Probes
from workers.trouble import Trouble


class FleetHealth(Probes):
    """What fails of a process of many feeds.

    Parameters
    ----------
    watch : FleetWatch
    live : float
        Seconds that a failure may last before the process counts as dead.

    Examples
    --------
    >>> FleetHealth(FleetWatch()).unready(), FleetHealth(FleetWatch()).dead()
    (['feeds: the process is starting'], [])
    """

    def __init__(self, watch: FleetWatch, live: float = LIVE) -> None:
        self._watch, self._live = watch, live

    def unready(self) -> list[str]:
        """Return why the process is not ready; empty if it is."""
        stage = self._watch.stage
        unfinished = [] if stage == "answering" else [f"feeds: the process is {stage}"]
        return unfinished + [f"{part}: {trouble.reason}" for part, trouble in self._troubles()]

    def dead(self) -> list[str]:
        """Return why the process should be restarted; empty if it lives."""
        now = time.monotonic()
        return [
            f"{part}: {trouble.reason} (for {now - trouble.since:.0f} s)"
            for part, trouble in self._troubles()
            if now - trouble.since > self._live
        ]

    def _troubles(self) -> Iterator[tuple[str, Trouble]]:
        watch, now = self._watch, time.monotonic()
        for connection in watch.connections:
            if connection.trouble is not None:
                yield "redis", connection.trouble
                break
        if watch.renewed is not None and now - watch.renewed > watch.lease:
            late = f"not renewed for {now - watch.renewed:.0f} s, each lasts {watch.lease:g} s"
            yield "leases", Trouble(late, watch.renewed)
        if watch.stage == "answering" and now - watch.turned > READY_TURN:
            still = f"the loop has not turned for {now - watch.turned:.0f} s"
            yield "feeds", Trouble(still, watch.turned)
        failing = {feed: one.refits for feed, one in list(watch.feeds.items()) if one.refits}
        for feed, trouble in list(failing.items())[:1]:
            more = f" ({len(failing)} feeds)" if len(failing) > 1 else ""
            yield "refits", Trouble(f"of {feed}: {trouble.reason}{more}", trouble.since)
