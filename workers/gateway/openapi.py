"""The operations of the gateway, and the OpenAPI document that describes them.

The routes of the server are made from `OPERATIONS`, so a route that is not described does not
exist. This module needs no starlette.
"""

from collections.abc import Mapping, Sequence
from http import HTTPMethod, HTTPStatus
from string import Formatter
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from online_svm.version import __version__
from workers.gateway import bodies
from workers.gateway.refused import MEDIA_TYPE, PROBLEMS, WORDS, title

PLAIN, INFERENCE = "plain", "Open Inference Protocol"
"""The two groups of operations."""

MAX_TIMEOUT = 60.0
"""Default of the seconds that a request may wait for answers."""

_JSON, _TEXT = "application/json", "text/plain"

_ANY = ("host_unknown", "headers_too_large", "two_lengths", "fault")
_FEED = (*_ANY, "token_unknown", "right_missing", "feed_unknown")
_READ = (*_FEED, "redis_unavailable", "feed_unusable")
_BODY = (
    *_READ, "type_unknown", "binary_tensors", "body_too_large", "body_slow", "body_incomplete",
    "too_many_parts", "not_json", "too_deep", "field_invalid", "too_many_rows",
)  # fmt: skip
_ADD = (*_BODY, "feed_not_ready", "too_many_waiting", "add_uncertain", "add_refused")
_KEY = ("key_empty", "key_twice", "key_not_kept", "key_too_early", "answer_gone")
_TENSORS = ("names_too_long", "row_rejected", "answers_late")


GET, POST = HTTPMethod.GET, HTTPMethod.POST


class Operation(NamedTuple):
    """One route: its handler is the method `name` of its group."""

    method: HTTPMethod
    path: str
    name: str
    group: str
    summary: str
    responses: Mapping[int, type[BaseModel] | None]  # None: JSON of any form
    problems: Sequence[str]  # codes
    body: type[BaseModel] | None = None
    rights: Sequence[str] = ()  # of which a token needs one
    parameters: Sequence[str] = ()  # beside those in the path


_EXAMPLES: dict[int, type[BaseModel] | None] = {
    200: bodies.Answers, 202: bodies.Waiting, 422: bodies.Rejected
}  # fmt: skip
_TAKES = ("timeout", "warming", "traceparent")
_ALL = ("ask", "label", "read")
_MODEL = "/v2/models/{feed}"

