"""Assign codes to labels, and convert between labels of any type and the texts of a stream."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from online_svm.errors import SHOWN, InvalidExample, InvalidInput
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredHeader, texts
from online_svm.types import Ints

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


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


class LabelIndex(StoredHeader):
    """Codes of the labels of a stream: sorted if all are declared, else in order of arrival.

    `declared`: all labels. Without it a label is added when it is first learned.
    """

    _stored = StateSchema(texts("_texts", stored_as="labels"))

    def __init__(self, declared: Sequence[str] | None = None) -> None:
        self.declared = declared is not None
        self.labels: list[str] = list(sorted_labels(declared or ()))
        self._codes = {label: code for code, label in enumerate(self.labels)}

    def codes(self, labels: Sequence[str | None]) -> Ints:
        """Return the code of each label, -1 for None; a new label gets the next code."""
        found = [-1 if label is None else self._codes.get(label, -2) for label in labels]
        if -2 in found:
            found = [-1 if label is None else self._code(label) for label in labels]
        return np.array(found, dtype=np.int64)

    def unknown(self, labels: Iterable[str | None]) -> set[str]:
        """Return the labels that have no code yet."""
        return {label for label in set(labels) if label is not None and label not in self._codes}

    @property
    def _texts(self) -> list[str]:
        return self.labels

    @_texts.setter
    def _texts(self, labels: list[str]) -> None:
        require(not self.declared or labels == self.labels, "labels")
        self.labels = list(labels)
        self._codes = {label: code for code, label in enumerate(labels)}

    def view(self, count: int | None = None) -> "ClassView":
        """Return the classes known now, or the first `count` of them."""
        return ClassView(self.labels[:count], self.declared)

    def _code(self, label: str) -> int:
        if label not in self._codes:
            self._codes[label] = len(self.labels)
            self.labels.append(label)
        return self._codes[label]


class ClassView:
    """The sorted classes that one model knows, and the slot for unseen labels.

    `labels`: labels in the order of their codes.
    `declared`: whether these are all labels; otherwise a last slot (None) is for unseen labels.
    `classes`: labels of the columns of a prediction.
    `n_known`: number of classes without the unseen slot.
    """

    def __init__(self, labels: Sequence[str], declared: bool) -> None:
        self.labels = tuple(labels)
        self.declared = declared
        known = sorted_labels(labels)
        self.classes: tuple[str | None, ...] = known if declared else (*known, None)
        self.n_known = len(known)
        rank = {label: position for position, label in enumerate(known)}
        # Shape (n_codes + 2,): the column of each code, the unseen slot for later codes, and last
        # the column -1 for the code -1.
        columns = [*(rank[label] for label in labels), self.n_known, -1]
        self._columns = np.array(columns, dtype=np.int64)

    def columns(self, codes: Ints) -> Ints:
        """Return the column of each code; -1 stays -1, a later code gives the unseen slot."""
        columns: Ints = self._columns[np.minimum(codes, len(self.labels))]
        return columns


def text_of(label: Any) -> str:
    """Return a label as text: integral floats without a point, booleans in lower case."""
    if isinstance(label, bool | np.bool_):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def stream_text(y: object, must_be_integer: bool) -> str:
    """Return a label as the text that a stream holds, or raise InvalidExample."""
    if isinstance(y, bool | np.bool_) or not isinstance(y, str | int | np.integer):
        raise InvalidExample("label_of_type", type=type(y).__name__)
    text = y if isinstance(y, str) else str(int(y))
    if not must_be_integer:
        return text
    if not _INTEGER.fullmatch(text.strip(" ")):
        raise InvalidExample("label_no_integer", label=text[:SHOWN])
    return str(int(text))


def refuse_missing(labels: Iterable[Any]) -> None:
    """Raise InvalidInput for the first label that is missing: None, NaN, NaT, pd.NA or masked.

    Examples
    --------
    >>> refuse_missing(["a", float("nan")])
    Traceback (most recent call last):
    online_svm.errors.InvalidInput: y: a label is nan; leave such rows out
    """
    for label in map(_plain, labels):
        if _is_missing(label):
            shown = "masked" if label is np.ma.masked else label
            raise InvalidInput(f"y: a label is {shown}; leave such rows out")


def _is_missing(label: Any) -> bool:
    try:
        return label is None or label is np.ma.masked or bool(label != label)
    except (TypeError, ArithmeticError):  # pd.NA; a signalling NaN of `decimal`
        return True


class LabelTexts:
    """The caller's labels, which are hashable, and their texts.

    Labels that compare equal are the same, as in a dict. Raises InvalidInput if two labels have the
    same text.

    Examples
    --------
    >>> texts = LabelTexts([False, True])
    >>> texts.text(np.bool_(True)), texts.label("false"), texts.text(0)
    ('true', False, 'false')
    >>> texts.text("true")
    Traceback (most recent call last):
    online_svm.errors.InvalidInput: label 'true' reads as True does; give one of them another name
    """

    def __init__(self, labels: Iterable[Any] = ()) -> None:
        self._texts: dict[Any, str] = {}
        self._labels: dict[str, Any] = {}
        self.add(labels)

    @property
    def labels(self) -> list[Any]:
        """The labels in the order in which they were added."""
        return list(self._texts)

    def text(self, label: Any) -> str:
        """Return the text of a label without adding the label.

        Raises InvalidInput if the label is missing, or another label has the same text.
        """
        refuse_missing([label])
        plain = _plain(label)
        if plain in self._texts:
            return self._texts[plain]
        text = text_of(plain)
        if text in self._labels:
            raise InvalidInput(
                f"label {plain!r} reads as {self._labels[text]!r} does; give one of them another "
                "name"
            )
        return text

    def label(self, text: str) -> Any:
        """Return the label with this text; the text itself if there is none."""
        return self._labels.get(text, text)

    def add(self, labels: Iterable[Any]) -> None:
        """Add labels.

        Raises InvalidInput as `text`; the labels before the refused one are added.
        """
        for label in labels:
            text = self.text(label)
            self._texts.setdefault(_plain(label), text)
            self._labels.setdefault(text, _plain(label))


def _plain(label: Any) -> Any:
    """Return a label of numpy or Arrow as one of Python."""
    if isinstance(label, np.generic):
        return label.item()
    return label.as_py() if hasattr(label, "as_py") else label
