"""Write docs/http.md from the operations and problems of the gateway; --check only compares."""

import sys
from functools import partial
from pathlib import Path
from string import Formatter

from scripts.generated_page import write_or_check
from workers.gateway.openapi import OPERATIONS, Operation
from workers.gateway.refused import MEDIA_TYPE, PROBLEMS, WORDS

TARGET = Path(__file__).parents[1] / "docs" / "http.md"

_INTRODUCTION = """\
# HTTP reference

Made from `workers/gateway/openapi.py` and `refused.py` by `scripts/make_http_docs.py`.
`GET /openapi.json` has the schemas of all bodies and the sentence of each problem, too, as OpenAPI
3.1. [Clients](how-to/clients.md) shows how to use it.

## Operations

A token needs one of the rights in parentheses. `id`, `max_stale`, `timeout` and `warming` are
parameters of the query, others headers. `/v2` follows the Open Inference Protocol.

"""

_ERRORS = f"""
## Problems

A refusal is a problem of RFC 9457 (`{MEDIA_TYPE}`): `type`, `title`, `status`, `detail` (repeated
as `error`), `code`, and the members in parentheses. `ids` names entries that were added anyway.
`detail`, the sentence for people, may change. A rejected example is an answer with the status 422,
[`RejectedMessage`](messages.md#rejectedmessage).

"""

_TRACES = """
## Trace context

The answer repeats a `traceparent` ([W3C](https://www.w3.org/TR/trace-context/)) in the header of a
request or the field of an entry. If it is marked as sampled, the worker logs `answered` with it
after the commit. Other values are ignored.

With `pip install 'online-svm[otel]'` and `OTEL_TRACES_EXPORTER=otlp` (or `console`) a worker
exports the spans `online_svm.batch`, and in it `read`, `decide` and `commit`, which belong to the
traces of the entries. OpenTelemetry's variables name address, service and sampler.
"""


def _operation(one: Operation) -> str:
    rights = f" ({', '.join(one.rights)})" if one.rights else ""
    body = "" if one.body is None else f" Body: `{one.body.__name__}`."
    taken = ", ".join(f"`{name}`" for name in one.parameters)
    return f"- `{one.method} {one.path}`{rights}: {one.summary}{body}{taken and f' {taken}.'}\n"


def _problem(code: str, sentence: str) -> str:
    parameters = dict.fromkeys(part[1] for part in Formatter().parse(sentence) if part[1])
    members = ", ".join(name for name in parameters if name != WORDS)
    return f"`{code}`" + (f" ({members})" if members else "")


def render() -> str:
    """Return the page."""
    by_status: dict[int, list[str]] = {}
    for code, one in PROBLEMS.items():
        by_status.setdefault(one.status, []).append(_problem(code, one.sentence))
    problems = (f"- {status}: {', '.join(codes)}\n" for status, codes in sorted(by_status.items()))
    return "".join((_INTRODUCTION, *map(_operation, OPERATIONS), _ERRORS, *problems, _TRACES))


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
