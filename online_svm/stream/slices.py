"""The slices of an example: text values that name groups of examples and are no features."""

from collections.abc import Mapping

from online_svm.errors import InvalidExample

SliceValue = tuple[str | None, ...]
"""Values of one example, one for each slice of the feed; None where it has none."""

MAX_SLICE = 64
"""Characters of a value, at most: reports repeat it."""


NO_SLICES = "s is sent, but the feed has no slices; set slices"


def checked_slices(sent: object, names: tuple[str, ...]) -> SliceValue | None:
    """Return the values of an example in the order of the feed's slices.

    Parameters
    ----------
    sent : mapping from str to (str or None), or None
        As an example has them; names may be absent.
    names : tuple of str
        The slices of the feed.

    Raises
    ------
    InvalidExample
        If the feed has no such slice, or a value is not text of at most 64 characters.

    Examples
    --------
    >>> checked_slices({"country": "DE"}, ("age", "country"))
    (None, 'DE')
    >>> checked_slices({"land": "DE"}, ("age", "country"))
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: s: the feed has no slice 'land'; it has age, country
    """
    if sent is None:
        return None
    if not isinstance(sent, Mapping):
        raise InvalidExample("slice", "s is not an object of text values")
    if not names:
        raise InvalidExample("unsupported", NO_SLICES)
    for name, value in sent.items():
        if name not in names:
            known = ", ".join(names)
            raise InvalidExample(
                "slice", f"s: the feed has no slice {str(name)[:40]!r}; it has {known}"
            )
        if value is not None and not isinstance(value, str):
            raise InvalidExample("slice", f"s: {name!r} is not text")
        if value is not None and len(value) > MAX_SLICE:
            raise InvalidExample("slice", f"s: {name!r} has more than {MAX_SLICE} characters")
    return tuple(sent.get(name) for name in names)
