"""A request that is sent again under its key is answered once: with the answer it got at first."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from processes import LIMIT
from served_gateway import gateway_process, serving
from world import wait_until

pytestmark = pytest.mark.servers("embedded")

X = [0.5, 1, -2]


def test_a_repeated_key_gets_the_first_answer_and_is_learned_once(gateway, stores):
    sent = {"x": X, "y": "b"}
    first = gateway.post("/feeds/kept/examples", sent, Idempotency_Key="order-7")
    gateway.post("/feeds/kept/examples", [{"x": X, "id": f"between-{i}"} for i in range(30)])
    again = gateway.post("/feeds/kept/examples", sent, Idempotency_Key="order-7")
    assert (first.status, again.status) == (200, 200)
    assert first.json["id"] == "order-7"
    assert again.body == first.body
    assert again.headers["Location"] != first.headers["Location"], "the repetition is an entry too"
    after = gateway.post("/feeds/kept/examples", {"x": X}).json
    assert after["n"] == first.json["n"] + 1


def test_a_key_may_stand_in_quotes_and_is_not_empty(gateway):
    quoted = gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key='"in-quotes"')
    assert quoted.json["id"] == "in-quotes"
    for key in ("", '""'):
        assert gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key=key).status == 400


def test_of_requests_at_once_under_one_key_all_get_the_same_answer(gateway):
    with ThreadPoolExecutor(8) as threads:
        asked = [
            threads.submit(
                gateway.post, "/feeds/kept/examples", {"x": X, "y": "a"}, Idempotency_Key="at-once"
            )
            for _ in range(8)
        ]
        (body,) = {one.result().body for one in asked}
    assert b'"status":"ok"' in body


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "batch-1"}])
def test_a_list_that_is_sent_again_gets_its_first_answers(gateway, answered, headers):
    sent = [
        {"x": [i / 20, 1, -2], "y": "ab"[i % 2], "id": f"row{len(headers)}-{i}"} for i in range(20)
    ]
    if headers:
        for row in sent[5:]:
            del row["id"]
    first = gateway.post("/feeds/kept/examples", sent, **headers)
    with serving(answered, "kept") as another:
        again = another.post("/feeds/kept/examples", sent, **headers)
    assert [one["status"] for one in first.json] == ["ok"] * 20
    assert (again.status, again.body) == (200, first.body)
    after = gateway.post("/feeds/kept/examples", {"x": X}).json
    assert after["n"] == first.json[-1]["n"] + 1, "each row was learned once"


def test_rows_of_a_list_under_a_key_are_named_after_it(gateway):
    rows = [{"x": X}, {"x": X, "id": "its-own"}, {"x": X}]
    reply = gateway.post("/feeds/kept/examples", rows, Idempotency_Key="named")
    assert [one["id"] for one in reply.json] == ["named/0", "its-own", "named/2"]


def test_of_a_list_partly_sent_before_the_old_rows_get_their_first_answers(gateway):
    sent = [{"x": [i, 1, -2], "id": f"part-{i}"} for i in range(12)]
    first = gateway.post("/feeds/kept/examples", sent[:5]).json
    whole = gateway.post("/feeds/kept/examples", sent).json
    assert whole[:5] == first
    assert [one["id"] for one in whole] == [row["id"] for row in sent]
    assert {one["status"] for one in whole} == {"ok"}


def test_an_example_that_waits_for_its_label_gets_its_first_answer(gateway):
    """The feed has a horizon, and no dedupe window."""
    for sent in ([{"x": X, "id": "w-1"}, {"x": X, "id": "w-2"}], [{"x": X, "id": "w-3", "y": "a"}]):
        first = gateway.post("/feeds/late/examples", sent)
        assert {one["status"] for one in first.json} == {"ok"}
        again = gateway.post("/feeds/late/examples", sent)
        assert (again.status, again.body) == (200, first.body)
        for row, answer in zip(sent, first.json, strict=True):
            found = gateway.get(f"/feeds/late/answers?id={row['id']}")
            assert (found.status, found.json) == (200, answer)
    labelled = gateway.post("/feeds/late/examples", {"x": X, "id": "w-1", "y": "b"})
    assert (labelled.json["status"], labelled.json["done"]) == ("label", "accepted")


def test_a_batch_whose_gateway_was_killed_is_answered_by_another(world):
    world = world.beside("keyed", dedupe_window=100)
    world.push(30)
    world.answer()
    sent = [{"x": [i, 1, 2], "y": "ab"[i % 2]} for i in range(40)]
    path = f"/feeds/{world.feed}/examples?timeout=60"

    def post(client):
        return client.post(path, sent, Idempotency_Key="day-1")

    with gateway_process(world.url, world.feed) as (process, client), ThreadPoolExecutor(1) as one:
        asked = one.submit(post, client)
        wait_until(lambda: world.store.length(world.store.keys.input) == 70)
        process.kill()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            asked.result()
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(1) as one:
        asked = one.submit(post, client)
        wait_until(lambda: world.store.length(world.store.keys.input) == 110)
        world.work(110)
        first = asked.result()
        assert [one["seq"] for one in first.json] == list(range(30, 70)), (
            "the killed one added them"
        )
        learned = world.store.state().position.n
        with world.worker():
            again = post(client)
    assert (again.status, again.body) == (200, first.body)
    assert world.store.state().position.n == learned


def test_an_answer_is_found_by_the_id_of_its_producer(gateway, stores):
    sent = gateway.post("/feeds/kept/examples", {"x": X, "id": "tx/é 7"})
    found = gateway.get("/feeds/kept/answers?id=tx%2F%C3%A9%207")
    assert (found.status, found.body) == (200, sent.body)
    for address, status, code in (
        ("/feeds/kept/answers?id=never", 404, "id_unknown"),
        ("/feeds/plain/answers?id=tx-1", 404, "id_unknown"),
        ("/feeds/kept/answers?id=", 422, "field_invalid"),
        ("/feeds/kept/answers", 422, "field_invalid"),
    ):
        reply = gateway.get(address)
        assert (reply.status, reply.json["code"]) == (status, code)


def test_a_first_answer_that_was_trimmed_is_410_with_its_seq(gateway, stores):
    first = gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key="gone").json
    stores["kept"].call("XTRIM", stores["kept"].keys.out, "MAXLEN", 0)
    again = gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key="gone")
    listed = gateway.post("/feeds/kept/examples", [{"x": X, "id": "gone"}, {"x": X}])
    (entry,) = again.json["ids"]
    by_entry = gateway.get(f"/feeds/kept/answers/{entry}")
    by_id = gateway.get("/feeds/kept/answers?id=gone")
    for reply in (again, listed, by_entry, by_id):
        found = reply.status, reply.json["code"], reply.json["seq"]
        assert found == (410, "answer_gone", first["seq"])
    other = gateway.get(f"/feeds/kept/answers/{listed.json['ids'][1]}")
    assert (other.status, other.json["status"]) == (200, "ok"), "the other row is answered"


@pytest.mark.parametrize(
    ("feed", "body", "status", "told"),
    [
        ("plain", {"x": X}, 400, "remembers 0 ids"),
        ("kept", [{"x": X}] * 101, 400, "--dedupe-window 101 or more"),
        ("kept", {"x": X, "id": "other"}, 422, "id: "),
    ],
)
def test_a_key_that_can_promise_nothing_is_refused(gateway, stores, feed, body, status, told):
    before = stores[feed].length(stores[feed].keys.input)
    reply = gateway.post(f"/feeds/{feed}/examples", body, Idempotency_Key="k")
    assert (reply.status, told in reply.json["error"]) == (status, True), reply.body
    assert stores[feed].length(stores[feed].keys.input) == before


def test_two_different_keys_are_refused_and_one_that_is_repeated_is_taken(gateway):
    def ask(*keys):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=LIMIT)
        body = json.dumps({"x": X}).encode()
        connection.putrequest("POST", "/feeds/kept/examples")
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        for name, value in (*headers, *(("Idempotency-Key", key) for key in keys)):
            connection.putheader(name, value)
        connection.endheaders(body)
        with closing(connection), connection.getresponse() as reply:
            return reply.status, json.loads(reply.read())

    status, problem = ask("one", "another")
    assert (status, problem["code"]) == (400, "key_twice")
    assert ask("same", "same")[0] == 200
