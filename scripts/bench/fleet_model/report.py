"""What the simulation of a fleet prints."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scripts.bench.fleet_model.fleet import Cause, Failures, Fleet, Timings
from scripts.bench.fleet_model.simulate import Unserved
from workers.errors import BadConfiguration

YEAR_SECONDS = 365 * 86_400
QUANTILES = {"median": 0.5, "99th percentile": 0.99, "worst": 1.0}


def lines(fleet: Fleet, failures: Failures, timings: Timings, found: Unserved) -> Iterator[str]:
    """Yield the report: what was simulated, each cause, the feeds.

    Parameters
    ----------
    fleet, failures, timings
        What was simulated.
    found : Unserved
    """
    yield (
        f"{fleet.feeds:,} feeds, {fleet.rate:,.0f} examples a second: {fleet.shards} processes on "
        f"{fleet.machines} machines, {fleet.redis} Redis primaries; {found.seconds / 86_400:,.0f} "
        "days"
    )
    yield (
        f"start {timings.start:g} s, lease {timings.lease:g} s, a machine noticed after "
        f"{timings.detection:g} s, fail-over {timings.failover:g} s, a feed taken over in "
        f"{timings.take_over * 1000:g} ms, replays of up to {timings.snapshot_every:,} entries at "
        f"{timings.replay_rate:,.0f} a second ({timings.order})"
    )
    load = load_of(fleet, timings)
    yield f"what came in an outage is answered in {load / (1 - load):.2f} times its length"
    every = {
        Cause.PROCESS: failures.process, Cause.MACHINE: failures.machine,
        Cause.REDIS: failures.redis, Cause.UPGRADE: failures.upgrade,
    }  # fmt: skip
    for cause, share in found.share.items():
        yield (
            f"{cause}, each every {every[cause]:g} days: {found.failures[cause]:,} times, "
            f"{_share(share)}, a feed {found.longest[cause]:.1f} s at most"
        )
    yield f"unserved: mean {_share(float(found.feeds.mean()))}"
    for name, quantile in QUANTILES.items():
        yield f"unserved: {name} {_share(float(np.quantile(found.feeds, quantile)))}"


def load_of(fleet: Fleet, timings: Timings) -> float:
    """Return the rate of examples in parts of what processes answer of a backlog, or replay.

    Raises
    ------
    BadConfiguration
        If the processes cannot answer as much as comes.

    Examples
    --------
    >>> load_of(Fleet(rate=100.0, shards=4), Timings(replay_rate=50.0))
    0.5
    """
    load = fleet.rate / (fleet.shards * timings.replay_rate)
    if load >= 1:
        raise BadConfiguration(
            f"--shards {fleet.shards}: they answer {fleet.shards * timings.replay_rate:,.0f} "
            f"examples a second, and {fleet.rate:,.0f} come; give more of them"
        )
    return load


def _share(share: float) -> str:
    """Return a share of time in parts of a million, and in seconds a year.

    Examples
    --------
    >>> _share(1e-5)
    '10.000 millionths of the time (315 s a year)'
    """
    return f"{share * 1e6:.3f} millionths of the time ({share * YEAR_SECONDS:.0f} s a year)"


def plain(found: Unserved) -> Iterator[dict[str, Any]]:
    """Yield a line of JSON for each cause, then one for each feed."""
    for cause, share in found.share.items():
        yield {
            "cause": str(cause),
            "failures": found.failures[cause],
            "share": share,
            "longest_seconds": found.longest[cause],
        }
    for number, share in enumerate(found.feeds.tolist()):
        yield {"feed": number, "share": share}
