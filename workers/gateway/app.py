"""The plain routes: examples, labels, answers, status and alarms of feeds, as JSON.

A response contains each answer as the worker wrote it, byte for byte, with `entry` in front of it.
"""

import re
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import repeat
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from workers.errors import Unavailable, WorkerError
from workers.feed.position import MAX_ID_PART
from workers.gateway.feed import Answered, status_of
from workers.gateway.gateway import Gateway, key_of, routes_of, trace_of
from workers.gateway.limits import json_body, max_stale, parameter, refusal, seconds
from workers.gateway.openapi import PLAIN, document
from workers.gateway.refused import Refused, later, outward, wrong
from workers.gateway.rows import example, ids_of, label, objects
from workers.log import Logger
from workers.push.ingest import Fields
from workers.reading.registry import NoSuchFeed

_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_ALARMS = 100

log = Logger("online_svm.gateway")


def application(gateway: Gateway, routes: Sequence[Route] = ()) -> Starlette:
    """Return the ASGI application of a gateway with the plain and further routes."""

    @asynccontextmanager
    async def opened(_app: Starlette) -> AsyncIterator[None]:
        await gateway.open()
        try:
            yield
        finally:
            await gateway.close()

    made = Starlette(
        routes=[*routes_of(PlainRoutes(gateway), PLAIN), *routes],
        exception_handlers={
            Refused: _refused, WorkerError: _failed, HTTPException: _unknown, Exception: _fault
        },
        lifespan=opened,
    )  # fmt: skip
    made.router.redirect_slashes = False
    return made


class PlainRoutes:
    """Handlers of the plain routes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def examples(self, request: Request) -> Response:
        """Add examples; respond with their answers."""
        feed = self._gateway.feed(request, "ask")
        key = key_of(request)

        def convert(found: Any) -> list[Fields]:
            sent = objects(found)
            if any(row.get("y") is not None or row.get("p") is not None for row in sent):
                self._gateway.feed(request, "label")  # an example with a label needs this right
            if not isinstance(found, list):
                return [example(found, key=key)]
            keys = ids_of(key, len(sent), "Idempotency-Key") or repeat(None)
            return [
                example(row, f"[{i}].", own if row.get("id") is None else None)
                for i, (row, own) in enumerate(zip(sent, keys, strict=False))
            ]

        entries, is_list = await self._gateway.converted(
            request, lambda found: (convert(found), isinstance(found, list))
        )
        if key is not None:
            await feed.check_ids_are_kept(len(entries))
        answers = await self._gateway.exchange(request, feed, entries, are_examples=True)
        return _answers(request, answers, is_list)

    async def labels(self, request: Request) -> Response:
        """Add labels of earlier examples; respond with their answers."""
        feed = self._gateway.feed(request, "label")

        def convert(found: Any) -> list[Fields]:
            return [
                label(row, f"[{i}]." if isinstance(found, list) else "")
                for i, row in enumerate(objects(found))
            ]

        entries, is_list = await self._gateway.converted(
            request, lambda found: (convert(found), isinstance(found, list))
        )
        answers = await self._gateway.exchange(request, feed, entries, are_examples=False)
        return _answers(request, answers, is_list)

    async def scores(self, request: Request) -> Response:
        """Respond with the answers to rows by the newest published state."""
        feed = self._gateway.feed(request, "ask")
        most = max_stale(request)
        body = await json_body(request, self._gateway.limits.max_body)
        return _json(await self._gateway.scored(feed, body, most))

    async def answer(self, request: Request) -> Response:
        """Respond with the answer to an entry; 202 if there is none yet."""
        feed = self._gateway.feed(request, "ask", "label", "read")
        entry = request.path_params["entry"]
        if not _ENTRY.fullmatch(entry) or max(map(int, entry.split("-"))) > MAX_ID_PART:
            raise wrong("answers", "the ID of an entry is two numbers, such as 1717-0")
        wait = seconds(request, self._gateway.limits.max_timeout, 0.0)
        # Before the search for the answer, which may be committed meanwhile.
        is_waiting = await feed.is_waiting(entry.encode())
        answered = await self._gateway.answered(
            request, feed, [entry.encode()], wait if is_waiting else 0.0
        )
        (one,) = await feed.first_answers(answered)
        if one.payload is not None:
            return _answer(request, one)
        if is_waiting:
            return _waiting(request, [entry])
        raise Refused("answer_unknown", feed=feed.keys.feed, entry=entry)

    async def answer_to_id(self, request: Request) -> Response:
        """Respond with the answer to the example with a producer's id."""
        feed = self._gateway.feed(request, "ask", "label", "read")
        id = parameter(request, "id")
        if not id:
            raise wrong("id", "send the producer's id of an example: ?id=")
        return _answer(request, await feed.answer_to(id))

    async def status(self, request: Request) -> Response:
        """Respond with what `status --json` prints."""
        return _json(await self._gateway.feed(request, "read").status())

    async def alarms(self, request: Request) -> Response:
        """Respond with the newest alarms."""
        return _json(await self._gateway.feed(request, "read").alarms(_ALARMS))

    async def openapi(self, _request: Request) -> Response:
        """Respond with the OpenAPI document."""
        return _json(orjson.dumps(document(self._gateway.limits.max_timeout)))


