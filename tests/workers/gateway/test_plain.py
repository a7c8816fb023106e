"""Examples, labels, answers, status and alarms over the plain address, with every status code."""

import json
import time

import pytest
from alarm_receiver import raise_alarms
from served_gateway import serving

X = [0.25, -1.5, 3]


def out(store, entry):
    ((_, fields),) = store.call("XRANGE", store.keys.out, entry, entry)
    return fields[1]


def last(store, key):
    ((entry, fields),) = store.call("XREVRANGE", key, "+", "-", "COUNT", 1)
    return entry.decode(), [field.decode() for field in fields]


def test_an_example_gets_its_answer_as_the_worker_wrote_it(gateway, stores):
    reply = gateway.post("/feeds/plain/examples", {"x": X, "id": "tx-1"})
    entry, sent = last(stores["plain"], stores["plain"].keys.input)
    answer = out(stores["plain"], entry)
    assert (reply.status, reply.body) == (200, b'{"entry":"%b",' % entry.encode() + answer[1:])
    assert sent == ["x", "[0.25,-1.5,3]", "id", "tx-1"]
    assert reply.headers["Location"] == f"/feeds/plain/answers/{entry}"
    assert reply.json["id"] == "tx-1"
    assert reply.headers["Cache-Control"] == "no-store"
    again = gateway.get(reply.headers["Location"])
    assert (again.status, again.body) == (200, reply.body)


def test_a_list_gets_the_answers_in_its_order_and_labels_are_learned_after_them(gateway):
    sent = [{"x": [i, 0.0, 1.0], "y": "ab"[i % 2], "id": f"n{i}"} for i in range(40)]
    reply = gateway.post("/feeds/plain/examples", sent)
    assert reply.status == 200
    assert [answer["id"] for answer in reply.json] == [f"n{i}" for i in range(40)]
    for answer in reply.json:
        found = gateway.get(f"/feeds/plain/answers/{answer['entry']}")
        assert (found.status, found.json) == (200, answer)
    learned = [answer["n"] for answer in reply.json]
    assert learned == list(range(learned[0], learned[0] + 40))


def test_a_label_finds_its_example_by_id(gateway):
    asked = gateway.post("/feeds/late/examples", {"x": X, "id": "tx-7"})
    assert asked.json["status"] == "ok"
    for done in ("accepted", "repeated"):
        reply = gateway.post("/feeds/late/labels", {"id": "tx-7", "y": "a"})
        assert reply.status == 200
        assert {name: reply.json[name] for name in ("status", "example", "label", "done")} == {
            "status": "label", "example": "tx-7", "label": "a", "done": done
        }  # fmt: skip
    both = gateway.post("/feeds/late/labels", [{"id": "tx-7", "y": "b"}, {"id": "none", "y": "a"}])
    assert [one["status"] for one in both.json] == ["label", "rejected"]
    assert gateway.post("/feeds/late/labels", {"id": "none", "y": "a"}).status == 422


def test_a_row_of_named_cells_of_any_kind_passes_unjudged_and_is_answered(gateway, stores):
    sent = {"x": {"country": "de", "age": 3, "new": True}, "y": True, "s": {"country": "de"}}
    reply = gateway.post("/feeds/named/examples", sent)
    assert last(stores["named"], stores["named"].keys.input)[1] == [
        "x", '{"country":"de","age":3,"new":true}', "y", "true", "s", '{"country":"de"}'
    ]  # fmt: skip
    assert (reply.status, reply.json["code"]) == (422, "label"), "true is no class of this feed"
    reply = gateway.post("/feeds/named/examples", sent | {"y": "a"})
    assert (reply.status, reply.json["status"]) == (200, "warming")


def test_what_the_worker_rejects_is_422_with_its_reason(gateway):
    reply = gateway.post("/feeds/plain/examples", {"x": [1, 2]})
    assert (reply.status, reply.json["code"]) == (422, "dimension")
    assert reply.json["reason"] == "x has 2 features, this feed takes 3"
    assert reply.json["about"] == {"case": "features_other", "found": 2, "features": 3}
    mixed = gateway.post("/feeds/plain/examples", [{"x": [1, 2]}, {"x": X}])
    assert mixed.status == 200
    assert [one["status"] for one in mixed.json] == ["rejected", "ok"]


