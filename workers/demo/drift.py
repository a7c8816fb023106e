"""A drift made on purpose: a sensor that changes its sign while the feed runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from workers.push.rows import Features, Row


@dataclass(frozen=True, slots=True)
class Drift:
    """What goes wrong, and when.

    Attributes
    ----------
    at : int
        Rows that are still right.
    feature : str
        Of the rows after them it has the wrong sign.
    """

    at: int
    feature: str

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"feature {self.feature} changes its sign after {self.at:,} examples"

    def applied_to(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows with the fault in those after the first `at`.

        Examples
        --------
        >>> rows = [Row({"a": 1.0, "b": 2.0}), Row({"a": 3.0, "b": 4.0})]
        >>> [row.x for row in Drift(1, "b").applied_to(rows)]
        [{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': -4.0}]
        """
        return [
            replace(row, x=self._with_wrong_sign(row.x)) if i >= self.at else row
            for i, row in enumerate(rows)
        ]

    def _with_wrong_sign(self, x: Features) -> Features:
        assert isinstance(x, Mapping), "the data sets of the demonstration name their features"
        return {name: -float(value) if name == self.feature else value for name, value in x.items()}
