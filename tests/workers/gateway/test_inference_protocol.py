"""The Open Inference Protocol v2: metadata, health, tensors to rows and back, and labels."""

import http.client
import json

import pytest
from served_gateway import serving
from world import wait_until

from online_svm import __version__

X = [[0.5, 1, -2], [0.25, 0, 3]]


def matrix(data, shape=(2, 3), datatype="FP64", name="input-0"):
    return {"name": name, "shape": list(shape), "datatype": datatype, "data": data}


def infer(client, feed, *inputs, path="infer", **more):
    return client.post(f"/v2/models/{feed}/{path}", {"inputs": list(inputs), **more})


def outputs(reply):
    assert reply.status == 200, reply.body
    return {tensor["name"]: tensor for tensor in reply.json["outputs"]}


def sent(store, count):
    found = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", count)[::-1]
    return [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in found]


def test_the_server_and_each_model_say_what_they_are(gateway):
    told = {"name": "online-svm", "version": __version__, "extensions": ["label"]}
    assert gateway.get("/v2").json == told
    assert gateway.get("/v2/health/live").json == {"live": True}
    model = gateway.get("/v2/models/plain").json
    assert (model["name"], model["platform"]) == ("plain", "online-svm")
    assert model["inputs"] == [{"name": "x", "datatype": "FP64", "shape": [-1, -1]}]
    assert [tensor["shape"][0] for tensor in model["outputs"]] == [-1] * 7
    assert (gateway.get("/v2/models/other").status, gateway.get("/v2/other").status) == (404, 404)


def test_a_model_of_named_features_says_what_it_takes_by_name_and_takes_that(gateway):
    model = gateway.get("/v2/models/cells").json
    assert model["inputs"] == [
        {"name": "amount", "datatype": "FP64", "shape": [-1]},
        {"name": "country", "datatype": "BYTES", "shape": [-1]},
        {"name": "new", "datatype": "BOOL", "shape": [-1]},
    ]
    cells = {"amount": [0.5, 3], "country": ["de", "fe"], "new": [True, None]}
    sent = [told | {"shape": [2], "data": cells[told["name"]]} for told in model["inputs"]]
    found = outputs(infer(gateway, "cells", *sent))
    assert found["status"]["data"] == ["ok", "ok"]
    assert found["label"]["data"] == ["a", "b"], "the country tells"


def test_a_server_is_ready_once_all_its_models_are(answered, world):
    with serving(answered, "plain", "late") as client:
        assert (client.get("/v2/health/ready").status, client.get("/v2/health/ready").json) == (
            200, {"ready": True}
        )  # fmt: skip
        assert client.get("/v2/models/plain/ready").json == {"name": "plain", "ready": True}
    with serving(answered, "plain", "named") as client:
        reply = client.get("/v2/models/named/ready")
        assert (reply.status, reply.json["ready"]) == (503, False)
        assert "warming" in reply.json["error"]
        reply = client.get("/v2/health/ready")
        assert (reply.status, reply.json) == (503, {"ready": False}), "no names without a token"
    with serving(world.url, world.feed) as client:
        assert "begun" in client.get(f"/v2/models/{world.feed}/ready").json["error"]


def test_rows_get_their_answers_as_tensors_and_the_id_is_echoed(gateway, stores):
    reply = infer(gateway, "plain", matrix(X), id="req-1")
    found = outputs(reply)
    assert (reply.json["model_name"], reply.json["id"]) == ("plain", "req-1")
    assert [row[b"id"] for row in sent(stores["plain"], 2)] == [b"req-1/0", b"req-1/1"]
    answers = [
        gateway.get(f"/feeds/plain/answers/{entry}").json for entry in found["entry"]["data"]
    ]
    for name in ("label", "probability", "lower", "upper", "status"):
        assert found[name]["data"] == [answer[name] for answer in answers]
        assert found[name]["shape"] == [2]
    assert found["probabilities"]["shape"] == [2, 2]
    assert found["probabilities"]["parameters"] == {"classes": ["a", "b"]}
    assert found["probabilities"]["data"] == [p for one in answers for p in one["probabilities"]]
    assert "id" not in infer(gateway, "plain", matrix(X)).json


def as_tritonclient_sends(client, **headers):
    """Ask as its `infer` does, which names no kind of body; return the status and the JSON."""
    asked = {"inputs": [matrix([*X[0], *X[1]])], "parameters": {"binary_data_output": True}}
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    connection.request("POST", "/v2/models/plain/infer", json.dumps(asked).encode(), headers)
    reply = connection.getresponse()
    told = json.loads(reply.read())
    connection.close()
    return reply.status, told


def test_a_body_without_a_type_is_taken_but_not_from_browsers(gateway):
    status, told = as_tritonclient_sends(gateway)
    assert (status, [tensor["shape"][0] for tensor in told["outputs"]]) == (200, [2] * 7)
    for header, value in (("Origin", "null"), ("Sec-Fetch-Site", "cross-site")):
        status, told = as_tritonclient_sends(gateway, **{header: value})
        assert (status, told["error"].startswith("send Content-Type")) == (415, True), header


def test_binary_tensors_are_refused_with_what_to_send(gateway):
    status, told = as_tritonclient_sends(gateway, **{"Inference-Header-Content-Length": "9"})
    assert (status, "binary_data=False" in told["error"]) == (415, True)


