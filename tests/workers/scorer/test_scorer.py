"""Scorers: each request is answered once, by the newest state, as the worker itself would."""

import json
import random
import re
import time
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_feed import CONFIG, examples, own_answer, predictor_at

from online_svm.predictor.frozen_predictor import FrozenPredictor
from workers.admin.reset import reset
from workers.broker import request_queue
from workers.broker.request_queue import Request
from workers.config.settings import Limits
from workers.errors import Unavailable
from workers.feed.position import Position
from workers.message.schema import PredictionMessage, RejectedMessage, UnavailableMessage
from workers.message.trace import FIELD, traced
from workers.scorer import newest_state
from workers.scorer.scorer import answered
from workers.session.answer import process

ASKED = [[0.25, -1.0, 3.0], [-2.0, 0.5, 0.125], [1.5, 1.5, -0.5]]


def test_an_answer_is_the_workers_own_at_its_n_byte_for_byte(desk):
    desk.learn(35)
    ids = desk.asker.send([json.dumps(x).encode() for x in ASKED])
    assert desk.scorer(keep=7).turn() == 3
    found = desk.asker.receive(ids, timeout=30.0)
    state = desk.store.publication()
    for id, x in zip(ids, ASKED, strict=True):
        assert found[id].payload == own_answer(desk.rows, state.n, x, id)
        assert (found[id].state, found[id].behind) == (state.name, 95 - state.n)
        assert 0 <= found[id].age < 60_000
        PredictionMessage.model_validate_json(found[id].payload)
        assert 0 < int(desk.store.call("TTL", desk.store.keys.reply(id))) <= 7
    assert desk.waiting() == (0, 0)


def test_an_answer_has_the_form_of_the_feeds_answers():
    rows = examples(60)
    predictor = predictor_at(rows, 60)
    state = FrozenPredictor.restore(predictor.frozen().snapshot(), CONFIG)
    asked = [Request((b"5-0", [b"id", b"a", b"x", b"[0.25,-1.0,3.0]"]))]
    for form in ("full", "compact"):
        limits = Limits(payload=form)
        (reply,) = answered(state, 60, asked, limits)
        entry = (b"5-0", {b"id": b"a", b"x": b"[0.25,-1.0,3.0]"})
        own = process(predictor_at(rows, 60), limits, Position(b"4-0", 60, 60, bytes(32)), [entry])
        assert [reply.payload] == own.out


def test_an_answer_repeats_the_trace_of_its_request():
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for x in (b"[0.25,-1.0,3.0]", b"[1]"):
        asked = [Request((b"5-0", [b"x", x, *more])) for more in ([], [FIELD, trace.encode()])]
        plain, with_trace = answered(state_at_60(), 60, asked, Limits())
        assert with_trace.payload == traced(plain.payload, trace)


def test_the_next_answer_is_of_the_state_that_was_published_meanwhile(desk):
    scorer, seen = desk.scorer(), []
    for _ in range(3):
        desk.learn(20)
        (answer,) = desk.ask(scorer, ASKED[:1])
        n = json.loads(answer.payload)["n"]
        assert answer.payload == own_answer(
            desk.rows, n, ASKED[0], json.loads(answer.payload)["id"]
        )
        seen.append(n)
    assert seen == sorted(set(seen)), "no newer state was taken"


def test_what_was_read_ahead_is_lost_neither_by_a_death_nor_by_a_stop(desk):
    for end in ("dies", "stops"):
        ids = desk.asker.send([json.dumps(x).encode() for x in ASKED * 4])
        one, heir = desk.scorer(end, batch=4), desk.scorer("heir", claim_after=0.05)
        one.turn()  # four are answered, and four more are read meanwhile
        _, pending = desk.waiting()
        assert pending in (4, 8)
        if end == "stops":
            one.finish()
            assert one.counts.written == 8
            assert one._queue.leave(), "requests are left to it"
        desk.serve(heir)
        heir.finish()
        assert len(desk.asker.receive(ids, timeout=30.0)) == 12
        assert heir.counts.taken_over == (4 if end == "dies" else 0)


