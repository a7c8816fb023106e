"""Refused requests: a status code, one line with the reason, and further headers or fields."""

from collections.abc import Mapping, Sequence

from workers.errors import Unavailable, WorkerError


class Refused(Exception):
    """A request that gets no answer: the status of HTTP, and the reason in one line.

    The reason names the input and the way to correct it. `ids` are entries that were added
    nevertheless: their answers come.
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
    """Return the refusal of a request that may be sent again after so many seconds."""
    return Refused(status, reason, headers={"Retry-After": str(seconds)})


def outward(error: WorkerError) -> str:
    """Return the text of an error for clients, since its own text may name the address of Redis."""
    if isinstance(error, Unavailable):
        return "Redis does not answer"
    return "what Redis holds of this feed cannot be used; the gateway's log says more"
