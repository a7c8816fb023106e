"""`fork`: the kept input under a new name, also after it was cut off, and of a feed at work."""

import pytest
from world import COUNT, drain, payloads, push, rows, session

from workers.admin.erased_streams import Missing
from workers.broker.feed_reader import PAGE
from workers.broker.store import Store
from workers.errors import BadConfiguration, InputLost, Unavailable
from workers.feed.keys import REGISTRY
from workers.reading.status import read_status
from workers.recording import fork as forking

ENTRIES = 3 * PAGE + 17


@pytest.fixture
def target(redis_url, feed):
    with Store(redis_url, f"{feed}-2", block_ms=20) as target:
        yield target


def fill(store, count=ENTRIES):
    store.append(
        store.keys.input, [(b"%d-7" % i, [b"x", b"[%d]" % i]) for i in range(1, count + 1)]
    )


def entries_of(store):
    return [entry for page in store.pages(store.keys.input, b"0-0") for entry in page]


class CutOff(Store):
    """Loses its connection in the middle of a page."""

    left = PAGE + 300

    def append(self, stream, entries):
        super().append(stream, entries[: self.left])
        if len(entries) > self.left:
            raise Unavailable("the line is cut")
        self.left -= len(entries)


def test_a_copy_that_was_cut_off_goes_on_where_it_ends(store, redis_url, target):
    fill(store)
    with CutOff(redis_url, target.keys.feed) as cut, pytest.raises(Unavailable):
        forking.fork(store, cut)
    assert target.keys.feed.encode() in target.call("SMEMBERS", REGISTRY)
    assert target.length(target.keys.input) == PAGE + 300
    told = []
    made = forking.fork(store, target, told.append)
    assert made == forking.Fork(ENTRIES - PAGE - 300, ENTRIES, Missing(0))
    assert entries_of(target) == entries_of(store)
    assert (told[-1], told) == (ENTRIES, sorted(told))
    assert forking.fork(store, target) == forking.Fork(0, ENTRIES, Missing(0))
    store.call("XADD", store.keys.input, "99999-0", "x", "[9]")  # it comes after the copy
    assert forking.fork(store, target) == forking.Fork(1, ENTRIES + 1, Missing(0))
    assert entries_of(target) == entries_of(store)


@pytest.mark.parametrize(
    "content",
    [
        [("1-7", "x", "[1]"), ("2-7", "x", "[5]")],  # another value
        [("1-7", "x", "[1]"), ("2-8", "x", "[2]")],  # another ID
        [("1-7", "x", "[1]"), ("3-7", "x", "[3]")],  # one left out
        [("1-7", "x", "[1]"), ("99-0", "x", "[9]")],  # more than the source has
    ],
)
def test_a_target_that_is_no_copy_of_this_source_is_refused(store, target, content):
    fill(store, 10)
    for entry in content:
        target.call("XADD", target.keys.input, *entry)
    before = entries_of(target)
    with pytest.raises(BadConfiguration, match="exists and is no half-made copy"):
        forking.fork(store, target)
    assert entries_of(target) == before


def test_a_target_that_a_worker_has_begun_is_refused(store, target):
    push(store, rows(20))
    forking.fork(store, target)
    drain(session(target), 20)
    push(store, rows(5), first=30)
    with pytest.raises(BadConfiguration, match="exists"):
        forking.fork(store, target)
    assert target.length(target.keys.input) == 20


@pytest.mark.parametrize("begins", [5, 7])
def test_a_half_made_copy_is_continued_unless_the_source_moved_on_beyond_it(store, target, begins):
    fill(store, 20)
    whole = entries_of(store)
    for entry_id, fields in whole[:5]:
        target.call("XADD", target.keys.input, entry_id, *fields)
    store.call("XTRIM", store.keys.input, "MINID", "=", f"{begins}-7")
    if begins == 5:
        assert forking.fork(store, target).copied == 15
        assert entries_of(target) == whole
    else:
        with pytest.raises(InputLost, match=r"reset .* --input"):
            forking.fork(store, target)
        assert entries_of(target) == whole[:5]


class Trimming(Store):
    """Its worker gives up input while it is copied."""

    def pages(self, stream, *span, **options):
        for i, page in enumerate(super().pages(stream, *span, **options)):
            if i == 1:
                self.call("XTRIM", stream, "MAXLEN", "1")
            yield page


def test_input_that_is_trimmed_while_it_is_copied_leaves_no_hole(redis_url, feed, target):
    with Trimming(redis_url, feed) as store:
        fill(store)
        whole = entries_of(target)
        with pytest.raises(InputLost, match="before it was copied"):
            forking.fork(store, target)
    copied = entries_of(target)
    assert [int(entry[0].split(b"-")[0]) for entry in copied] == [*range(1, len(copied) + 1)]
    assert not whole


def test_a_fork_with_other_settings_answers_as_a_new_feed(redis_url, store, target, feed):
    push(store, rows(600))
    drain(session(store, batch=10, snapshot_every=40), 600)
    kept = entries_of(store)
    made = forking.fork(store, target)
    assert made.missing.trimmed == 600 - len(kept) > 0
    assert made.total == len(kept) >= COUNT // 4
    drain(session(target), len(kept))
    with Store(redis_url, f"{feed}-3", block_ms=20) as anew:
        anew.append(anew.keys.input, kept)
        drain(session(anew), len(kept))
        assert payloads(anew) == payloads(target)
    assert read_status(target).seq == len(kept)
