"""Write docs/http.md from the operations and problems of the gateway; --check only compares."""

import re
import sys
from pathlib import Path

from scripts.generated_page import write_or_check
from workers.gateway.openapi import OPERATIONS, PLAIN, Operation
from workers.gateway.refused import MEDIA_TYPE, PROBLEMS, WORDS

TARGET = Path(__file__).parents[1] / "docs" / "http.md"

_INTRODUCTION = """\
# HTTP reference

Made from `workers/gateway/openapi.py` and `refused.py` by `scripts/make_http_docs.py`. The same
facts, with the schemas of all bodies, are the OpenAPI 3.1 document of a gateway:
`GET /openapi.json`. [Clients](how-to/clients.md) shows how to use it.

## Operations

A token needs one of the rights. `timeout` and `warming` are parameters of the query, others are
headers.

"""

_ERRORS = f"""
## Problems

A refusal is a problem of RFC 9457 (`{MEDIA_TYPE}`) with `type`, `title`, `status`,
`detail`, `code`, and the parameters in braces below as further members. `error` repeats `detail`.
`ids` names entries that were added anyway. Programs read `code`; sentences may change. A single
example that the worker rejects is no problem but an answer with the status 422:
[`RejectedMessage`](messages.md#rejectedmessage).

| status | code | `detail` |
|---|---|---|
"""

_TRACES = """
## Trace context

With the header `traceparent` ([W3C](https://www.w3.org/TR/trace-context/)), or a field of that name
in an entry, the answer repeats it, and log lines about the request have it. If its last bit says
that it is sampled, the worker logs `answered` with it after the commit. It changes nothing that is
learned. A value of another form is ignored. Feeds of semantics 4 and 5 reject the field, so the
gateway does not send it to them.

With `pip install 'online-svm[otel]'` and `OTEL_TRACES_EXPORTER=otlp` (or `console`) a worker
exports spans of OpenTelemetry: `online_svm.batch`, and below it `read`, `decide` and `commit`. They
belong to the traces of the entries, or to a trace of their own if no entry has one. OpenTelemetry's
other variables name the address, the service and the sampler.
"""


def _row(one: Operation) -> str:
    body = "" if one.body is None else f"`{one.body.__name__}`"
    taken = ", ".join(f"`{name}`" for name in one.parameters)
    group = "" if one.group == PLAIN else "OIP: "
    cells = (f"`{one.method} {one.path}`", group + one.summary, ", ".join(one.rights), taken, body)
    return f"| {' | '.join(cells)} |\n"


def _shown(sentence: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", r"{\1}", sentence.replace(f"{{{WORDS}}}", "..."))


def render() -> str:
    """Return the page."""
    head = "| address | | rights | parameters | body |\n|---|---|---|---|---|\n"
    ordered = sorted(PROBLEMS.items(), key=lambda item: item[1].status)
    problems = [f"| {one.status} | `{code}` | {_shown(one.sentence)} |\n" for code, one in ordered]
    rows = map(_row, OPERATIONS)
    return "".join((_INTRODUCTION, head, *rows, _ERRORS, *problems, _TRACES))


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or with --check say whether it is up to date."""
    return write_or_check(TARGET, render, __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
