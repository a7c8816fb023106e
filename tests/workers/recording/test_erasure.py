"""A person's rows are gone from everything that is stored, and the feed goes on."""

import json
import os
import struct
from pathlib import Path

import pytest
from recorded_feed import (
    AT,
    CHANGES,
    KEPT,
    PERSON,
    TRACES,
    VALUE,
    answering,
    entry,
    go_on,
    push,
    push_with_person,
    stored,
    stream,
    traces_in,
)
from structlog.testing import capture_logs
from world import wait_until

from online_svm.stream.cells import cell
from workers.admin.erased_streams import erased_of, remove_entries
from workers.admin.verify import verify, verify_history
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import parse_id
from workers.reading.registry import FeedInUse
from workers.recording.erasure import erase


@pytest.fixture
def feed_of_person(embedded_url, feed):
    """A feed that has answered a hundred entries, one of them the person's; no worker holds it."""
    with answering(embedded_url, feed, **CHANGES) as (store, answer, _):
        push_with_person(store)
        answer()
        assert len(stream(store, "out")) == 100
        assert store.state().previous is not None
        yield store


def test_nothing_that_is_stored_has_a_trace(own_redis, feed, run_command):
    with answering(own_redis.url, feed, **KEPT) as (store, answer, _):
        store.call("CONFIG", "SET", "rdbcompression", "no")
        push_with_person(store)
        answer()
        place = Path(store.call("CONFIG", "GET", "dir")[1].decode())
        store.call("SAVE")
        assert traces_in(stored(store)) == [*TRACES]
        assert traces_in(saved(place)) == [*TRACES]
        run_command("erase", feed, "--id", PERSON, "--yes", "--redis", own_redis.url)
        assert traces_in(stored(store)) == []
        assert AT.decode().encode() in stored(store)  # the list of what was erased has its ID
        store.call("SAVE")
        rewritten = b"aof_rewrite_in_progress:0"
        wait_until(lambda: rewritten in store.call("INFO", "persistence"), 30.0)
        assert traces_in(saved(place)) == []


def test_no_category_is_left_that_only_the_erased_row_had(own_redis, feed, run_command):
    own = {"country": "Atlantis", "vip": True, "only here": "Ann of Atlantis", "born": "1912-04-15"}
    traces = [
        *(b"Atlantis", b"Ann of", b"1912-04-15"),
        *(struct.pack("<d", cell(own[name])) for name in ("country", "only here", "born")),
    ]
    with answering(own_redis.url, feed, **KEPT) as (store, answer, _):
        store.call("CONFIG", "SET", "rdbcompression", "no")
        for i in range(100):
            x = {"country": ("DE", "FR")[i % 2], "amount": i % 7, "vip": i % 3 > 0}
            at, person = f"{i + 1}-0", PERSON if i == 70 else f"id-{i}"
            x |= own if i == 70 else {}
            entry = ("x", json.dumps(x), "y", "ab"[i % 3 == 0], "id", person)
            store.call("XADD", store.keys.input, at, *entry)
        answer()
        before = stored(store)
        assert [trace for trace in traces if trace not in before] == []
        run_command("erase", feed, "--id", PERSON, "--yes", "--redis", own_redis.url)
        after = stored(store)
        assert [trace for trace in traces if trace in after] == []


def saved(place):
    """Return the bytes of all files that Redis saved."""
    return b"\n".join(p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file())


def test_it_goes_on_as_a_feed_that_never_had_them(feed_of_person):
    store = feed_of_person
    erase(store, PERSON)
    assert verify(store).is_identical
    go_on(store, 100, 140, **CHANGES)
    found = verify(store)
    assert (found.is_identical, found.answers, found.erased) == (True, 40, 1)
    with answering(store.url, f"{store.keys.feed}-clean", **CHANGES) as (clean, answer, _):
        for at, fields in stream(store, "input"):
            clean.call("XADD", clean.keys.input, at, *fields)
        answer()
        expected = [json.loads(payload) for _, (_, payload) in stream(clean, "out")[-40:]]
    found = [json.loads(payload) for _, (_, payload) in stream(store, "out")[-40:]]
    assert [m | {"seq": 0} for m in found] == [m | {"seq": 0} for m in expected]
    assert [m["seq"] - 1 for m in found] == [m["seq"] for m in expected]


