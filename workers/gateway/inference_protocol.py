"""The Open Inference Protocol v2 over HTTP, and its extension `label`.

The `id` of a request names its rows: one row has that id, several have `id/0`, `id/1` and so on.
So `POST /v2/models/{feed}/label` with the same `id` brings their labels, in the same order.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from online_svm.version import __version__
from workers.errors import WorkerError
from workers.gateway.feed import GatewayFeed, unready
from workers.gateway.gateway import Gateway, key_of, routes_of
from workers.gateway.openapi import INFERENCE
from workers.gateway.refused import Refused, outward, wrong
from workers.gateway.rows import example, ids_of, label
from workers.gateway.tensors import (
    OUTPUTS,
    check_outputs,
    inputs,
    labels,
    model_inputs,
    outputs,
    rows,
)
from workers.push.ingest import Fields


class InferenceProtocol:
    """Handlers of the protocol."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def routes(self) -> list[Route]:
        """The routes of the protocol."""
        return routes_of(self, INFERENCE)

    async def server(self, _request: Request) -> Response:
        """Respond with the metadata of the server."""
        metadata = {"name": "online-svm", "version": __version__, "extensions": ["label"]}
        return JSONResponse(metadata)

    async def live(self, _request: Request) -> Response:
        """Return 200 while the process runs."""
        return JSONResponse({"live": True})

    async def ready(self, _request: Request) -> Response:
        """Return 200 if every feed gives probabilities, without naming feeds."""
        is_ready = all([await _unready(feed) is None for feed in self._gateway.feeds.values()])
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    async def model(self, request: Request) -> Response:
        """Respond with the inputs and outputs of a feed."""
        feed = self._gateway.feed(request, "ask", "label", "read")
        metadata = {"name": feed.keys.feed, "platform": "online-svm"}
        tensors = model_inputs(await feed.features())
        return JSONResponse(metadata | {"inputs": tensors, "outputs": OUTPUTS})

    async def model_ready(self, request: Request) -> Response:
        """Respond whether a feed gives probabilities."""
        feed = self._gateway.feed(request, "ask", "label", "read")
        reason = await _unready(feed)
        status = {"name": feed.keys.feed, "ready": reason is None}
        if reason is None:
            return JSONResponse(status)
        return JSONResponse(status | {"error": f"feed {feed.keys.feed!r}: {reason}"}, 503)

    async def infer(self, request: Request) -> Response:
        """Add rows; respond with their answers."""
        feed = self._gateway.feed(request, "ask")
        key = key_of(request)

        def convert(sent: Any) -> tuple[list[Fields], str | None, Any]:
            found = rows(inputs(sent))
            check_outputs(sent.get("outputs"))
            id = sent.get("id")
            if key is not None and id not in (None, key):
                raise wrong("id", "it is not the Idempotency-Key; send one of the two")
            ids = (
                ids_of(key, len(found), "Idempotency-Key") or ids_of(id, len(found)) or repeat(None)
            )
            entries = [example({"x": x, "id": id}) for x, id in zip(found, ids, strict=False)]
            return entries, id, sent.get("outputs")

        entries, id, wanted = await self._gateway.converted(request, convert)
        if key is not None:
            await feed.check_ids_are_kept(len(entries))
        entry_ids, answers = await self._exchange(request, feed, entries, are_examples=True)
        return _response(feed, id, {"outputs": outputs(answers, entry_ids, wanted)})

    async def label(self, request: Request) -> Response:
        """Add the labels of the rows of an earlier request; respond with how each was used."""
        feed = self._gateway.feed(request, "label")

        def convert(sent: Any) -> tuple[list[Fields], str]:
            found = labels(inputs(sent))
            ids = ids_of(sent.get("id"), len(found))
            if ids is None:
                raise wrong("id", "send that of the request whose rows these labels are of")
            labelled = [{"id": id, "y": y} for id, y in zip(ids, found, strict=True)]
            return [label(one) for one in labelled], sent["id"]

        entries, id = await self._gateway.converted(request, convert)
        _, answers = await self._exchange(request, feed, entries, are_examples=False)
        done = [answer["done"] for answer in answers]
        tensor = {"name": "done", "datatype": "BYTES", "shape": [len(done)], "data": done}
        return _response(feed, id, {"outputs": [tensor]})

    async def _exchange(
        self, request: Request, feed: GatewayFeed, entries: Sequence[Fields], are_examples: bool
    ) -> tuple[list[str], list[dict[str, Any]]]:
        found = await self._gateway.exchange(request, feed, entries, are_examples)
        ids = [one.entry.decode() for one in found]
        answers = [orjson.loads(one.payload) for one in found if one.payload is not None]
        if len(answers) < len(ids):
            raise Refused("answers_late", ids=ids)
        for row, answer in enumerate(answers):
            if answer["status"] == "rejected":
                code, words = answer["code"], answer["reason"]
                raise Refused("row_rejected", ids=ids, row=row, rejection=code, words=words)
        return ids, answers


def _response(feed: GatewayFeed, id: str | None, fields: dict[str, object]) -> Response:
    head: dict[str, object] = {"model_name": feed.keys.feed}
    body = orjson.dumps(head | ({} if id is None else {"id": id}) | fields)
    return Response(body, headers={"Cache-Control": "no-store"}, media_type="application/json")


async def _unready(feed: GatewayFeed) -> str | None:
    """Return why a feed gives no probabilities now, if so."""
    try:
        return unready(await feed.sampled())
    except WorkerError as error:
        return outward(error)
