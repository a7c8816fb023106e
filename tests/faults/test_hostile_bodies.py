"""Bodies of legal size that are made to be slow: each takes little time, and probes answer."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import cycle
from threading import Event

import pytest
from processes import processor_seconds
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import gateway_process  # noqa: E402

SIZE = 1 << 20
"""Bytes of a body, at most, by default."""

SECONDS = 0.5
"""Processor time of the gateway for one of them, at most: five times what the worst one takes."""

CLIENTS = 20
"""Clients that send such bodies, one after the other, while probes are asked."""

EXAMPLE, INFER = "/feeds/slow/examples", "/v2/models/slow/infer"


def joined(pieces, before, after):
    """Return as many of the pieces as a body may hold."""
    held, left = [], SIZE - len(before) - len(after)
    for piece in pieces:
        left -= len(piece) + 1
        if left < 0:
            break
        held.append(piece)
    return before + b",".join(held) + after


def repeated(piece):
    while True:
        yield piece


def numbered(piece):
    return (piece % i for i in range(SIZE))


def compact(sent):
    return json.dumps(sent, separators=(",", ":")).encode()


def tensor(name, rows, data, **more):
    return {"name": name, "shape": [rows], "datatype": "FP64", "data": data, **more}


EXAMPLES = {
    "one name": lambda: joined(repeated(b'"a":0'), b'{"x":{', b"}}"),
    "other names": lambda: joined(numbered(b'"%x":0'), b'{"x":{', b"}}"),
    "other names, of which the last is there twice":
        lambda: joined(numbered(b'"%x":0'), b'{"x":{', b',"last":0,"last":0}}'),
    "names of one row": lambda: joined(numbered(b'"a%05d":1.5'), b'{"x":{', b"}}"),
    "small objects": lambda: joined(repeated(b'{"":0}'), b'{"x":[', b"]}"),
    "empty objects": lambda: joined(repeated(b"{}"), b'{"x":[', b"]}"),
    "empty arrays": lambda: joined(repeated(b"[]"), b'{"x":[', b"]}"),
    "deep arrays": lambda: joined(repeated(b"[" * 100 + b"]" * 100), b'{"x":[', b"]}"),
    "as many arrays as may be":
        lambda: joined([b"[]"] * 130_000 + [b"0"] * SIZE, b'{"x":[', b"]}"),
    "as many objects as may be":
        lambda: joined([b'{"":0}'] * 65_000 + [b"0"] * SIZE, b'{"x":[', b"]}"),
    "digits": lambda: joined(repeated(b"0"), b'{"x":[', b"]}"),
    "texts": lambda: joined(repeated(b'""'), b'{"x":[', b"]}"),
    "colons in texts": lambda: joined(repeated(b'":::::::::::"'), b'{"x":[', b"]}"),
    "escaped texts": lambda: joined(repeated(b'"\\""'), b'{"x":[', b"]}"),
    "one text of escapes": lambda: b'{"x":[],"id":"%s"}' % (b"\\u005b" * (SIZE // 6 - 20)),
    "a text without an end": lambda: b'{"x":["' + b'\\"' * (SIZE // 2 - 10),
    "rows": lambda: joined(repeated(b'{"x":[0.5,1,-2],"y":"a","id":"n","time":1}'), b"[", b"]"),
    "a thousand rows": lambda: compact([{"x": {f"n{i}": 0.5 for i in range(100)}}] * 1000),
}  # fmt: skip

TENSORS = {
    "tensors": lambda: joined(numbered(b'{"name":"%x"}'), b'{"inputs":[', b"]}"),
    "tensors of one name": lambda: joined(repeated(b'{"name":"a"}'), b'{"inputs":[', b"]}"),
    "tensors of one value": lambda: joined(
        numbered(b'{"name":"%x","shape":[1],"datatype":"FP64","data":[1]}'), b'{"inputs":[', b"]}"
    ),
    "columns": lambda: compact({"inputs": [tensor(f"n{i}", 1000, [0] * 1000) for i in range(500)]}),
    "columns of long names": lambda: compact(
        {"inputs": [tensor(f"{i}" * 600, 1000, [0] * 1000) for i in range(260)]}
    ),
    "a long id of many rows": lambda: compact(
        {"id": "i" * 1_000_000, "inputs": [tensor("a", 1000, [0] * 1000)]}
    ),
    "outputs": lambda: joined(
        repeated(b'{"name":"label"}'),
        b'{"inputs":[{"name":"a","shape":[1],"datatype":"FP64","data":[0]}],"outputs":[', b"]}",
    ),
}  # fmt: skip


MIXED = ("columns", "other names", "tensors of one value", "a thousand rows")


@pytest.fixture(scope="module")
def served(embedded_url):
    """The process of a gateway of the feed `slow`, which has no worker, and a client of it."""
    with gateway_process(embedded_url, "slow", options=("--high-water", 0)) as served:
        yield served


@pytest.mark.parametrize("kind", [*EXAMPLES, *TENSORS])
def test_a_body_made_to_be_slow_takes_little_time(served, kind, tell_line):
    process, client = served
    least = float("inf")
    for _ in range(5):  # others on the same processor make it slower
        began = processor_seconds(process)
        reply = post(client, kind)
        least = min(least, processor_seconds(process) - began)
        assert reply.status in (202, 400, 413, 422, 504), reply.body
    tell_line(f"{kind}: {1000 * least:.0f} ms, {reply.status}")
    assert least < SECONDS


def post(client, kind):
    assert len(body(kind)) <= SIZE
    return client.post(f"{EXAMPLE if kind in EXAMPLES else INFER}?timeout=0", body(kind))


@cache
def body(kind):
    return (EXAMPLES | TENSORS)[kind]()


def test_live_probes_are_answered_while_many_such_bodies_come(served, tell_line):
    """Counted in bodies that are answered before the probe: each takes its time on any machine."""
    _, client = served
    stop, done, waits = Event(), [], []
    with ThreadPoolExecutor(CLIENTS) as threads:
        for _, kind in zip(range(CLIENTS), cycle(MIXED), strict=False):
            threads.submit(post_until, stop, client, kind, done)
        try:
            while len(waits) < 10 or len(done) <= CLIENTS:
                before = len(done)
                assert client.get("/v2/health/live").status == 200
                waits.append(len(done) - before)
                time.sleep(0.05)
        finally:
            stop.set()
    tell_line(f"probes: at most {max(waits)} of {len(done)} bodies before one of them")
    assert max(waits) <= 2 * CLIENTS, "each client has one body on its way, and may send another"


def post_until(stop, client, kind, done):
    while not stop.is_set():
        done.append(post(client, kind).status)
