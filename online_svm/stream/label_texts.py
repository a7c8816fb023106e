"""LabelTexts: labels of any type, and the texts that a stream has for them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from online_svm.errors import InvalidInput


def text_of(label: Any) -> str:
    """Return a label as it is sent: a whole number without a point, a boolean in small letters.

    Examples
    --------
    >>> text_of("spam"), text_of(2.0), text_of(np.int64(3)), text_of(True)
    ('spam', '2', '3', 'true')
    """
    if isinstance(label, bool | np.bool_):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


class LabelTexts:
    """Labels as a caller has them, and as the stream does. Equal labels are one, as in a dict.

    Parameters
    ----------
    labels : iterable
        Hashable.

    Raises
    ------
    InvalidInput
        If two of them would be sent as the same text.

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
        """The labels that were added, in order."""
        return list(self._texts)

    def text(self, label: Any) -> str:
        """Return the text of a label; nothing changes.

        Raises
        ------
        InvalidInput
            If it is None, or another label has that text.
        """
        plain = _plain(label)
        if plain in self._texts:
            return self._texts[plain]
        if plain is None:
            raise InvalidInput("y: a label is None; leave such rows out")
        text = text_of(plain)
        if text in self._labels:
            raise InvalidInput(
                f"label {plain!r} reads as {self._labels[text]!r} does; give one of them another "
                "name"
            )
        return text

    def label(self, text: str) -> Any:
        """Return the label that a text stands for; the text itself if none was added."""
        return self._labels.get(text, text)

    def add(self, labels: Iterable[Any]) -> None:
        """Remember labels.

        Raises
        ------
        InvalidInput
            As `text`; those before it are remembered.
        """
        for label in labels:
            text = self.text(label)
            self._texts.setdefault(_plain(label), text)
            self._labels.setdefault(text, _plain(label))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