def test_answers_that_come_too_late_are_computed_again(desk):
    ids = desk.asker.send([json.dumps(x).encode() for x in ASKED * 4])
    scorer = desk.scorer(batch=4)
    send, count = scorer._queue.send_answers, []

    def late(answers, since, most, keep):
        count.append(len(answers))
        return send(answers, since - (5000 if len(count) in (1, 3) else 0), most, keep)

    scorer._queue.send_answers = late
    while desk.waiting() != (0, 0):
        scorer.turn()
    scorer.finish()
    assert len(desk.asker.receive(ids, timeout=30.0)) == scorer.counts.written == 12
    assert count == [4, 4, 4, 4, 4]


def test_all_of_a_full_queue_is_answered_in_one_round_trip_a_batch(desk):
    """A batch costs Redis one read, three looks and one script, however many requests it has."""
    scorer = desk.scorer(batch=16)
    desk.asker.send([b"[1,2,3]"] * 64)
    scorer.refresh()
    desk.store.call("CONFIG", "RESETSTAT")
    while desk.store.length(desk.store.keys.requests):
        scorer.turn()
    text = desk.store.call("INFO", "commandstats").decode()
    calls = dict(re.findall(r"cmdstat_(\w+):calls=(\d+)", text))
    for name in ("evalsha", "xpending", "xack", "xdel"):
        assert int(calls[name]) <= 5, (name, calls)
    assert int(calls["rpush"]) == int(calls["expire"]) == 64
    assert int(calls["xreadgroup"]) <= 6


def test_a_scorer_that_was_only_slow_writes_no_second_answer(desk):
    (id,) = desk.asker.send([b"[1,2,3]"])
    slow, heir = desk.scorer("slow"), desk.scorer("heir", claim_after=0.001)
    held = slow._queue.read().requests
    assert desk.scorer("patient", claim_after=600.0).turn() == 0, "it is not overdue yet"
    time.sleep(0.01)
    assert (heir.turn(), heir.counts.taken_over) == (1, 1)
    first = desk.reply(id)
    desk.learn(40)  # another state would answer otherwise now
    assert slow._answer(held) == 0
    assert slow.counts.elsewhere == 1
    assert desk.reply(id) == first


def test_a_paused_scorer_answers_by_the_state_at_its_write(desk):
    (id,) = desk.asker.send([b"[1,2,3]"])
    scorer = desk.scorer(max_stale=50)
    held = scorer._queue.read().requests
    now = scorer._queue.status

    def long_ago():
        scorer._queue.status = now
        found = now()
        desk.learn(100)
        return type(found)(found.n, found.config_hash, found.newest, found.now - 5000)

    scorer._queue.status = long_ago
    assert scorer._answer(held) == 1
    assert desk.reply(id)["n"] > 100


def test_a_redis_that_is_always_slow_still_gets_the_answers(desk):
    (id,) = desk.asker.send([b"[1,2,3]"])
    scorer = desk.scorer()
    now, looks = scorer._queue.status, []

    def slowly():
        found = now()
        looks.append(found)
        return type(found)(found.n, found.config_hash, found.newest, found.now - 3000)

    scorer._queue.status = slowly
    assert scorer._answer(scorer._queue.read().requests) == 1
    assert len(looks) == 3
    assert desk.reply(id)["status"] == "ok"


def test_a_request_that_is_sent_twice_under_one_id_has_one_answer(desk):
    desk.request("id", "twice", "x", "[1,2,3]")
    desk.request("id", "twice", "x", "[1,2,3]")
    scorer = desk.scorer()
    assert scorer.turn() == 1
    first = desk.reply("twice")
    desk.learn(40)
    desk.request("id", "twice", "x", "[1,2,3]")
    assert scorer.turn() == 0
    assert desk.reply("twice") == first
    assert desk.waiting() == (0, 0)


BAD = {
    "no features": (("id", "{}"), "no_features"),
    "not JSON": (("id", "{}", "x", "[1,2"), "unparsable"),
    "NaN": (("id", "{}", "x", "[1,2,NaN]"), "not_finite"),
    "too few": (("id", "{}", "x", "[1]"), "dimension"),
    "a name": (("id", "{}", "x", '{"a":1}'), "unparsable"),
    "a label": (("id", "{}", "x", "[1,2,3]", "y", "a"), "unknown_field"),
    "a late label": (("for", "a", "y", "a", "id", "{}"), "unknown_field"),
    "both": (("id", "{}", "x", "[1,2,3]", "xb", b"\0" * 24), "duplicate_field"),
    "large": (("id", "{}", "x", b" " * (1 << 20) + b"[1,2,3]"), "too_large"),
    "a long id": (("id", "i" * 300, "x", "[1,2,3]"), "too_large"),
    "an id that is no text": (("id", b"\xff", "x", "[1,2,3]"), "unparsable"),
}


