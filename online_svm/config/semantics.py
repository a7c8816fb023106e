"""The number of the rules by which answers are computed.

A feed, and a snapshot, carry the number that they were begun with. This version computes one. What
has another is refused in one line that says how to go on; `fork` begins a new feed with its input.

Raise `SEMANTICS`, once in a release, with the first change of

- a byte of any answer, report or alarm;
- the settings that a feed is bound to: one is added, is removed, or has another meaning.

A number is never used again. 1 to 3 were computed before the first release.
"""

from collections.abc import Mapping
from typing import Any

from online_svm.errors import InvalidConfig, InvalidSnapshot

SEMANTICS = 4

_UNNUMBERED = 1
"""Of what was stored before there was a number."""

Settings = Mapping[str, Any]


def check(number: object) -> None:
    """Refuse a number of semantics that this version does not compute.

    Raises
    ------
    InvalidConfig
        If it is another; the message says what to do.

    Examples
    --------
    >>> check(4)
    >>> check(2)
    Traceback (most recent call last):
    online_svm.errors.InvalidConfig: semantics 2 is no longer computed (4 is): begin anew with its \
input, as online-svm fork does
    >>> check(9)
    Traceback (most recent call last):
    online_svm.errors.InvalidConfig: semantics 9 is not known here (4 is): upgrade online-svm
    """
    if type(number) is int and number == SEMANTICS:
        return
    if is_earlier(number):
        raise InvalidConfig(
            f"semantics {number} is no longer computed ({SEMANTICS} is): begin anew with its "
            "input, as online-svm fork does"
        )
    raise InvalidConfig(
        f"semantics {str(number)[:40]} is not known here ({SEMANTICS} is): upgrade online-svm"
    )


def is_earlier(number: object) -> bool:
    """Return whether a number is that of an earlier version.

    Examples
    --------
    >>> is_earlier(2), is_earlier(4), is_earlier(True)
    (True, False, False)
    """
    return type(number) is int and 0 < number < SEMANTICS


def of(stored: Mapping[str, Settings]) -> object:
    """Return the number that stored groups of settings carry, whether it is known or not.

    Examples
    --------
    >>> of({"predictor": {"semantics": 4}, "limits": {}}), of({"predictor": {}, "limits": {}})
    (4, 1)
    """
    found = (part["semantics"] for part in stored.values() if "semantics" in part)
    return next(found, _UNNUMBERED)


def are_equal(stored: object, ours: Settings) -> bool:
    """Return whether the settings in a snapshot are `ours`.

    Raises
    ------
    InvalidSnapshot
        If this version does not compute their semantics.

    Examples
    --------
    >>> are_equal({"semantics": 4, "window": 60}, {"semantics": 4, "window": 50})
    False
    """
    if not isinstance(stored, dict):
        return False
    try:
        check(of({"settings": stored}))
    except InvalidConfig as error:
        raise InvalidSnapshot(f"the snapshot was made by another version: {error}") from error
    return stored == ours
