"""What a feed answers by the pure core alone, without Redis, threads or a clock."""

from itertools import cycle

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits, load
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.session.answer import process


def replay(config, entries, limits=None, size=None):
    """Yield the outcome of each batch of entries under the IDs 1-0, 2-0, ..., and the predictor.

    Entries are flat lists of fields; without `size` all of them are one batch.
    """
    given = [
        (b"%d-0" % (i + 1), [part if isinstance(part, bytes) else part.encode() for part in fields])
        for i, fields in enumerate(entries)
    ]
    return in_batches(config, given, limits, size)


def in_batches(config, entries, limits=None, size=None):
    """Yield the outcome of each batch of entries, which have IDs, and the predictor."""
    limits = limits or Limits()
    predictor, recent = OnlinePredictor(config), RecentIds(limits.dedupe_window)
    position, size = START, size or len(entries)
    for begin in range(0, len(entries), size):
        outcome = process(predictor, limits, position, entries[begin : begin + size], recent)
        position = outcome.after
        yield outcome, predictor


def restarted(config, entries, limits, cuts):
    """Replay entries in batches of these sizes, each from a snapshot after the one before.

    Return the payloads of `out`, the position, the classes, and the number of duplicates.
    """
    predictor, recent, position = OnlinePredictor(config), RecentIds(limits.dedupe_window), START
    out, sizes = [], cycle(cuts)
    while entries:
        size = next(sizes)
        outcome = process(predictor, limits, position, entries[:size], recent)
        out += outcome.out
        position, entries = outcome.after, entries[size:]
        body = recent.prepend_to(predictor.snapshot())
        predictor, recent = OnlinePredictor(config), RecentIds(limits.dedupe_window)
        predictor.restore(recent.restore_from(body))
    return out, position, predictor.classes, recent.duplicates


def streams_of(config, entries):
    """Return what a feed of such entries writes: answers, reports, alarms, rejections."""
    outcomes = [outcome for outcome, _ in in_batches(config, entries)]
    streams = ("out", "met", "alarms", "dlq")
    return [[e for one in outcomes for e in getattr(one, stream)] for stream in streams]


def replayed(*given, **options):
    """Return the payloads of `out` and `met` of a replay, its position, and the predictor."""
    found = [*replay(*given, **options)]
    out = [payload for outcome, _ in found for payload in outcome.out]
    met = [payload for outcome, _ in found for payload in outcome.met]
    return out, met, found[-1][0].after, found[-1][1]


def given_by(feed):
    """Return the settings of a feed of the oracle, and its entries with their IDs."""
    texts = {
        name: ",".join(value) if isinstance(value, list) else str(value)
        for name, value in feed.settings.items()
    }
    entries = [
        (b"%d-0" % i, [part.encode() for pair in entry.items() for part in pair])
        for i, entry in enumerate(feed.entries, 1)
    ]
    return load(texts), entries