def test_bad_requests_are_rejected_with_the_reason_and_good_ones_beside_them_answered(desk):
    sent = {}
    for kind, (fields, _) in BAD.items():
        given = [kind if value == "{}" else value for value in fields]
        sent[kind] = desk.request(*given)
    (good,) = desk.asker.send([b"[1,2,3]"])
    scorer = desk.scorer()
    while scorer.turn():
        pass
    for kind, (fields, code) in BAD.items():
        # Without an id that can be read, or within a request too large to be read, the entry's ID.
        reply = desk.reply(kind if "{}" in fields and kind != "large" else sent[kind])
        rejected = RejectedMessage.model_validate(reply)
        assert rejected.code == code, (kind, rejected)
    assert desk.reply(good)["status"] == "ok"
    assert desk.waiting() == (0, 0)


VALUES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"[1,2,3]", b"[1,2,1e999]", b"\0" * 24, b"{}", b"[[[", b"null", b"\xff", b"a"]
    ),
)
NAMES = st.one_of(st.sampled_from([b"x", b"xb", b"id", b"y", b"for", b"time", b"s", b"a"]), VALUES)


@given(st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=5), min_size=1, max_size=30))
def test_whatever_is_asked_each_request_has_one_answer_and_good_ones_theirs(hostile):
    flat = [[part for pair in fields for part in pair] for fields in hostile]
    good = [b"id", b"good", b"x", b"[1,2,3]"]
    asked = [Request((b"%d-0" % i, fields)) for i, fields in enumerate([*flat, good])]
    replies = answered(state_at_60(), 60, asked, Limits())
    assert [reply.entry for reply in replies] == [request.entry[0] for request in asked]
    for reply in replies:
        found = json.loads(reply.payload)
        (RejectedMessage if found["status"] == "rejected" else PredictionMessage)(**found)
    assert replies[-1].payload == own_good()


@cache
def own_good():
    return own_answer(examples(60), 60, [1, 2, 3], "good")


@cache
def state_at_60():
    predictor = predictor_at(examples(60), 60)
    return FrozenPredictor.restore(predictor.frozen().snapshot(), CONFIG)


def test_too_much_at_once_is_read_one_by_one(desk):
    for number in range(3):
        desk.request("id", f"large {number}", "x", b" " * (12 << 20))
    (good,) = desk.asker.send([b"[1,2,3]"])
    scorer, done = desk.scorer(claim_after=0.05), 0
    for _ in range(10):
        done += scorer.turn()
    assert done == 4
    assert desk.reply(good)["status"] == "ok"
    assert desk.waiting() == (0, 0)


def test_before_the_first_state_a_request_is_told_so(empty_desk):
    code, answer = empty_desk.refusal(empty_desk.scorer())
    assert (code, answer.state, answer.behind) == ("no_state", None, None)


def test_a_state_that_is_too_many_examples_old_answers_no_more(desk):
    desk.running._publisher._every = 0  # it goes on, and publishes no more
    n = desk.store.publication().n
    scorer = desk.scorer(max_stale=30)
    assert desk.ask(scorer, ASKED[:1])[0].behind == 60 - n
    desk.learn(40)
    code, answer = desk.refusal(scorer)
    assert (code, answer.behind) == ("stale", 100 - n)
    assert desk.ask(desk.scorer("patient", max_stale=None), ASKED[:1])[0].behind == 100 - n


