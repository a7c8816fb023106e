"""One line of a benchmark: ours beside a peer's, measured in the same run."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison; a ratio above 1 is in our favour.

    Attributes
    ----------
    name : str
        The task.
    ours, peer : float
        Seconds of one task, or tasks a second.
    note : str
        What else to say of it.
    unit : {"s", "/s"}
        Seconds, where less is better, or a rate, where more is.

    Examples
    --------
    >>> Row("refit", ours=0.5, peer=2.0).ratio
    4.0
    >>> Row("worker / null worker", ours=30.0, peer=60.0, unit="/s").ratio
    0.5
    """

    name: str
    ours: float
    peer: float
    note: str = ""
    unit: Literal["s", "/s"] = "s"

    @property
    def ratio(self) -> float:
        """How many times better than the peer."""
        return self.peer / self.ours if self.unit == "s" else self.ours / self.peer

    def __str__(self) -> str:
        if self.unit == "/s":
            rates = f"{self.ours:>10,.0f}/s {self.peer:>10,.0f}/s {self.ratio:>8.2f}"
            return f"{self.name:<58}{rates}"
        times = f"{1e3 * self.ours:10.3f} ms {1e3 * self.peer:10.2f} ms {self.ratio:7.1f} x"
        return f"{self.name:<44}{times}  {self.note}"