OPERATIONS = (
    Operation(
        POST, "/feeds/{feed}/examples", "examples", PLAIN,
        "Add examples; respond with their answers.",
        _EXAMPLES, (*_ADD, *_KEY), bodies.Examples, ("ask",), (*_TAKES, "Idempotency-Key"),
    ),
    Operation(
        POST, "/feeds/{feed}/labels", "labels", PLAIN,
        "Add labels of earlier examples; respond with their answers.",
        _EXAMPLES, _ADD, bodies.Labels, ("label",), _TAKES,
    ),
    Operation(
        POST, "/feeds/{feed}/scores", "scores", PLAIN,
        "Answer rows with the newest published state; nothing is recorded.",
        {200: bodies.ScoresOfRows},
        (*_BODY, "too_many_scores", "state_missing", "state_stale"),
        bodies.RowsToScore, ("ask",), ("max_stale",),
    ),
    Operation(
        GET, "/feeds/{feed}/answers/{entry}", "answer", PLAIN,
        "Return the answer to an entry; 202 if there is none yet.",
        {200: bodies.Answer, 202: bodies.Waiting},
        (*_READ, "field_invalid", "answer_unknown", "answer_gone"), None, _ALL, ("timeout",),
    ),
    Operation(
        GET, "/feeds/{feed}/answers", "answer_to_id", PLAIN,
        "Return the answer to the example with a producer's id.",
        {200: bodies.Answer}, (*_READ, "field_invalid", "id_unknown", "answer_gone"), None, _ALL,
        ("id",),
    ),
    Operation(
        GET, "/feeds/{feed}/status", "status", PLAIN, "Return what `status --json` prints.",
        {200: bodies.Status}, (*_READ, "feed_missing"), None, ("read",),
    ),
    Operation(
        GET, "/feeds/{feed}/alarms", "alarms", PLAIN, "Return the newest 100 alarms.",
        {200: bodies.AlarmList}, _READ, None, ("read",),
    ),
    Operation(
        GET, "/openapi.json", "openapi", PLAIN, "Return this document.", {200: None}, _ANY
    ),
    Operation(
        GET, "/v2", "server", INFERENCE, "Return the metadata of the server.",
        {200: bodies.Server}, _ANY,
    ),
    Operation(
        GET, "/v2/health/live", "live", INFERENCE, "Return 200 while the process runs.",
        {200: bodies.Live}, _ANY,
    ),
    Operation(
        GET, "/v2/health/ready", "ready", INFERENCE,
        "Return 200 if every feed gives probabilities.",
        {200: bodies.Ready, 503: bodies.Ready}, _ANY,
    ),
    Operation(
        GET, _MODEL, "model", INFERENCE, "Return the inputs and outputs of a feed.",
        {200: bodies.Model}, _READ, None, _ALL,
    ),
    Operation(
        GET, f"{_MODEL}/ready", "model_ready", INFERENCE,
        "Return 200 if the feed gives probabilities.",
        {200: bodies.ModelReady, 503: bodies.ModelReady}, _FEED, None, _ALL,
    ),
    Operation(
        POST, f"{_MODEL}/infer", "infer", INFERENCE, "Add rows; respond with their answers.",
        {200: bodies.InferResponse}, (*_ADD, *_KEY, *_TENSORS), bodies.InferRequest, ("ask",),
        (*_TAKES, "Idempotency-Key"),
    ),
    Operation(
        POST, f"{_MODEL}/label", "label", INFERENCE, "Add the labels of an earlier request.",
        {200: bodies.InferResponse}, (*_ADD, *_TENSORS), bodies.LabelRequest, ("label",), _TAKES,
    ),
)  # fmt: skip
"""All operations, in the order of the documents."""

_DESCRIPTION = (
    "Adds entries to feeds and waits for the answers of their workers. Every refusal is a problem "
    "(RFC 9457) with a `code`; `x-problems` lists all. A request that is no HTTP gets 400, and one "
    "connection too many 503, as plain text."
)

_PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "feed": ("path", {"type": "string"}, "Name of the feed."),
    "entry": ("path", {"type": "string"}, "ID of the entry, as a response named it."),
    "id": ("query", {"type": "string"}, "The producer's id, among those that the feed remembers."),
    "max_stale": (
        "query",
        {"type": "integer", "minimum": 0},
        "Refuse (503) if the feed has learned more examples since the state; default any number.",
    ),
    "timeout": (
        "query",
        {"type": "number", "minimum": 0, "maximum": MAX_TIMEOUT, "default": 5},
        "Seconds to wait for answers; the default is 0 for the answer to an entry.",
    ),
    "warming": (
        "query",
        {"type": "string", "enum": ["answer", "refuse"], "default": "answer"},
        "`refuse`: add nothing while the feed gives no probabilities.",
    ),
    "Idempotency-Key": (
        "header",
        {"type": "string"},
        "The id of the example; of several, `KEY/0`, `KEY/1` and so on. A repeated id gets its "
        "first answer.",
    ),
    "traceparent": (
        "header",
        {"type": "string"},
        "Trace context (W3C); the answer repeats it. Another form is ignored.",
    ),
}  # fmt: skip
"""Place, schema and meaning of each parameter."""