def test_a_damaged_state_is_refused_and_the_one_before_goes_on(desk, capsys, monkeypatch):
    scorer = desk.scorer()
    before = desk.ask(scorer, ASKED[:1])[0].state
    desk.learn(40)
    found = desk.store.publication()
    (key,) = found.keys(desk.store.keys)
    held = desk.store.call("GET", key)
    desk.store.call("SET", key, held[:-1] + bytes([held[-1] ^ 1]))
    answer = desk.ask(scorer, ASKED[:1])[0]
    assert (answer.state, answer.behind) == (before, 100 - int(before.split("-")[0]))
    assert capsys.readouterr().err.count("cannot be used") == 1
    desk.store.call("SET", key, held)
    monkeypatch.setattr(newest_state, "RETRY_SECONDS", 0.0)
    assert desk.ask(scorer, ASKED[:1])[0].state == found.name
    assert capsys.readouterr().err.count("can be used again") == 1


def test_a_feed_that_is_begun_anew_is_not_answered_by_what_it_was(desk):
    scorer = desk.scorer()
    assert desk.ask(scorer, ASKED[:1])[0].state
    reset(desk.store, with_input=True)
    scorer._queue.ensure_group()
    assert desk.refusal(scorer)[0] == "no_state"


def test_a_request_that_ends_scorers_is_given_up_and_the_others_are_answered(desk):
    poison, *good = desk.asker.send([b"[6,6,6]", b"[1,2,3]", b"[3,2,1]"])
    deaths = 0
    for life in range(12):
        scorer = desk.scorer(f"life {life}", claim_after=0.001)
        send = scorer._send

        def dying(requests, *rest, send=send):
            if any(b"[6,6,6]" in r.entry[1] and r.deliveries < 5 for r in requests):
                raise MemoryError
            return send(requests, *rest)

        scorer._send = dying
        time.sleep(0.005)
        try:
            while scorer.turn():
                pass
        except MemoryError:
            deaths += 1
    assert deaths == 4
    assert desk.reply(poison)["code"] == "failed"
    assert all(desk.reply(id)["status"] == "ok" for id in good)


def test_a_scorer_that_stops_leaves_the_group_and_one_with_requests_stays_in_it(desk):
    one, two = desk.scorer("one"), desk.scorer("two")
    desk.asker.send([b"[1,2,3]"])
    assert len(two._queue.read().requests) == 1
    assert one._queue.read().requests == []
    assert [one._queue.leave(), two._queue.leave()] == [True, False]
    left = desk.store.call("XINFO", "CONSUMERS", desk.store.keys.requests, "scorers")
    assert [row[1] for row in left] == [b"two"]


def test_a_scorer_that_begins_takes_those_out_that_have_done_nothing_for_an_hour(desk, monkeypatch):
    idle, busy = desk.scorer("idle"), desk.scorer("busy")
    idle._queue.read()
    desk.asker.send([b"[1,2,3]"])
    busy._queue.read()
    time.sleep(0.01)
    monkeypatch.setattr(request_queue, "FORGET_SCORER_AFTER_MS", 1)
    desk.scorer("new")
    left = desk.store.call("XINFO", "CONSUMERS", desk.store.keys.requests, "scorers")
    assert [row[1] for row in left] == [b"busy"]


def test_requests_outlive_their_consumer_group(desk):
    """It is deleted after they were read, and then while nobody reads."""
    ids = desk.asker.send([json.dumps(x).encode() for x in ASKED])
    scorer, key = desk.scorer(), desk.store.keys.requests
    held = scorer._queue.read().requests
    desk.store.call("XGROUP", "DESTROY", key, "scorers")
    assert scorer._answer(held) == 0
    assert scorer.turn() == 3
    assert len(desk.asker.receive(ids, timeout=30.0)) == 3
    desk.store.call("XGROUP", "DESTROY", key, "scorers")
    assert scorer._queue.leave() is False
    assert scorer.turn() == 0
    assert desk.ask(scorer, ASKED[:1])[0].state


def test_a_stream_of_requests_that_was_deleted_is_begun_anew(desk):
    scorer = desk.scorer(claim_after=0.001)
    scorer.turn()
    desk.store.call("DEL", desk.store.keys.requests)
    time.sleep(0.01)
    assert scorer.turn() == 0
    assert desk.ask(scorer, ASKED[:1])[0].state


def stood(desk, scorer, **changed):
    """Let the scorer find the feed as it stands, with some figures changed."""
    now = scorer._queue.status
    found = now()
    scorer._state(
        replace(found, **{name: change(getattr(found, name)) for name, change in changed.items()})
    )
    return scorer.counts.stale