def test_the_input_stays_counted(feed_of_person):
    erase(feed_of_person, PERSON)
    with capture_logs() as logs:
        go_on(feed_of_person, 100, 140, **CHANGES)
    assert [log for log in logs if "counted this input" in log["event"]] == []
    assert verify(feed_of_person).answers == 40


@pytest.mark.parametrize("is_all", [False, True])
def test_what_was_deleted_unread_before_is_missed_after(feed_of_person, is_all):
    store = feed_of_person
    push(store, 100, 140)
    if is_all:  # the stream was trimmed of all that was answered, and of what was not
        store.call("XTRIM", store.keys.input, "MINID", entry(110)[0])
    else:
        store.call("XDEL", store.keys.input, entry(110)[0])
    erase(store, PERSON)
    with pytest.raises(InputLost, match="deleted"):
        go_on(store, 140, 150, **CHANGES)


def test_an_input_that_is_deleted_after_is_missed(feed_of_person):
    store = feed_of_person
    erase(store, PERSON)
    store.call("DEL", store.keys.input)
    push(store, 140, 150)
    with pytest.raises(InputLost):
        go_on(store, 150, 160, **CHANGES)


def test_fork_and_backtest_name_the_entries_that_were_erased(embedded_url, feed, run_command):
    with answering(embedded_url, feed, **KEPT) as (store, answer, _):
        push_with_person(store)
        answer()
    erase(store, PERSON)
    store.call("XTRIM", store.keys.input, "MAXLEN", "=", 90)
    gone = f"lacks 1 erased entry ({AT.decode()})"
    _, _, told = run_command("fork", feed, "--redis", embedded_url)
    assert (
        "90 entries copied; the new feed begins with these, as 9 older ones were answered" in told
    )
    assert f"; the new feed {gone}; to answer" in told
    _, _, told = run_command("backtest", feed, "--redis", embedded_url)
    assert f"feed {feed} no longer has its 9 oldest entries: the history begins after" in told
    assert f"feed {feed} {gone}: the history is without them" in told


def test_refits_that_lag_behind_are_learned_again_too(embedded_url, feed, lagging):
    changes = KEPT
    with answering(embedded_url, feed, **changes) as (store, answer, _):
        push_with_person(store, 0, 85)  # a refit is under way at the end
        answer()
    erase(store, PERSON)
    go_on(store, 85, 140, **changes)
    assert (verify(store).is_identical, verify(store).answers) == (True, 55)


def test_where_the_chain_is_not_kept_the_list_says_so(feed_of_person):
    store = feed_of_person
    go_on(store, 100, 140, **CHANGES)
    store.call("XTRIM", store.keys.out, "MAXLEN", "=", 60)
    assert parse_id(store.state().previous.cursor) > parse_id(AT)
    found = erase(store, PERSON)
    assert (found.entries, found.unlinked) == (1, 1)
    assert erased_of(store).entries[AT].seq == 50
    go_on(store, 140, 150, **CHANGES)
    assert verify(store).is_identical


def test_labels_that_came_late_go_too(redis_url, feed):
    with answering(redis_url, feed, **KEPT, horizon=5) as (store, answer, _):
        push(store, 0, 60)
        last = int(stream(store, "input")[-1][0].split(b"-")[0])
        for i, fields in enumerate(
            (("x", f"[{VALUE}, 1]", "id", PERSON), ("for", PERSON, "y", "b"))
        ):
            store.call("XADD", store.keys.input, f"{last + 1 + i}-0", *fields)
        answer()
    assert erase(store, PERSON).entries == 2
    assert (
        traces_in(b"".join(store.call("DUMP", key) for key in (store.keys.input, store.keys.out)))
        == []
    )
    go_on(store, 70, 90, **KEPT, horizon=5)
    assert verify(store).is_identical


