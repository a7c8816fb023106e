"""Scores: rows answered with the newest published state, as the worker would, and not recorded."""

import json
import re
import shlex
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from published_feed import examples, own_answer, predictor_at, push, session, work
from served_gateway import serving
from structlog.testing import capture_logs
from system_tools import tool

from workers.admin.reset import reset
from workers.config.settings import Limits
from workers.feed.position import Position
from workers.gateway import gateway as gateway_module
from workers.gateway.published_states import PublishedStates
from workers.session.answer import process

pytestmark = pytest.mark.servers("embedded")

ROWS = [[0.25, -1.0, 3.0], [-2.0, 0.5, 0.125], [1.5, 1.5, -0.5]]


class Scored:
    """A feed that publishes, and a client of its gateway."""

    def __init__(self, store, client):
        self.store, self.client, self.rows = store, client, []
        self.running = session(store)

    def learn(self, count):
        more = examples(count, first=len(self.rows))
        push(self.store, more)
        self.rows += more
        work(self.running, len(self.rows))

    def keys(self):
        """Return the keys of the feed; the lease and replaced states end by themselves."""
        return set(self.store.call("KEYS", f"osvm:{{{self.store.keys.feed}}}:*"))

    def ask(self, body, query=""):
        return self.client.post(f"/feeds/{self.store.keys.feed}/scores{query}", body)


@pytest.fixture
def scored(store):
    with serving(store.url, store.keys.feed) as client:
        yield Scored(store, client)


def test_scores_are_the_workers_own_at_the_n_of_the_state_byte_for_byte(scored):
    scored.learn(75)
    before, entries = scored.keys(), scored.store.length(scored.store.keys.input)
    reply = scored.ask([{"x": x, "id": f"r{i}"} for i, x in enumerate(ROWS)])
    state = scored.store.publication()
    own = [own_answer(scored.rows, state.n, x, f"r{i}") for i, x in enumerate(ROWS)]
    head = f'{{"n":{state.n},"state":"{state.name}","behind":{75 - state.n},"answers":['.encode()
    assert (reply.status, reply.body) == (200, head + b",".join(own) + b"]}")
    assert scored.keys() <= before, "nothing is recorded"
    assert scored.store.length(scored.store.keys.input) == entries
    one = scored.ask({"x": ROWS[0], "id": "r0"})
    assert one.json["answers"] == reply.json["answers"][:1]
    entry = (b"5-0", {b"id": b"r0", b"x": json.dumps(ROWS[0]).encode()})
    start = Position(b"4-0", state.seq, state.n, bytes(32))
    worker = process(predictor_at(scored.rows, state.n), Limits(), start, [entry])
    assert worker.out == own[:1], "as the answer in out"


def test_the_newest_state_answers_and_the_body_says_its_n(scored):
    seen = []
    for _ in range(3):
        scored.learn(25)
        reply = scored.ask({"x": ROWS[0]})
        n = reply.json["n"]
        assert (n, reply.json["answers"][0]["n"]) == (scored.store.publication().n, n)
        seen.append(n)
    assert seen == sorted(set(seen))


def test_rows_that_cannot_be_used_are_rejected_and_the_others_answered(scored):
    scored.learn(40)
    reply = scored.ask(
        [{"x": [1, 2]}, {"x": ROWS[0]}, {"x": {"a": 1}}, {"x": ROWS[1], "id": "i" * 300}]
    )
    answers = reply.json["answers"]
    assert [one["status"] for one in answers] == ["rejected", "ok", "rejected", "rejected"]
    assert [one.get("code") for one in answers] == ["dimension", None, "unparsable", "too_large"]


@pytest.mark.parametrize(
    ("body", "query", "status", "field"),
    [
        ({"x": ROWS[0], "y": "a"}, "", 422, "'y'"),
        ([{"x": ROWS[0]}, {"x": ROWS[0], "p": 0.5}], "", 422, "[1].'p'"),
        ({"x": ROWS[0], "time": 1}, "", 422, "'time'"),
        ({"y": "a"}, "", 422, "'y'"),
        ([], "", 422, "the body"),
        ([{"x": ROWS[0]}] * 101, "", 413, "the body"),
        ({"x": ROWS[0]}, "?max_stale=-1", 422, "max_stale"),
        ({"x": ROWS[0]}, "?max_stale=1.5", 422, "max_stale"),
        ({"x": ROWS[0]}, "?max_stale=", 422, "max_stale"),
    ],
)
def test_a_request_of_another_form_is_refused(scored, body, query, status, field):
    scored.learn(20)
    reply = scored.ask(body, query)
    assert (reply.status, reply.json["field"]) == (status, field), reply.body


def test_a_state_that_is_too_old_is_refused(scored):
    scored.learn(60)
    scored.running._publisher._every = 0
    scored.learn(15)
    behind = 75 - scored.store.publication().n
    assert scored.ask({"x": ROWS[0]}, f"?max_stale={behind}").status == 200
    reply = scored.ask({"x": ROWS[0]}, f"?max_stale={behind - 1}")
    assert (reply.status, reply.json["code"], reply.json["behind"]) == (503, "state_stale", behind)
    assert reply.headers["Retry-After"] == "1"


