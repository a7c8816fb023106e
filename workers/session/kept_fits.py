"""Keep finished fits of the memory's trees in Redis, so that the next worker need not fit again.

A fit takes effect long after it was submitted, and a snapshot does not wait for it. A worker that
is killed in between would lose it, and one that is killed again and again would never finish.
"""

from contextlib import suppress

from online_svm.refit.memory_trees import KINDS
from workers.broker.store import Store
from workers.broker.streams import pairs_of
from workers.errors import ReadCut, WrongKeyType
from workers.feed.stored_fit import StoredFit
from workers.refit.refitter import PooledRefitter


def keep_finished(store: Store, refits: PooledRefitter) -> None:
    """Store the fits that were finished since the last call; wait for no reply."""
    for fit in refits.pop_finished():
        store.put_fit(fit)


def kept_fits(store: Store) -> dict[bytes, bytes]:
    """Return the trees of all stored fits by the SHA-256 of their tasks; skip damaged entries."""
    found = dict[bytes, bytes]()
    for kind in KINDS:
        with suppress(WrongKeyType, ReadCut):
            for _, fields in store.fits(kind):
                fit = StoredFit.parse(kind, pairs_of(fields))
                if fit is not None:
                    found[fit.task] = fit.trees
    return found
