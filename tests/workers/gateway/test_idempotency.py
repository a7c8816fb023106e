"""A request that is sent again under its key is answered once: with the answer it got at first."""

from concurrent.futures import ThreadPoolExecutor

import pytest

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


def test_the_answer_to_a_repetition_stays_where_the_first_was_trimmed(gateway, stores):
    first = gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key="gone").json
    stores["kept"].call("XTRIM", stores["kept"].keys.out, "MAXLEN", 0)
    again = gateway.post("/feeds/kept/examples", {"x": X}, Idempotency_Key="gone").json
    assert (again["status"], again["first"]) == ("duplicate", first["seq"])


@pytest.mark.parametrize(
    ("feed", "body", "status", "told"),
    [
        ("plain", {"x": X}, 400, "--dedupe-window"),
        ("kept", [{"x": X}, {"x": X}], 400, "one example"),
        ("kept", {"x": X, "id": "other"}, 422, "id: "),
    ],
)
def test_a_key_that_can_promise_nothing_is_refused(gateway, stores, feed, body, status, told):
    before = stores[feed].length(stores[feed].keys.input)
    reply = gateway.post(f"/feeds/{feed}/examples", body, Idempotency_Key="k")
    assert (reply.status, told in reply.json["error"]) == (status, True), reply.body
    assert stores[feed].length(stores[feed].keys.input) == before