def test_without_a_state_it_says_what_is_missing(scored):
    with serving(scored.store.url, "nowhere") as client:
        reply = client.post("/feeds/nowhere/scores", {"x": ROWS[0]})
    assert (reply.status, "no worker has begun it" in reply.json["error"]) == (503, True)
    scored.running._publisher._every = 0
    scored.learn(30)
    reply = scored.ask({"x": ROWS[0]})
    assert (reply.status, "--publish-every" in reply.json["error"]) == (503, True)


def test_a_damaged_state_leaves_the_one_before_and_a_reset_feed_has_none(scored):
    scored.learn(40)
    first = scored.ask({"x": ROWS[0]}).json
    scored.learn(20)
    for key in scored.store.publication().keys(scored.store.keys):
        scored.store.call("SET", key, "damaged")
    assert scored.ask({"x": ROWS[0]}).json["n"] == first["n"]
    reset(scored.store, with_input=True, force=True)
    assert scored.ask({"x": ROWS[0]}).status == 503


def test_other_requests_are_answered_while_scores_are_computed(scored, monkeypatch):
    scored.learn(40)
    goes_on, score = threading.Event(), PublishedStates.score

    def slow(*arguments):
        assert goes_on.wait(60)
        return score(*arguments)

    monkeypatch.setattr(PublishedStates, "score", slow)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(scored.ask, {"x": x}) for x in ROWS]
        for _ in range(20):
            assert scored.client.get("/v2/health/live").status == 200
        assert not any(one.done() for one in asked)
        goes_on.set()
        assert [one.result().status for one in asked] == [200] * 3


def test_too_many_requests_at_once_are_refused(scored, monkeypatch):
    scored.learn(40)
    monkeypatch.setattr(gateway_module, "MAX_WAITING_SCORES", 1)
    goes_on, score, began = threading.Event(), PublishedStates.score, threading.Event()

    def slow(*arguments):
        began.set()
        assert goes_on.wait(60)
        return score(*arguments)

    monkeypatch.setattr(PublishedStates, "score", slow)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(scored.ask, {"x": ROWS[0]})
        assert began.wait(60)
        reply = scored.ask({"x": ROWS[0]})
        goes_on.set()
        assert (reply.status, reply.json["code"]) == (429, "too_many_scores")
        assert asked.result().status == 200
    assert scored.ask({"x": ROWS[0]}).status == 200


def test_the_request_on_the_page_is_answered(scored):
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text("utf-8")
    (line,) = re.findall(r"^curl .*/scores.*$", page, re.MULTILINE)
    scored.learn(40)
    address = f"127.0.0.1:{scored.client.port}/feeds/{scored.store.keys.feed}"
    line = line.replace("127.0.0.1:8765/feeds/fraud", address)
    line = line.replace('{"amount": 39.5, "country": "de"}', "[0.5, 1.0, 2.0]")
    command = [tool("curl", "curl"), *shlex.split(line)[1:]]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["n"] == scored.store.publication().n
    assert [one["status"] for one in found["answers"]] == ["ok", "rejected"]


def test_the_least_recently_used_states_are_dropped(store):
    opened, closed = [], []

    class Reader:
        def __init__(self, feed):
            self.feed = feed
            opened.append(feed)

        def close(self):
            closed.append(self.feed)

    states = PublishedStates(Reader, most=2)
    for feed in ("a", "b", "a", "c", "a", "b"):
        states._newest(feed)
    assert (opened, closed) == (["a", "b", "c", "b"], ["b", "c"])
    states.close()
    assert sorted(closed) == ["a", "b", "b", "c"]


def test_a_changed_kind_in_rows_is_logged_once(scored):
    rows = [({"flag": int(x[0] > 0), "z": x[1]}, y) for x, y in examples(60)]
    push(scored.store, rows)
    work(scored.running, len(rows))
    with capture_logs() as logs:
        for _ in range(2):
            reply = scored.ask([{"x": {"flag": True, "z": 0.5}}, {"x": {"flag": False, "z": 0.5}}])
            assert reply.status == 200
    told = [line["event"] for line in logs if "was learned as" in line["event"]]
    assert told == [
        "feature 'flag' was learned as numbers and came as true and false: these values (2 so far) "
        "count as missing; send the kind that was learned"
    ]


def test_a_parameter_that_is_sent_twice_is_refused_by_name(scored):
    for name, path in (
        ("max_stale", "scores?max_stale=0&max_stale=100"),
        ("timeout", "examples?timeout=0&timeout=5"),
        ("warming", "examples?warming=refuse&warming=answer"),
    ):
        reply = scored.client.post(f"/feeds/{scored.store.keys.feed}/{path}", {"x": ROWS[0]})
        assert (reply.status, reply.json["field"]) == (422, name)