def test_a_state_is_too_old_one_example_and_one_millisecond_beyond_its_bounds(desk):
    state = desk.store.publication()
    scorer = desk.scorer(max_stale=100, max_age=2.0)
    at = {"now": lambda _: state.at + 2000, "n": lambda _: state.n + 100}
    assert stood(desk, scorer, **at) is None
    assert "101 examples" in stood(desk, scorer, **at | {"n": lambda _: state.n + 101})
    assert "2.0 s old" in stood(desk, scorer, **at | {"now": lambda _: state.at + 2001})


def test_a_clock_of_redis_that_goes_back_makes_no_negative_age(desk):
    scorer = desk.scorer(max_age=5.0)
    found = desk.store.publication()
    assert stood(desk, scorer, now=lambda _: found.at - 10_000) is None
    assert scorer.counts.age == 0


def test_a_redis_without_memory_loses_no_request(desk):
    scorer, heir = desk.scorer("one"), desk.scorer("heir", claim_after=0.001)
    desk.request("id", "again", "x", "[1,2,3]")
    scorer.turn()
    # The first of these was answered before; so it would be acknowledged without a new answer.
    desk.request("id", "again", "x", "[1,2,3]")
    ids = desk.asker.send([b"[1,2,3]"] * 3)
    desk.store.call("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Unavailable, match="refuses for now"):
            scorer.turn()
        assert desk.waiting() == (4, 4)
        assert not any(desk.store.call("EXISTS", desk.store.keys.reply(id)) for id in ids)
    finally:
        desk.store.call("CONFIG", "SET", "maxmemory", "0")
    time.sleep(0.01)
    assert heir.turn() == 3
    assert len(desk.asker.receive(ids, timeout=30.0)) == 3
    assert desk.waiting() == (0, 0)


def test_a_state_that_is_replaced_during_its_read_is_passed_over(desk):
    scorer = desk.scorer()
    before = desk.ask(scorer, ASKED[:1])[0].state
    desk.learn(40)
    reader = scorer._newest._reader
    read = reader.published

    def replaced(found):
        reader.published = read
        (key,) = found.keys(desk.store.keys)
        desk.learn(40)
        desk.store.call("DEL", key)
        return read(found)

    reader.published = replaced
    assert desk.ask(scorer, ASKED[:1])[0].state == before
    newest = desk.store.publication().name
    assert desk.ask(scorer, ASKED[:1])[0].state == newest


def test_an_older_state_is_taken_if_redis_has_no_other(desk):
    """As after a fail-over to a replica that lacks the last writes."""
    scorer, keys = desk.scorer(), desk.store.keys
    older = desk.store.publication()
    fields = desk.store.call("HGETALL", keys.published)
    parts = {key: desk.store.call("GET", key) for key in older.keys(keys)}
    desk.learn(40)
    assert desk.ask(scorer, ASKED[:1])[0].state != older.name
    for key, part in parts.items():
        desk.store.call("SET", key, part)
    desk.store.call("HSET", keys.published, *fields)
    (answer,) = desk.ask(scorer, ASKED[:1])
    assert (answer.state, answer.behind) == (older.name, 100 - older.n)


@pytest.mark.parametrize("made", [b"no state of ours", b"", b"PK\x03\x04" * 50])
def test_bytes_of_other_software_under_a_right_checksum_are_refused(desk, made, capsys):
    scorer, keys = desk.scorer(), desk.store.keys
    before = desk.ask(scorer, ASKED[:1])[0].state
    name = sha256(made).hexdigest()
    (key,) = keys.published_parts(60, name, 1)
    desk.store.call("SET", key, made)
    changed = ("sha256", name, "size", len(made), "parts", 1, "n", 60, "seq", 60)
    desk.store.call("HSET", keys.published, *changed)
    assert desk.ask(scorer, ASKED[:1])[0].state == before
    assert "cannot be used" in capsys.readouterr().err


def test_an_id_of_control_characters_is_answered_under_it_and_escaped_in_the_answer(desk):
    id = "a\x1b[31m\r\n\x07{b}:*?"
    desk.request("id", id, "x", "[1,2,3]")
    assert desk.scorer().turn() == 1
    (text,) = desk.store.call("LRANGE", desk.store.keys.reply(id), 0, -1)
    assert json.loads(text)["answer"]["id"] == id
    assert not [byte for byte in text if byte < 32]


def test_large_requests_that_were_read_together_take_bounded_memory(desk, monkeypatch):
    monkeypatch.setattr(request_queue, "BATCH_BYTES", 1 << 20)
    sent = [desk.request("x", b" " * (1 << 19) + b"[1,2,3]") for _ in range(12)]
    dead, heir = desk.scorer("dead"), desk.scorer("heir", claim_after=0.001)
    claim, sizes = heir._queue.claim, []

    def noted(idle_ms):
        found = claim(idle_ms)
        sizes.append(sum(len(part) for request in found for part in request.entry[1]))
        return found

    monkeypatch.setattr(heir._queue, "claim", noted)
    dead._queue.read()
    time.sleep(0.01)
    desk.serve(heir)
    assert max(sizes) <= (1 << 20) + (1 << 19) + 100
    assert all(desk.reply(id)["status"] == "ok" for id in sent)


def test_a_request_that_waited_too_long_is_answered_as_late(desk):
    now = int(desk.store.call("TIME")[0]) * 1000
    old = ("id", "old", "x", "[1,2,3]")
    desk.store.call("XADD", desk.store.keys.requests, f"{now - 3_600_000}-0", *old)
    (good,) = desk.asker.send([b"[1,2,3]"])
    scorer = desk.scorer(max_wait=1800.0)
    assert scorer.turn() == 2
    assert UnavailableMessage.model_validate(desk.reply("old")).code == "late"
    assert (desk.reply(good)["status"], scorer.counts.unavailable) == ("ok", 1)
    desk.store.call("XADD", desk.store.keys.requests, "99999999999999-0", "id", "z", "x", "[1,2,3]")
    assert scorer.turn() == 1
    assert desk.reply("z")["status"] == "ok", "an ID of the future has not waited"


def test_the_largest_batch_is_written_by_one_script(desk):
    scorer = desk.scorer(batch=4096)
    ids = desk.asker.send([b"[1,2,3]"] * 9000)
    while desk.waiting() != (0, 0):
        scorer.turn()
    scorer.finish()
    assert scorer.counts.written == 9000
    assert len(set(ids)) == 9000
    assert desk.store.call("EXISTS", *map(desk.store.keys.reply, ids)) == 9000


@pytest.mark.parametrize("seed", range(3))
def test_a_request_has_one_answer_whatever_scorers_do(desk, seed):
    """Scorers take steps by chance; two of them even have one name."""
    dice, sent, first = random.Random(seed), [], {}

    def scorer():
        name, batch = dice.choice("aabc"), dice.choice((2, 5))
        return desk.scorer(name, batch, claim_after=0.001, keep=3600)

    at_work = [scorer() for _ in range(3)]

    def step():
        kind = dice.choice(("send", "turn", "turn", "turn", "finish", "die", "learn", "lose"))
        who = dice.randrange(3)
        if kind == "send":
            sent.extend(desk.asker.send([b"[1,2,3]", b"[1]"] * dice.randrange(1, 7)))
        elif kind == "learn":
            desk.learn(10)
        elif kind == "lose" and dice.random() < 0.3:
            desk.store.call("XGROUP", "DESTROY", desk.store.keys.requests, "scorers")
        elif kind == "die":
            at_work[who]._queue.read()  # what it had read ahead, and this, is never answered by it
            at_work[who] = scorer()
        elif kind in ("turn", "finish"):
            getattr(at_work[who], kind)()
        for id in sent:
            found = desk.store.call("LRANGE", desk.store.keys.reply(id), 0, -1)
            assert len(found) <= 1
            if found:
                assert first.setdefault(id, found) == found, "an answer has changed"

    for _ in range(60):
        step()
    at_work[0]._queue.ensure_group()
    deadline = time.monotonic() + 60
    while desk.waiting() != (0, 0):
        assert time.monotonic() < deadline, desk.waiting()
        for one in at_work:
            one.turn()
    for one in at_work:
        one.finish()
    assert all(desk.store.call("LLEN", desk.store.keys.reply(id)) == 1 for id in sent)
