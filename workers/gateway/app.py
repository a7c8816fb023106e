"""The plain routes: examples, labels, answers, status and alarms of feeds, as JSON.

A response contains the answer byte for byte as the worker wrote it.
"""

import re
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import count
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
from workers.gateway.gateway import Gateway, check_key, routes_of, trace_of
from workers.gateway.limits import refusal, seconds
from workers.gateway.openapi import PLAIN, document
from workers.gateway.refused import Refused, later, outward, wrong
from workers.gateway.rows import example, label, objects
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
        key = await self._gateway.key(request, feed)

        def convert(found: Any) -> tuple[list[Fields], bool]:
            sent = objects(found)
            if any(row.get("y") is not None or row.get("p") is not None for row in sent):
                self._gateway.feed(request, "label")  # an example with a label needs this right
            check_key(key, len(sent))
            return _each(found, lambda row, prefix: example(row, prefix, key))

        entries, is_list = await self._gateway.converted(request, convert)
        answers = await self._gateway.exchange(request, feed, entries, are_repeated=key is not None)
        return _answers(request, answers, is_list)

    async def labels(self, request: Request) -> Response:
        """Add labels of earlier examples; respond with their answers."""
        feed = self._gateway.feed(request, "label")
        entries, is_list = await self._gateway.converted(request, lambda found: _each(found, label))
        return _answers(request, await self._gateway.exchange(request, feed, entries), is_list)

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
            return _json(one.payload, headers=_content_location(request, one))
        if is_waiting:
            return _waiting(request, [entry])
        raise Refused("answer_unknown", feed=feed.keys.feed, entry=entry)

    async def status(self, request: Request) -> Response:
        """Respond with what `status --json` prints."""
        return _json(await self._gateway.feed(request, "read").status())

    async def alarms(self, request: Request) -> Response:
        """Respond with the newest alarms."""
        return _json(await self._gateway.feed(request, "read").alarms(_ALARMS))

    async def openapi(self, _request: Request) -> Response:
        """Respond with the OpenAPI document."""
        return _json(orjson.dumps(document(self._gateway.limits.max_timeout)))


def _each(
    found: Any, make: Callable[[Mapping[str, Any], str], Fields]
) -> tuple[list[Fields], bool]:
    """Return the entry of each object of a body, and whether it is a list.

    `make` gets the prefix of names in error messages, such as "[3].".
    """
    is_list = isinstance(found, list)
    prefixes = (f"[{i}]." if is_list else "" for i in count())
    return [make(row, at) for row, at in zip(objects(found), prefixes, strict=False)], is_list


def _answers(request: Request, answers: Sequence[Answered], is_list: bool) -> Response:
    """Return the response with answers; 202 with all IDs if one is missing."""
    found = [one.payload for one in answers if one.payload is not None]
    if len(found) < len(answers):
        return _waiting(request, [one.entry.decode() for one in answers])
    if is_list:
        return _json(b"[%s]" % b",".join(found))
    status = 422 if status_of(found[0]) == "rejected" else 200
    location = {"Location": _address(request, answers[0].entry.decode())}
    return _json(found[0], status, location | _content_location(request, answers[0]))


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
