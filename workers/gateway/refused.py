"""Refused requests, as problem details (RFC 9457), and the list of all problems.

A problem has a code, a status and a sentence with parameters. The response has the members `type`
(its place in /openapi.json), `title`, `status`, `detail` (the sentence), `code`, the parameters and
`error`: the sentence again, as the Open Inference Protocol names it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workers.errors import Unavailable, WorkerError

MEDIA_TYPE = "application/problem+json"

WORDS = "words"
"""Parameter that is no member of its own: it is the rest of the sentence."""


class Problem(NamedTuple):
    """One kind of refusal: its status, and its sentence with the parameters in braces."""

    status: int
    sentence: str


PROBLEMS: dict[str, Problem] = {
    "not_json": Problem(400, "the body is not JSON: {words}"),
    "too_deep": Problem(400, "the body is nested too deeply"),
    "body_incomplete": Problem(400, "the body broke off"),
    "two_lengths": Problem(400, "send Content-Length or Transfer-Encoding, not both"),
    "key_empty": Problem(400, "Idempotency-Key: it is empty"),
    "key_twice": Problem(400, "Idempotency-Key: it is sent twice, with different values; send one"),
    "key_not_kept": Problem(400, "Idempotency-Key: feed {feed!r} remembers {window} ids, and "
        "this request has {rows} rows; begin a feed with --dedupe-window {rows} or more"),
    "token_unknown": Problem(401, "Authorization: send Bearer and a token that this gateway knows"),
    "right_missing": Problem(403, "this token has not the right to {right} feed {feed!r}"),
    "feed_unknown": Problem(404, "this gateway has no feed {feed!r}"),
    "feed_missing": Problem(404, "{words}"),
    "answer_unknown": Problem(404, "feed {feed!r} keeps no answer to {entry}"),
    "id_unknown": Problem(404, "feed {feed!r} knows no answer to this id: it remembers the last "
        "--dedupe-window ids, and those of examples that wait for a label"),
    "address_unknown": Problem(404, "this gateway has no such address; /openapi.json lists all"),
    "method_unknown": Problem(405, "this address does not take {method}; see the header Allow"),
    "body_slow": Problem(408, "the body did not come within {seconds:g} s"),
    "answer_gone": Problem(410, "feed {feed!r} does not keep its answer {seq} to this id any more"),
    "body_too_large": Problem(413, "the body is larger than {most} bytes"),
    "too_many_parts": Problem(413, "the body: send at most {most} names, arrays and objects at "
        "once"),
    "too_many_rows": Problem(413, "{field}: {found} rows; send at most {most} at once"),
    "names_too_long": Problem(413, "inputs: the names in each of {rows} rows are {found} "
        "characters; send fewer rows at once"),
    "type_unknown": Problem(415, "send Content-Type: application/json, not encoded otherwise"),
    "binary_tensors": Problem(415, "no binary tensors: send their data as JSON, in tritonclient "
        "by set_data_from_numpy(array, binary_data=False)"),
    "host_unknown": Problem(421, "Host: this is not a name of this gateway"),
    "field_invalid": Problem(422, "{field}: {words}"),
    "row_rejected": Problem(422, "row {row}: {words}"),
    "too_many_waiting": Problem(429, "{waiting} entries wait for the worker already"),
    "too_many_scores": Problem(429, "{requests} requests for scores are waiting already"),
    "headers_too_large": Problem(431, "the headers have more than {most} bytes"),
    "fault": Problem(500, "a fault of the program; its log says more"),
    "feed_unusable": Problem(500, "{words}"),
    "add_refused": Problem(500, "{failed} of {entries} entries may not have been added: {words}"),
    "redis_unavailable": Problem(503, "{words}"),
    "add_uncertain": Problem(503, "{failed} of {entries} entries may not have been added: {words}"),
    "feed_not_ready": Problem(503, "feed {feed!r}: {words}; nothing was added"),
    "key_too_early": Problem(503, "Idempotency-Key: feed {feed!r}: {words}; nothing was added"),
    "state_missing": Problem(503, "feed {feed!r}: {words}"),
    "state_stale": Problem(503, "feed {feed!r}: {behind} examples were learned since its newest "
        "state, n = {n}: more than this request allows"),
    "answers_late": Problem(504, "not all answers came in time; they will be there by these ids"),
}  # fmt: skip
"""All problems by code."""


def title(code: str) -> str:
    """Return the title of a problem."""
    return code.replace("_", " ").capitalize()


class Refused(Exception):
    """A request that is refused: the code of a problem, and the parameters of its sentence.

    The sentence names the input and how to correct it. `ids` are entries that were added anyway and
    will be answered.

    Examples
    --------
    >>> refused = Refused("answer_unknown", feed="fraud", entry="1-0")
    >>> refused.status, str(refused)
    (404, "feed 'fraud' keeps no answer to 1-0")
    """

    def __init__(
        self,
        code: str,
        *,
        ids: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> None:
        self.status, sentence = PROBLEMS[code]
        self.reason = sentence.format(**parameters)
        super().__init__(self.reason)
        self.code, self.ids, self.parameters = code, ids, parameters
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The body of the response."""
        head = {"type": f"/openapi.json#/x-problems/{self.code}", "title": title(self.code)}
        members = {name: value for name, value in self.parameters.items() if name != WORDS}
        found = head | {"status": self.status, "detail": self.reason, "code": self.code} | members
        return found | {"error": self.reason} | ({"ids": list(self.ids)} if self.ids else {})


def wrong(field: str, words: str) -> Refused:
    """Return the refusal of a field of the request."""
    return Refused("field_invalid", field=field, words=words)


def later(code: str, seconds: int = 1, **parameters: Any) -> Refused:
    """Return the refusal of a request that may be sent again after `seconds`."""
    return Refused(code, headers={"Retry-After": str(seconds)}, **parameters)


def outward(error: WorkerError) -> str:
    """Return the text of an error for clients; its own text may contain the address of Redis."""
    if isinstance(error, Unavailable):
        return "Redis does not answer"
    return "what Redis holds of this feed cannot be used; the gateway's log says more"