_HEADERS = {
    200: {
        "Location": "Address of the answer.",
        "Content-Location": "Address of an earlier one.",
    },
    202: {"Location": "Address of the answer, of a single entry."},
    401: {"WWW-Authenticate": "`Bearer`."},
    429: {"Retry-After": "Seconds."},
    503: {"Retry-After": "Seconds."},
}


def document(max_timeout: float = MAX_TIMEOUT) -> dict[str, Any]:
    """Return the OpenAPI document, version 3.1."""
    models = {bodies.ProblemDetails} | {
        model
        for operation in OPERATIONS
        for model in (operation.body, *operation.responses.values())
        if model is not None
    }
    _, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    for name, schema in schemas["$defs"].items():
        _tidy(schema, name in ("NewExample", "LabelOfExample"))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    parameters = {name: _parameter(name) for name in _PARAMETERS}
    parameters["timeout"]["schema"]["maximum"] = max_timeout
    return {
        "openapi": "3.1.0",
        "info": {"title": "online-svm", "version": __version__, "description": _DESCRIPTION},
        "tags": [{"name": PLAIN}, {"name": INFERENCE}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "parameters": parameters,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "x-problems": {
            code: {
                "status": one.status,
                "title": title(code),
                "detail": one.sentence,
                "parameters": fields_of(code),
            }
            for code, one in PROBLEMS.items()
        },
    }  # fmt: skip


def fields_of(code: str) -> list[str]:
    """Return the members that only this problem has."""
    named = [name for _, name, _, _ in Formatter().parse(PROBLEMS[code].sentence) if name]
    return [name for name in named if name != WORDS] + ["rejection"] * (code == "row_rejected")


def _tidy(schema: dict[str, Any], is_strict: bool) -> None:
    """Keep the first paragraph of a description; let responses have further members.

    Without a default of null, generated clients know that a member may be absent.
    """
    for member in schema.get("properties", {}).values():
        if member.get("default", "") is None:
            del member["default"]
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split("\n\n")[0].split())
    if not is_strict:
        schema.pop("additionalProperties", None)


def _described(operation: Operation) -> dict[str, Any]:
    in_path = [name for _, name, _, _ in Formatter().parse(operation.path) if name]
    parameters = [*in_path, *operation.parameters]
    found: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": operation.summary,
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in parameters],
        "responses": _responses(operation),
    }
    if operation.rights:
        found["description"] = f"Needs the right {' or '.join(operation.rights)}."
        found["security"] = [{"token": []}, {}]
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": _content(_JSON, operation.body)}
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    codes: dict[int, list[str]] = {400: [], 503: []}
    for code in operation.problems:
        codes.setdefault(PROBLEMS[code].status, []).append(code)
    found = {}
    for status in sorted({*operation.responses, *codes}):
        content: dict[str, Any] = {}
        if status in operation.responses:
            content |= _content(_JSON, operation.responses[status])
        if codes.get(status):
            content |= {MEDIA_TYPE: {"schema": _problem(codes[status])}}
        if status in (400, 503):
            content |= {_TEXT: {"schema": {"type": "string"}}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
        if status in _HEADERS and (status > 202 or operation.group == PLAIN):
            found[str(status)]["headers"] = {
                name: {"description": text, "schema": {"type": "string"}}
                for name, text in _HEADERS[status].items()
            }
    return found


def _content(kind: str, model: type[BaseModel] | None) -> dict[str, Any]:
    schema = {} if model is None else {"$ref": f"#/components/schemas/{model.__name__}"}
    return {kind: {"schema": schema}}


def _problem(codes: Sequence[str]) -> dict[str, Any]:
    base = {"$ref": "#/components/schemas/ProblemDetails"}
    return {"allOf": [base, {"properties": {"code": {"enum": list(codes)}}}]}


def _parameter(name: str) -> dict[str, Any]:
    place, schema, text = _PARAMETERS[name]
    required = {"required": True} if place == "path" or name == "id" else {}
    return {"name": name, "in": place, **required, "description": text, "schema": dict(schema)}
