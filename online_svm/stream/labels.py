"""Labels and their codes: declared, or discovered in order of arrival."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from online_svm.storage.state import State
from online_svm.types import Ints


def sorted_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels sorted as numbers if all are integers, else as text.

    Examples
    --------
    >>> sorted_labels(["10", "9"]), sorted_labels(["10", "9", "a"])
    (('9', '10'), ('10', '9', 'a'))
    """
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))


class LabelIndex:
    """Codes of the labels of a stream, in order of arrival (declared ones come first, sorted).

    Parameters
    ----------
    declared : sequence of str, optional
        All labels there are. Without them a label is added when it is first learned.

    Examples
    --------
    >>> index = LabelIndex()
    >>> index.codes(["b", None, "a", "b"]).tolist()
    [0, -1, 1, 0]
    >>> index.view().classes
    ('a', 'b', None)
    """

    def __init__(self, declared: Sequence[str] | None = None) -> None:
        self.declared = declared is not None
        self.labels: list[str] = list(sorted_labels(declared or ()))
        self._codes = {label: code for code, label in enumerate(self.labels)}

    def codes(self, labels: Sequence[str | None]) -> Ints:
        """Return the code of each label, -1 for None; a label met first gets the next code."""
        found = [-1 if label is None else self._codes.get(label, -2) for label in labels]
        if -2 in found:
            found = [-1 if label is None else self._code(label) for label in labels]
        return np.array(found, dtype=np.int64)

    def unknown(self, labels: Iterable[str | None]) -> set[str]:
        """Return those labels that have no code yet.

        Examples
        --------
        >>> LabelIndex(["a", "b"]).unknown(["b", "c", None, "c"])
        {'c'}
        """
        return {label for label in set(labels) if label is not None and label not in self._codes}

    def state(self) -> State:
        """Return the labels in the order of their codes."""
        return State({"labels": self.labels}, {})

    @classmethod
    def from_state(cls, state: State, declared: Sequence[str] | None = None) -> Self:
        """Return the index that `state` describes; `declared` as it was given to that one."""
        index = cls(declared)
        index.labels = list(state.header["labels"])
        index._codes = {label: code for code, label in enumerate(index.labels)}
        return index

    def view(self, count: int | None = None) -> "ClassView":
        """Return the classes as they are known now, or were when there were `count` of them."""
        return ClassView(self.labels[:count], self.declared)

    def _code(self, label: str) -> int:
        if label not in self._codes:
            self._codes[label] = len(self.labels)
            self.labels.append(label)
        return self._codes[label]


class ClassView:
    """The sorted classes that one model knows, and the slot of those it does not.

    Parameters
    ----------
    labels : sequence of str
        Labels in the order of their codes.
    declared : bool
        Whether they are all there are; otherwise a slot for unseen labels (None) comes last.

    Attributes
    ----------
    classes : tuple of (str or None)
        What a prediction's columns stand for.
    n_known : int
        Classes without the unseen slot.
    """

    def __init__(self, labels: Sequence[str], declared: bool) -> None:
        self.labels = tuple(labels)
        self.declared = declared
        known = sorted_labels(labels)
        self.classes: tuple[str | None, ...] = known if declared else (*known, None)
        self.n_known = len(known)
        rank = {label: position for position, label in enumerate(known)}
        # Of each code, then of every later one, and last, where code -1 looks, of that.
        columns = [*(rank[label] for label in labels), self.n_known, -1]
        self._columns = np.array(columns, dtype=np.int64)

    def columns(self, codes: Ints) -> Ints:
        """Return the column of each code: -1 stays, a code met later is the unseen slot."""
        columns: Ints = self._columns[np.minimum(codes, len(self.labels))]
        return columns