WRONG = {
    "x: ": [{"x": 3}, {"x": "[1,2,3]"}, {"x": None}, {}, {"y": "a"}],
    "[1].x: ": [[{"x": X}, {"x": 3}]],
    "'z'": [{"x": X, "z": 1}, {"x": X, "z": {}}],
    "y: ": [
        {"x": X, "y": ["a"]},
        {"x": X, "y": {}},
        {"x": X, "y": 2**64},
        {"x": X, "y": -(2**63) - 1},
        {"x": X, "y": 1e20},
        {"x": X, "y": 10**400 // 10**100},
    ],
    "[1].y: ": [[{"x": X}, {"x": X, "y": 2**70}]],
    "p: ": [{"x": X, "p": True}, {"x": X, "p": []}],
    "id: ": [{"x": X, "id": 7}, {"x": X, "id": ["a"]}],
    "s: ": [{"x": X, "s": "de"}],
    "time: ": [{"x": X, "time": "now"}, {"x": X, "time": True}],
    "the body: ": [[], 7, "x", None, [1], [{"x": X}, 2]],
    "'a': ": [
        b'{"x":{"a":1,"b":2,"a":3}}',
        b'{"x":[],"id":"a\\"","a":1,"a":2}',
        b'{"x":{"a":1,"a":"\\"\\""}}',
        b'{"x":{"a":"\\u0022\\u0022","a":1}}',
        b'{"x":{"a":1,"\\u0061":2},"id":"\\u0022\\u0022"}',
    ],
}


@pytest.mark.parametrize("named", WRONG)
def test_a_body_of_another_form_is_422_and_names_the_field(gateway, stores, named):
    before = stores["plain"].length(stores["plain"].keys.input)
    for body in WRONG[named]:
        reply = gateway.post("/feeds/plain/examples", body if body is not None else b"null")
        assert reply.status == 422, (body, reply.body)
        assert reply.json["error"].removeprefix("[0].").startswith(named), (body, reply.body)
    assert stores["plain"].length(stores["plain"].keys.input) == before, "nothing was added"


def test_a_label_of_another_form_is_422_and_names_the_field(gateway):
    for named, body in (
        ("id", {"y": "a"}), ("y", {"id": "a"}), ("id", {"id": 3, "y": "a"}),
        ("y", {"id": "a", "y": 2**64}), ("y", {"id": "a", "y": 1e20}),
        ("'x'", {"id": "a", "y": "a", "x": []}), ("[1].y", [{"id": "a", "y": "b"}, {"id": "c"}]),
    ):  # fmt: skip
        reply = gateway.post("/feeds/late/labels", body)
        assert (reply.status, reply.json["error"].startswith(named)) == (422, True), reply.body


DEEP = [b'{"x":' + b"[" * depth + b'"\\""' + b"]" * depth + b"}" for depth in (300, 1020)]
"""JSON that is deeper than what can be written, and looked at, here."""


def test_what_is_no_json_is_400_another_kind_415_and_too_much_413(gateway, answered):
    for body in (b"", b"{", b'{"x":[NaN]}', b"\xff", b"[" * 5000, *DEEP):
        assert gateway.post("/feeds/plain/examples", body).status == 400, body
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = gateway.post("/feeds/plain/examples", {"x": X}, Content_Type=kind)
        assert reply.status == 415, kind
    packed = gateway.post("/feeds/plain/examples", {"x": X}, Content_Encoding="gzip")
    assert packed.status == 415
    assert gateway.post("/feeds/plain/examples", [{"x": X}] * 1001).status == 413
    with serving(answered, "plain", max_body=1000) as small:
        assert small.post("/feeds/plain/examples", {"x": X}).status == 200
        assert small.post("/feeds/plain/examples", {"x": [0.5] * 1000}).status == 413


def test_an_unknown_feed_address_or_method_is_told_as_json(gateway):
    for status, reply in (
        (404, gateway.get("/feeds/other/status")),
        (404, gateway.get("/feeds/plain")),
        (404, gateway.get("/feeds/plain/status/")),
        (405, gateway.get("/feeds/plain/examples")),
        (405, gateway.ask("OPTIONS", "/feeds/plain/examples")),
        (404, gateway.get("/feeds/plain/answers/1-99")),
        (422, gateway.get("/feeds/plain/answers/tx-1x")),
        (422, gateway.get("/feeds/plain/answers/18446744073709551616-0")),
        (422, gateway.get("/feeds/plain/answers/1-1?timeout=soon")),
        (422, gateway.post("/feeds/plain/examples?warming=no", {"x": X})),
        *((422, gateway.post(f"/feeds/plain/examples?timeout={text}", {"x": X}))
          for text in ("61", "nan", "", "x", "-1", "inf", "1e9")),
    ):  # fmt: skip
        assert (reply.status, reply.json["status"]) == (status, status), reply.body
        assert reply.headers["Content-Type"] == "application/problem+json"


def test_an_answer_that_cannot_come_any_more_is_not_waited_for(gateway):
    began = time.monotonic()
    assert gateway.get("/feeds/plain/answers/1-99?timeout=60").status == 404
    assert time.monotonic() - began < 30


def test_who_does_not_wait_gets_the_id_by_which_the_answer_is_there(gateway):
    reply = gateway.post("/feeds/plain/examples?timeout=0", {"x": X})
    assert reply.status in (200, 202)
    if reply.status == 202:
        (entry,) = reply.json["ids"]
        assert reply.headers["Location"] == f"/feeds/plain/answers/{entry}"
    answer = gateway.get(reply.headers["Location"] + "?timeout=60")
    assert (answer.status, answer.json["status"]) == (200, "ok")


def test_the_status_is_that_of_the_command(gateway, answered, run_command):
    code, text, _ = run_command("status", "plain", "--json", "--redis", answered)
    told, shown = gateway.get("/feeds/plain/status").json, json.loads(text)
    assert code == 0
    for found in (told, shown):
        del found["stored"]  # what Redis takes for it may change meanwhile
    assert told == shown


def test_alarms_are_told_with_their_entries(gateway, stores):
    raise_alarms(stores["plain"], 3, first=2, together=2, closed=False)
    found = gateway.get("/feeds/plain/alarms").json
    assert [one["entry"] for one in found] == ["2-0", "3-0", "4-0"]
    assert [alarm["n"] for alarm in found[0]["alarms"]] == [20, 21]
    stores["plain"].call("DEL", stores["plain"].keys.alarms)


@pytest.mark.servers("embedded")
def test_an_entry_that_waits_is_202_and_one_whose_answer_is_trimmed_404(world):
    world.push(2)
    world.answer()
    world.push(1)
    with serving(world.url, world.feed) as client:
        address = f"/feeds/{world.feed}/answers/"
        assert client.get(f"{address}2-0").status == 200
        waiting = client.get(f"{address}3-0")
        assert (waiting.status, waiting.json) == (202, {"ids": ["3-0"]})
        world.store.call("XTRIM", world.store.keys.out, "MAXLEN", 0)
        assert world.store.length(world.store.keys.input) == 3
        assert [client.get(f"{address}{i}-0").status for i in (2, 3)] == [404, 202]
