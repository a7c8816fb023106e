"""Refused requests: a status code, one line with the reason, and further headers or fields."""

from collections.abc import Mapping, Sequence

from workers.errors import Unavailable, WorkerError


class Refused(Exception):
    """A request that is refused, with an HTTP status and the reason in one line.

    The reason names the input and how to correct it. `ids` are entries that were added anyway and
    will be answered.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        ids: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.ids = status, reason, ids
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, object]:
        """The body of the response."""
        return {"error": self.reason} | ({"ids": list(self.ids)} if self.ids else {})


def later(status: int, reason: str, seconds: int = 1) -> Refused:
    """Return the refusal of a request that may be sent again after `seconds`."""
    return Refused(status, reason, headers={"Retry-After": str(seconds)})


def outward(error: WorkerError) -> str:
    """Return the text of an error for clients; its own text may contain the address of Redis."""
    if isinstance(error, Unavailable):
        return "Redis does not answer"
    return "what Redis holds of this feed cannot be used; the gateway's log says more"
