"""How long each feed of one process waits until it is answered again."""

import numpy as np

from online_svm.types import Floats
from scripts.bench.fleet_model.fleet import Cause, Order, Timings

Seconds = Floats


def finish_times(work: Seconds, order: Order) -> Seconds:
    """Return when each of several jobs is done, if one processor begins all of them now.

    Parameters
    ----------
    work : ndarray of shape (n,)
        Seconds that each takes alone.
    order : Order

    Examples
    --------
    >>> finish_times(np.array([3.0, 1.0]), Order.QUEUE).tolist()
    [3.0, 4.0]
    >>> finish_times(np.array([3.0, 1.0]), Order.SHARED).tolist()
    [4.0, 2.0]
    """
    if order is Order.QUEUE:
        return np.cumsum(work)
    # While k jobs are left, each advances at 1/k: between two ends the shortest one left goes on
    # for the difference of their work, times how many are left.
    ascending = np.argsort(work, kind="stable")
    steps = np.diff(work[ascending], prepend=0.0)
    ends = np.empty_like(work)
    ends[ascending] = np.cumsum(steps * np.arange(len(work), 0, -1))
    return ends


def outages(cause: Cause, feeds: int, timings: Timings, random: np.random.Generator) -> Seconds:
    """Return the seconds until each feed of one process is answered again, in an order drawn anew.

    1. The process starts: at once where only it was killed, after `detection` where its machine
       was. Leases lapse meanwhile. A worker on the same machine does not wait for those of a dead
       process; elsewhere a lease is held for what is left of it.
    2. Each feed is taken over. After a failure its entries since the last snapshot are replayed,
       uniformly many; after a graceful stop there are none.

    A Redis that changes its primary interrupts only the commands: nothing is replayed.

    Parameters
    ----------
    cause : Cause
    feeds : int
    timings : Timings
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (feeds,)
    """
    if cause is Cause.REDIS:
        return np.full(feeds, timings.failover)
    work = np.full(feeds, timings.take_over)
    if cause is not Cause.UPGRADE:
        work += random.random(feeds) * timings.snapshot_every / timings.replay_rate
    ends = finish_times(work, timings.order)
    if cause is not Cause.MACHINE:
        return timings.start + ends
    # Renewed every third of the lease, between 2/3 and all of it are left when the machine is lost.
    left = timings.lease * random.uniform(2 / 3, 1.0, feeds)
    return np.maximum(timings.detection + timings.start + ends, left + ends)
