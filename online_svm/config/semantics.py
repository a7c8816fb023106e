"""Semantics: the version number of the rules that compute answers.

A feed and its snapshots have the number as the setting `semantics`. This version computes
`SEMANTICS` alone. Another number is refused with an error that names the next step; `fork` starts a
new feed with the same input.

Raise `SEMANTICS`, once in a release, with the first change of

- a byte of any answer, report or alarm;
- the settings that a feed is bound to: one is added, removed, or has another meaning.

Never reuse a number.
"""

from collections.abc import Mapping
from typing import Any

from online_svm.errors import InvalidConfig, InvalidSnapshot

SEMANTICS = 8

Settings = Mapping[str, Any]


def check(number: object) -> None:
    """Raise InvalidConfig, which names the next step, unless these semantics are computed here."""
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
    """Return whether only earlier versions compute these semantics."""
    return type(number) is int and 0 < number < SEMANTICS


def of(stored: Mapping[str, Settings]) -> object:
    """Return the semantics in stored groups of settings, unchecked; None without a number."""
    return next((part["semantics"] for part in stored.values() if "semantics" in part), None)


def are_equal(stored: object, ours: Settings) -> bool:
    """Return whether the settings in a snapshot equal `ours`.

    Raises InvalidSnapshot if this version does not compute the semantics of the snapshot.
    """
    if not isinstance(stored, dict):
        return False
    try:
        check(of({"settings": stored}))
    except InvalidConfig as error:
        raise InvalidSnapshot(f"the snapshot was made by another version: {error}") from error
    return stored == ours
