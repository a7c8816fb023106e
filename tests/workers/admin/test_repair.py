"""`st` behind or ahead of `out` by whole commits: named, and mended where a replay proves it."""

import pytest
from session_steps import answer_batch
from world import (
    CONFIG,
    SETTINGS,
    drain,
    flags_of,
    outcome,
    payloads,
    push,
    rows,
    session,
    take_back,
)  # fmt: skip

from workers.admin import repair as repairing
from workers.admin.repair import Change, repair, write_change
from workers.broker.feed_reader import PAGE
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import (
    CommitRefused,
    Fenced,
    InputLost,
    NotRepairable,
    ReplayMismatch,
    StateAhead,
)
from workers.feed.pinned_config import pinned_config
from workers.reading.registry import FeedInUse
from workers.recording.begin import RestorePoint
from workers.recording.begin import put_back as restore
from workers.session import preflight

EARLIER, COUNT, ALL = 60, 120, 160


class SmallPages(Store):
    """Walks streams a few entries at a time, so that a repair takes many steps."""

    def pages(self, stream, after, upto=b"+", count=PAGE):
        return super().pages(stream, after, upto, min(count, 7))


@pytest.fixture
def store(redis_url, feed):
    with SmallPages(redis_url, feed, block_ms=20) as store:
        push(store, rows()[:ALL])
        yield store


def checked(store):
    return preflight.check(store, pinned_config(CONFIG, Limits()))


def copies(store, *names):
    return {name: store.call("DUMP", getattr(store.keys, name)) for name in names}


def put_back(store, kept):
    for name, dumped in kept.items():
        key = getattr(store.keys, name)
        store.call("DEL", key)
        if dumped is not None:
            store.call("RESTORE", key, 0, dumped)


@pytest.fixture(params=[False, True], ids=["from the start", "from a snapshot"])
def whole(request, store):
    """A feed at 60 entries, then at 120, and copies of what it was at 60."""
    running = session(store, snapshot_every=1000)
    drain(running, 40)
    if request.param:
        running.snapshot()
    drain(running, EARLIER)
    kept = copies(store, "state", "out", "met", "dlq")
    drain(running, COUNT)
    return kept, outcome(store)


def behind(store, kept):
    put_back(store, {"state": kept["state"]})


def ahead(store, kept):
    put_back(store, {name: kept[name] for name in ("out", "met", "dlq")})


def everything(store):
    """Return what the keys hold; a dump of a hash depends on how its table grew."""
    flat = store.call("HGETALL", store.keys.state)
    streams = copies(store, "out", "met", "dlq", "input")
    return dict(zip(flat[::2], flat[1::2], strict=True)), streams


def test_a_state_behind_its_answers_is_moved_to_their_end(store, whole):
    kept, complete = whole
    behind(store, kept)
    done = repair(store)
    assert (done.before.seq, done.after.seq, done.appended) == (EARLIER, COUNT, 0)
    assert outcome(store) == complete
    checked(store)
    drain(session(store), ALL)
    repaired = outcome(store)
    put_back(store, dict.fromkeys(("state", "out", "met", "dlq")))
    drain(session(store), ALL)
    assert outcome(store) == repaired


def test_a_state_ahead_of_the_answers_is_named_and_its_answers_are_written_again(store, whole):
    kept, complete = whole
    letters = list(store.pages(store.keys.dlq, b"0-0"))
    ahead(store, kept)
    told = r":st is newer than .*:out: the state ends at 120-0 \(seq 120\), the answers end at 60-0"
    with pytest.raises(StateAhead, match=told + ".*online-svm verify .* --repair"):
        checked(store)
    assert repair(store).appended == COUNT - EARLIER
    assert outcome(store) == complete
    assert list(store.pages(store.keys.dlq, b"0-0")) == letters
    checked(store)


def test_a_repair_that_was_cut_off_is_finished_by_the_next(store, whole, monkeypatch):
    kept, complete = whole
    ahead(store, kept)
    steps = []

    def cut(store, change):
        steps.append(change)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return write_change(store, change)

    monkeypatch.setattr(repairing, "write_change", cut)
    with pytest.raises(KeyboardInterrupt):
        repair(store)
    with pytest.raises(StateAhead):
        checked(store)
    assert 0 < repair(store).appended < COUNT - EARLIER
    assert outcome(store) == complete


def test_a_restore_gives_up_the_answers_that_are_missing_and_the_feed_goes_on(store, whole):
    session(store).snapshot()
    point = RestorePoint.of(store)
    ahead(store, whole[0])
    restore(store, point, overwrite=True)
    checked(store)
    drain(session(store), ALL)
    given = [int(at.partition(b"-")[0]) for at, _ in payloads(store)[0]]
    assert given == [*range(1, EARLIER + 1), *range(COUNT + 1, ALL + 1)]


def test_where_state_and_answers_agree_or_all_answers_are_gone_nothing_is_done(store, whole):
    before = everything(store)
    done = repair(store)
    assert (done.before, done.appended) == (done.after, 0)
    assert everything(store) == before
    store.call("DEL", store.keys.out)  # by somebody: they are not missed
    checked(store)
    assert repair(store).appended == 0


def changed_answer(store):
    found = store.call("XRANGE", store.keys.out, "120-0", "120-0")[0][1][1]
    take_back(store, store.keys.out, "118-0")
    for at in ("119-0", "120-0"):
        store.call("XADD", store.keys.out, at, "p", found)