def push_more(store, *entries):
    """Push entries of these fields, and let a worker answer them."""
    with answering(store.url, store.keys.feed, **CHANGES) as (_, answer, _session):
        for fields in entries:
            store.call("XADD", store.keys.input, "*", *fields)
        answer()


def test_dead_letters_go_too_and_only_those_of_the_whole_id(feed_of_person):
    """An id may hold line breaks, as the lines of a dead letter are separated."""
    store = feed_of_person
    names = (PERSON + "7", PERSON, "one\nid=two", "two\nid=one", "two")
    push_more(store, *(("x", '["seven"]', "id", name, "y", "a") for name in names))

    def kept():
        heads = [dict(zip(f[::2], f[1::2], strict=True))[b"head"] for _, f in stream(store, "dlq")]
        return [head.split(b"id=", 1)[1].removesuffix(b"\ny=a\n") for head in heads[-len(names) :]]

    assert kept() == [name.encode() for name in names]
    assert erase(store, PERSON).entries == 2
    assert [fields[3] for _, fields in stream(store, "input")][-4] == (PERSON + "7").encode()
    for one in (store.keys.input, store.keys.out):
        store.call("XTRIM", one, "MAXLEN", "=", 0)
    assert erase(store, "one\nid=two").entries == 1
    assert kept()[-3:] == [(PERSON + "7").encode(), b"two\nid=one", b"two"]


def test_consumer_groups_and_what_they_hold_stay(feed_of_person):
    store = feed_of_person
    store.call("XGROUP", "CREATE", store.keys.out, "sink", "0")
    read = ("XREADGROUP", "GROUP", "sink", "one", "COUNT", 55, "STREAMS", store.keys.out, ">")
    held = [at for at, _ in store.call(*read)[0][1]]
    store.call("XACK", store.keys.out, "sink", *held[:45])
    erase(store, PERSON)
    pending = store.call("XPENDING", store.keys.out, "sink", "-", "+", 100)
    left = [one["message_id"] if isinstance(one, dict) else one[0] for one in pending]
    assert left == [at for at in held[45:] if at != AT]
    following = store.call(*read)[0][1][0][0]
    assert following == entry(55)[0].encode()


def test_what_is_pushed_meanwhile_is_kept(store):
    for i in range(10):
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", "[1]")
    arrivals = iter(range(11, 14))

    def gone(found):
        if (new := next(arrivals, None)) is not None:
            store.call("XADD", store.keys.input, f"{new}-0", "x", "[1]")
        return found[0] in (b"3-0", b"12-0")

    assert remove_entries(store, store.keys.input, gone) == 2
    left = [int(at.split(b"-")[0]) for at, _ in stream(store, "input")]
    assert left == [i for i in range(1, 14) if i not in (3, 12)]
    assert store.call("EXISTS", store.keys.copy_of(store.keys.input)) == 0
    assert store.call("TTL", store.keys.input) == -1
    remove_entries(store, store.keys.input, lambda _: True)  # what is empty counts on
    assert (stream(store, "input"), store.call("TYPE", store.keys.input)) == ([], b"stream")
    assert "13-0" in str(store.call("XINFO", "STREAM", store.keys.input))


def test_where_nothing_can_be_erased_it_is_told_and_nothing_changes(feed_of_person):
    store = feed_of_person
    with (
        holding(store.url, store.keys.feed, "other", 5.0),
        pytest.raises(FeedInUse, match=r"is held by 'other': stop that worker first$"),
    ):
        erase(store, PERSON)
    with pytest.raises(BadConfiguration, match=r"keeps nothing of this id; name its recording"):
        erase(store, "nobody")
    store.call("XADD", store.keys.input, "*", "x", "[1,2]", "id", PERSON)  # waits
    with pytest.raises(BadConfiguration, match="has not answered 1 entries of this id: let a work"):
        erase(store, PERSON)
    assert len(stream(store, "input")) == 101
    assert store.call("EXISTS", store.keys.erased) == 0


