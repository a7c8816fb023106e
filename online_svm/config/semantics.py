"""Semantics: the version number of the rules that compute answers.

A feed and its snapshots have the number as the setting `semantics`. A new feed gets `SEMANTICS` and
keeps it for life: code whose rule has changed reads the setting. A number that is not in `COMPUTED`
is refused with an error that names the next step; `fork` starts a new feed with the same input.

======  ======================================================================================
number  change
======  ======================================================================================
1 to 3  computed before the first release, refused
4       the first release
5       `review` is an action like others (`CostMatrix`); a rejection stores the name of its
        case and parameters, not a sentence (`workers.message.encode.rejection`)
6       the experts of `ExpertEnsemble` join the primary prediction, which starts with the first
        label; its interval is that of `RecentIntervals` for two classes as well; an entry may
        have a trace context, which was an unknown field
======  ======================================================================================

Raise `SEMANTICS`, once in a release, with the first change of

- a byte of any answer, report or alarm;
- the settings that a feed is bound to: one is removed or has another meaning.

A setting may be added without a new number if it changes nothing until it is set: declare it with
default None and `exclude_if=is_unset`, and it is stored only by the feeds that set it.

Keep the previous number in `COMPUTED` if both rules can be computed. Never reuse a number.
"""

from collections.abc import Mapping
from typing import Any

from online_svm.errors import InvalidConfig, InvalidSnapshot

SEMANTICS = 6

COMPUTED = (4, 5, SEMANTICS)
"""Numbers of the feeds that this version continues, each under its own rules."""

COMPUTED_SHOWN = f"{', '.join(map(str, COMPUTED[:-1]))} and {COMPUTED[-1]}"

WITH_TRACES = 6  # first semantics of feeds whose entries may have a trace context
_UNNUMBERED = 1  # semantics of stored settings that lack the setting

Settings = Mapping[str, Any]


def is_unset(value: object) -> bool:
    """Return whether a setting is None; `exclude_if` of the settings added to existing feeds."""
    return value is None


def check(number: object) -> None:
    """Raise InvalidConfig, which names the next step, unless these semantics are computed here."""
    if type(number) is int and number in COMPUTED:
        return
    if is_given_up(number):
        raise InvalidConfig(
            f"semantics {number} is no longer computed ({COMPUTED_SHOWN} are): begin anew with its "
            "input, as online-svm fork does"
        )
    raise InvalidConfig(
        f"semantics {str(number)[:40]} is not known here ({COMPUTED_SHOWN} are): upgrade online-svm"
    )


def is_given_up(number: object) -> bool:
    """Return whether only earlier versions compute these semantics."""
    return type(number) is int and 0 < number < COMPUTED[0]


def of(stored: Mapping[str, Settings]) -> object:
    """Return the semantics in stored groups of settings, unchecked."""
    found = (part["semantics"] for part in stored.values() if "semantics" in part)
    return next(found, _UNNUMBERED)


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
