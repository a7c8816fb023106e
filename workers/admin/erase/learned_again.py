"""The learner of a feed, made anew from the input that is kept, without the erased entries.

A learner holds the examples of its window, and machines that were fitted on them. So nothing of the
old one is taken over. The feed stays where it is: cursor, `seq` and digest are those of before.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from workers.broker.batch_size import Entry
from workers.feed.erased import Base
from workers.feed.position import Position, parse_id
from workers.feed.state import FeedState
from workers.session.replay import Replay

Pages = Callable[[], Iterable[Sequence[Entry]]]
"""Called for a pass over pages of entries."""


def learn_again(
    feed: str, state: FeedState, kept: Pages, holes: Sequence[bytes], at: Position, first: bytes
) -> tuple[Base, Replay]:
    """Learn the kept input again; return where that began and ended, and what was learned.

    Parameters
    ----------
    feed : str
    state : FeedState
        For the settings.
    kept : callable
        Gives input up to the cursor; entries among `holes` may still be there, and are left out.
    holes : sequence of bytes
        IDs of erased entries from the first kept one on, in order.
    at : Position
        Of the feed.
    first : bytes
        ID of the first entry, erased or kept.
    """
    replay, gone = Replay.of(feed, state), frozenset(holes)
    count = sum(entry[0] not in gone for page in kept() for entry in page) + len(holes)
    replay.position = Position(seq=at.seq - count)
    for passed, run in runs(kept(), holes):
        replay.position = replace(replay.position, seq=replay.position.seq + passed)
        if run:
            replay.answer(run)
    return Base(first, replace(at, n=replay.predictor.n)), replay


def runs(
    kept: Iterable[Sequence[Entry]], holes: Sequence[bytes]
) -> Iterator[tuple[int, list[Entry]]]:
    """Yield runs of entries, with how many erased ones stood before each; the last may be empty.

    Examples
    --------
    >>> pages = [[(b"1-0", []), (b"2-0", [])], [(b"4-0", [])]]
    >>> [(gone, [at for at, _ in run]) for gone, run in runs(pages, [b"2-0", b"3-0", b"9-0"])]
    [(0, [b'1-0']), (2, [b'4-0']), (1, [])]
    """
    left, passed, run = deque(holes), 0, list[Entry]()
    for page in kept:
        for entry in page:
            new, is_erased = 0, False
            while left and parse_id(left[0]) <= parse_id(entry[0]):
                is_erased = left.popleft() == entry[0]
                new += 1
            if new and run:
                yield passed, run
                passed, run = 0, []
            passed += new
            if not is_erased:
                run.append(entry)
        if run:
            yield passed, run
            passed, run = 0, []
    if passed or left:
        yield passed + len(left), []