def _answers(request: Request, answers: Sequence[Answered], is_list: bool) -> Response:
    """Return the response with answers; 202 with all IDs if one is missing."""
    found = [_with_entry(one) for one in answers if one.payload is not None]
    if len(found) < len(answers):
        return _waiting(request, [one.entry.decode() for one in answers])
    if is_list:
        return _json(b"[%s]" % b",".join(found))
    return _answer(request, answers[0], {"Location": _address(request, answers[0].entry.decode())})


def _answer(request: Request, one: Answered, headers: dict[str, str] | None = None) -> Response:
    status = (
        422 if request.method == "POST" and status_of(one.payload or b"") == "rejected" else 200
    )
    return _json(_with_entry(one), status, (headers or {}) | _content_location(request, one))


def _with_entry(one: Answered) -> bytes:
    """Return an answer as the worker wrote it, with the ID of its entry in front."""
    return b'{"entry":"%b",%b' % (one.of, (one.payload or b"{}")[1:])


def _content_location(request: Request, one: Answered) -> dict[str, str]:
    """Return the header that names the entry whose answer this is, if it is an earlier one."""
    return {} if one.of == one.entry else {"Content-Location": _address(request, one.of.decode())}


def _waiting(request: Request, entries: Sequence[str]) -> Response:
    headers = {"Location": _address(request, entries[0])} if len(entries) == 1 else {}
    return _json(orjson.dumps({"ids": entries}), 202, headers)


def _address(request: Request, entry: str) -> str:
    return f"/feeds/{request.path_params['feed']}/answers/{entry}"


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(body, status, all_headers, media_type="application/json")


async def _refused(_request: Request, error: Any) -> Response:
    return refusal(error)


async def _failed(request: Request, error: Any) -> Response:
    if isinstance(error, NoSuchFeed):
        return refusal(Refused("feed_missing", words=str(error)))
    log.error("a request failed", reason=str(error), **trace_of(request))
    if isinstance(error, Unavailable):
        return refusal(later("redis_unavailable", words=outward(error)))
    return refusal(Refused("feed_unusable", words=outward(error)))


async def _unknown(request: Request, error: Any) -> Response:
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return refusal(Refused("method_unknown", headers=error.headers, method=request.method))
    return refusal(Refused("address_unknown", headers=error.headers))


async def _fault(request: Request, error: Any) -> Response:
    # The text of the error may contain data of the request.
    at = traceback.extract_tb(error.__traceback__)[-1]
    found = {"reason": type(error).__name__, "at": f"{at.name}:{at.lineno}"}
    log.error("a fault of the program", **found, **trace_of(request))
    return refusal(Refused("fault"))
