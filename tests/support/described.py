"""Holds responses of a gateway against its OpenAPI document: route, status, type and body."""

import json
import re
from functools import cache

from workers.gateway.openapi import document, fields_of

DOCUMENT = document()
PROBLEM = "application/problem+json"

# Found before a route is chosen, or because there is none.
_ANYWHERE = {"address_unknown", "method_unknown", "host_unknown", "headers_too_large"}


def operation_of(method, path):
    """Return the described operation of a request, or None."""
    for template, item in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path.partition("?")[0]):
            return item.get(method.lower())
    return None


@cache
def validator(text):
    from jsonschema import Draft202012Validator  # takes seconds to load with every extra

    return Draft202012Validator(json.loads(text) | {"components": DOCUMENT["components"]})


def check(method, path, status, kind, body):
    """Fail unless a response is one that the document describes."""
    operation, kind = operation_of(method, path), kind.partition(";")[0]
    if kind == PROBLEM:
        found = json.loads(body)
        head = {"type", "title", "status", "detail", "code", "error"}
        assert found["status"] == status
        assert head | set(fields_of(found["code"])) == found.keys() - {"ids"}, found
        assert found["detail"] == found["error"]
        described = DOCUMENT["x-problems"][found["code"]]
        assert found["type"] == f"/openapi.json#/x-problems/{found['code']}"
        assert (found["title"], status) == (described["title"], described["status"])
        if operation is None or found["code"] in _ANYWHERE:
            assert found["code"] in _ANYWHERE
            return
    assert operation is not None, (method, path, body)
    content = operation["responses"][str(status)]["content"]
    if kind != "text/plain":
        validator(json.dumps(content[kind]["schema"])).validate(json.loads(body))
    assert kind in content