def test_an_id_that_is_no_text_is_erased_as_a_shell_gives_it(feed_of_person):
    push_more(feed_of_person, ("x", f'["{VALUE}"]', "id", b"a\xff", "y", "a"))
    assert erase(feed_of_person, os.fsdecode(b"a\xff")).entries == 1
    keys = feed_of_person.call("KEYS", f"osvm:{{{feed_of_person.keys.feed}}}:*")
    kept = b"".join(feed_of_person.call("DUMP", key) for key in keys)
    assert f'["{VALUE}"]'.encode() not in kept


def test_an_id_that_occurs_often_is_counted_in_one_pass(feed_of_person):
    """Their answers are gone: the number of entries before each is counted in the input."""
    store = feed_of_person
    names = [f"other-{i}" if i % 3 else "often" for i in range(60)]
    push_more(store, *(("x", "[1,2]", "id", name, "y", "a") for name in names))
    seqs = {at: json.loads(f[1])["seq"] for at, f in stream(store, "out")}
    often = [at for at, f in stream(store, "input") if f[3] == b"often"]
    erase(store, "other-31")
    store.call("XTRIM", store.keys.out, "MAXLEN", "=", 5)
    assert erase(store, "often").entries == len(often) == 20
    found = erased_of(store).entries
    assert {at: found[at].seq for at in often} == {at: seqs[at] for at in often}
    assert verify(store).is_identical


def test_the_command_names_those_who_may_have_copies(feed_of_person, run_command):
    store = feed_of_person
    before = store.state().kept
    assert before.streams[0].total > 0
    store.call("XGROUP", "CREATE", store.keys.out, "sink", "0")
    code, _, said = run_command(
        "erase", store.keys.feed, "--id", PERSON, "--yes", "--redis", store.url
    )
    assert (code, "consumers of its answers may have copies: sink." in said) == (0, True)
    assert store.state().kept == before  # the bytes that were counted stay
    with pytest.raises(BadConfiguration, match="its history is no longer that of a source"):
        verify_history(store, [])


def test_it_counts_for_any_redis_as_before(redis_url, feed):
    """From Redis 7 on a stream counts its entries: a worker would take a lower count for a loss."""
    with answering(redis_url, feed, **CHANGES) as (store, answer, _):
        push_with_person(store)
        answer()

        def info():
            flat = store.call("XINFO", "STREAM", store.keys.input)
            found = dict(zip(flat[::2], flat[1::2], strict=True))
            names = (b"last-generated-id", b"entries-added", b"max-deleted-entry-id")
            return {name: found.get(name) for name in names}

        before = info()
        erase(store, PERSON)
        assert info() == before
        go_on(store, 100, 140, **CHANGES)
        store.call("XTRIM", store.keys.input, "MAXLEN", "=", 0)  # all is answered: nothing is lost
        go_on(store, 140, 160, **CHANGES)
        assert store.state().position.seq == 160


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_example_that_waits_for_its_label_waits_on_while_its_input_is_kept(
    redis_url, feed, is_kept
):
    changes = KEPT | {"horizon": 50}
    with answering(redis_url, feed, **changes) as (store, answer, _):
        push(store, 0, 30)
        last = int(stream(store, "input")[-1][0].split(b"-")[0])
        store.call("XADD", store.keys.input, f"{last + 1}-0", "x", "[1,2]", "id", "waits")
        push(store, 31, 36)
        answer()
    with Store(redis_url, feed) as store:
        if not is_kept:
            store.call("XTRIM", store.keys.input, "MINID", entry(31)[0])
        erase(store, "id-33")
    with answering(redis_url, feed, **changes) as (store, answer, _):
        last = int(stream(store, "input")[-1][0].split(b"-")[0])
        store.call("XADD", store.keys.input, f"{last + 1}-0", "for", "waits", "y", "b")
        answer()
        said = json.loads(stream(store, "out")[-1][1][1])
        assert verify(store).is_identical
    if is_kept:
        assert (said["status"], said["example"]) == ("label", "waits")
    else:
        assert (said["status"], said["code"]) == ("rejected", "unknown_id")