def test_only_the_outputs_that_are_wanted_are_given(gateway):
    wanted = [{"name": "probability"}, {"name": "label"}]
    reply = infer(gateway, "plain", matrix(X), outputs=wanted)
    assert list(outputs(reply)) == ["probability", "label"]
    reply = infer(gateway, "plain", matrix(X), outputs=[{"name": "score"}])
    assert (reply.status, reply.json["error"].split(":")[0]) == (422, "outputs[0].name")


def test_the_extension_label_labels_the_rows_of_a_request_by_its_id(gateway, stores):
    for id, data in (("one", [X[0]]), ("two", X)):
        outputs(infer(gateway, "late", matrix(data, (len(data), 3)), id=id))
        labels = {"name": "label", "shape": [len(data)], "datatype": "BYTES", "data": ["a", "b"]}
        labels["data"] = labels["data"][: len(data)]
        reply = infer(gateway, "late", labels, id=id, path="label")
        assert outputs(reply)["done"]["data"] == ["accepted"] * len(data)
        assert reply.json["id"] == id
    assert [row[b"for"] for row in sent(stores["late"], 2)] == [b"two/0", b"two/1"]
    for wrong, told in (({"id": None}, "id: "), ({"inputs": []}, "inputs: ")):
        body = {"id": "two", "inputs": [labels]} | wrong
        reply = gateway.post("/v2/models/late/label", body)
        assert (reply.status, reply.json["error"].startswith(told)) == (422, True)
    reply = infer(gateway, "late", labels, id="never", path="label")
    assert (reply.status, reply.json["error"][:6], len(reply.json["ids"])) == (422, "row 0:", 2)


WRONG = {
    "the body: ": [[], 7],
    "inputs: ": [{}, {"inputs": []}, {"inputs": {}}, {"inputs": [3]}],
    "inputs[0].name: ": [{"inputs": [matrix(X) | {"name": 3}]}],
    "inputs[1].name: ": [{"inputs": [matrix(X), matrix(X)]}],
    "inputs[0].shape: ": [
        {"inputs": [matrix(X, shape)]}
        for shape in ([], [2, 3, 1], [0, 3], [-1, 3], [2.0, 3], [True, 3], "23")
    ],
    "inputs[1].shape: ": [{"inputs": [matrix([1, 2], [2]), matrix([1], [1], name="y")]}],
    "inputs[0].datatype: ": [{"inputs": [matrix(X, datatype=t)]} for t in ("FP16", "float", None)],
    "inputs[0].data: ": [
        {"inputs": [matrix(data, datatype=datatype)]}
        for data, datatype in (
            (None, "FP64"), ([1, 2], "FP64"), ([[1, 2], [3, 4, 5, 6]], "FP64"),
            ([1, 2, 3, 4, 5, True], "FP64"), ([1, 2, 3, 4, 5, "6"], "FP32"),
            ([1, 2, 3, 4, 5, 6.5], "INT8"), ([1, 0, 1, 0, 1, 0], "BOOL"), ([1] * 6, "BYTES"),
            ([[[1, 2, 3]], [[4, 5, 6]]], "FP64"),
        )
    ],
    "outputs[0].name: ": [{"inputs": [matrix(X)], "outputs": [one]} for one in ({}, {"name": []})],
    "id: ": [{"inputs": [matrix(X)], "id": 7}],
    "row 0: ": [{"inputs": [matrix([1, 2], (1, 2))]}],
}  # fmt: skip


@pytest.mark.parametrize("named", WRONG)
def test_what_cannot_be_used_is_422_and_names_the_field(gateway, named):
    for body in WRONG[named]:
        reply = gateway.post("/v2/models/plain/infer", body)
        assert (reply.status, reply.json["error"].startswith(named)) == (422, True), (
            body, reply.body
        )  # fmt: skip


def test_too_many_rows_are_413_and_a_timeout_504_with_ids(gateway, world):
    assert infer(gateway, "plain", matrix([[1]] * 1001, (1001, 1))).status == 413
    with serving(world.url, world.feed) as client:
        path = f"/v2/models/{world.feed}/infer?timeout=0.2"
        body = {"inputs": [matrix(X)]}
        wait_until(lambda: client.post(path, body).status != 503)
        reply = client.post(path, body)
        assert (reply.status, len(reply.json["ids"])) == (504, 2)
        world.work(4)
        found = [client.get(f"/feeds/{world.feed}/answers/{at}") for at in reply.json["ids"]]
        assert [one.json["seq"] for one in found] == [2, 3]


def test_a_key_names_the_rows_of_a_request_to_a_feed_that_remembers_ids(gateway):
    for feed, rows, status in (("plain", 1, 400), ("kept", 2, 200), ("kept", 1, 200)):
        body = {"inputs": [matrix(X[:rows], (rows, 3))]}
        replies = [
            gateway.post(f"/v2/models/{feed}/infer", body, Idempotency_Key="v2-key")
            for _ in range(2)
        ]
        assert [reply.status for reply in replies] == [status] * 2
        if status == 200:
            first, again = (
                [one["data"] for one in reply.json["outputs"] if one["name"] != "entry"]
                for reply in replies
            )
            assert again == first
    other = gateway.post("/v2/models/kept/infer", body | {"id": "a"}, Idempotency_Key="b")
    assert (other.status, other.json["field"]) == (422, "id")