def answer_between(store):
    store.call("XADD", store.keys.out, "120-1", "p", "{}")
    push(store, rows()[:1], 121_000)


def answer_after(store):
    store.call("XADD", store.keys.out, "99999-0", "p", "{}")


def added_report(store):
    store.call("XADD", store.keys.met, "130-0", "p", "{}")


def changed_input(store):
    """Another example under the same ID, as after a restore of another stream."""
    found = [entry for page in store.pages(store.keys.input, b"0-0") for entry in page]
    store.call("DEL", store.keys.input)
    for entry_id, fields in found:
        new = [b"x", b"[9,9,9]", b"y", b"a"] if entry_id == b"110-0" else fields
        store.call("XADD", store.keys.input, entry_id, *new)


def without(name, at=None):
    """Return what takes an entry of a stream away: the newest, unless it is named."""

    def take(store):
        stream = getattr(store.keys, name)
        store.call("XDEL", stream, at or store.call("XREVRANGE", stream, "+", "-")[0][0])

    return take


FORGERIES = {forge.__name__: forge for forge in (
    changed_answer, answer_between, answer_after, added_report, changed_input)} | {
    "answer gone": without("out", "100-0"), "report gone": without("met"),
    "dead letter gone": without("dlq"), "input gone": without("input", "110-0"),
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_no_answer_is_accepted_that_a_replay_does_not_give(store, whole, forge):
    behind(store, whole[0])
    forge(store)
    before = everything(store)
    with pytest.raises(NotRepairable, match=r"cannot be repaired.*restore .* FILE; .*reset"):
        repair(store)
    assert everything(store) == before


def test_a_state_that_no_replay_reaches_is_not_repaired(store, whole):
    behind(store, whole[0])
    store.call("HSET", store.keys.state, "digest", "11" * 32)
    with pytest.raises(ReplayMismatch):
        repair(store)
    put_back(store, {"state": whole[0]["state"]})
    store.call("XDEL", store.keys.input, "55-0")
    with pytest.raises(InputLost):
        repair(store)


def test_missing_answers_are_not_made_up_where_the_digest_is_not_reached(store, whole):
    ahead(store, whole[0])
    changed_input(store)
    before = everything(store)
    with pytest.raises(ReplayMismatch):
        repair(store)
    assert everything(store) == before


def test_a_state_whose_snapshots_and_input_went_cannot_be_repaired(store):
    running = session(store, snapshot_every=1000)
    drain(running, EARLIER)
    running.snapshot()
    kept = copies(store, "state")
    drain(running, COUNT)
    pointer = store.state().snapshot
    store.call("DEL", *pointer.keys(store.keys))
    store.call("XTRIM", store.keys.input, "MINID", "50-0")
    put_back(store, kept)
    with pytest.raises((NotRepairable, InputLost)):
        repair(store)


def test_a_feed_at_work_is_not_repaired(store, whole):
    behind(store, whole[0])
    store.call("SET", store.keys.lease, Holder.here("alive").encode())
    before = everything(store)
    with pytest.raises(FeedInUse, match="held"):
        repair(store)
    assert everything(store) == before


def test_whoever_works_on_what_was_there_before_is_fenced(store, whole):
    kept, complete = whole
    behind(store, kept)
    put_back(store, {name: kept[name] for name in ("out", "met", "dlq")})
    zombie = session(store)
    epoch = store.state().epoch
    drain(zombie, COUNT)
    behind(store, kept)
    store.call("HSET", store.keys.state, "epoch", epoch)
    repair(store)
    with pytest.raises((Fenced, CommitRefused)):
        answer_batch(zombie)
    assert outcome(store) == complete


@pytest.mark.parametrize("happens", ["taken over", "moved", "written to", "held"])
def test_a_feed_that_somebody_takes_meanwhile_is_left_as_it_is(store, whole, happens):
    behind(store, whole[0])
    state = store.state()
    change = Change(state.epoch, state.position, whole[1][1], b"", b"120-0")
    if happens == "taken over":
        store.call("HINCRBY", store.keys.state, "epoch", 1)
    elif happens == "moved":
        store.call("HSET", store.keys.state, "cursor", "61-0")
    elif happens == "written to":
        store.call("XADD", store.keys.out, "121-0", "p", "{}")
    else:
        store.call("SET", store.keys.lease, Holder.here("alive").encode())
    before = everything(store)
    with pytest.raises(FeedInUse, match="meanwhile"):
        write_change(store, change)
    assert everything(store) == before


def test_the_command_says_what_it_did(store, whole, feed, run):
    behind(store, whole[0])
    code, _, err = run("check", feed, *flags_of(SETTINGS))
    assert (code, "is newer than" in err) == (4, True)

    def repaired():
        code, out, err = run("verify", feed, "--repair")
        return code, out.removeprefix(f"feed {feed}: "), err

    moved = "answers found as answering the input again gives them; the state moved from seq 60 to"
    assert repaired()[:2] == (0, f"60 {moved} 120\n")
    assert repaired()[:2] == (0, "state and answers agree; nothing to repair\n")
    assert run("verify", feed)[0] == 0
    ahead(store, whole[0])
    assert repaired()[:2] == (0, "60 missing answers written; out ends at 120-0\n")
    assert run("verify", feed)[0] == 0
    answer_after(store)
    code, out, err = repaired()
    assert (code, out) == (4, "")
    assert err.startswith(f"online-svm: feed '{feed}' cannot be repaired: ")
    assert payloads(store)[0][:COUNT] == whole[1][0][0]
