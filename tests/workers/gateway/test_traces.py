"""The header `traceparent` of a request is in its entries and in their answers."""

import pytest
from served_gateway import serving

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
X = [0.25, -1.5, 3]


@pytest.mark.parametrize("feed", ["plain", "cells"])
def test_the_answers_repeat_the_trace_of_the_request(gateway, stores, feed):
    asked = {"feed": feed, "traceparent": TRACE}
    one = gateway.post(f"/feeds/{feed}/examples", {"x": X}, traceparent=TRACE)
    assert (one.status, one.json["traceparent"]) == (200, TRACE), asked
    ((_, fields),) = stores[feed].call("XREVRANGE", stores[feed].keys.input, "+", "-", "COUNT", 1)
    assert fields[-2:] == [b"traceparent", TRACE.encode()]
    sent = [{"x": X}, {"x": [1]}]
    both = gateway.post(f"/feeds/{feed}/examples", sent, traceparent=TRACE)
    assert [answer["traceparent"] for answer in both.json] == [TRACE] * 2
    assert [answer["status"] for answer in both.json] == ["ok", "rejected"]


@pytest.mark.servers("embedded")
def test_a_feed_that_no_worker_has_begun_gets_the_field_too(world):
    with serving(world.url, world.feed) as client:
        client.post(f"/feeds/{world.feed}/examples?timeout=0", {"x": X}, traceparent=TRACE)
    ((_, fields),) = world.store.call("XRANGE", world.store.keys.input, "-", "+")
    assert fields[::2] == [b"x", b"traceparent"]
