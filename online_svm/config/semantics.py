"""Semantics: the version number of the rules that compute answers.

A feed and a snapshot carry the number they were created with, as the setting `semantics`. New feeds
get `SEMANTICS`. A feed with an earlier number in `COMPUTED` keeps it: the few places that differ
read the setting. Any other number is refused with a one-line error that names the way on; `fork`
starts a new feed with its input.

======  ======================================================================================
number  change
======  ======================================================================================
1 to 3  computed before the first release, refused
4       the first release
5       `review` is an action like others (`CostMatrix`); a rejection stores the name of its
        case and parameters, not a sentence (`workers.message.encode.rejection`)
6       the experts of `ExpertEnsemble` join the primary prediction, which starts with the first
        label; its interval is that of `RecentIntervals` for two classes as well
======  ======================================================================================

Raise `SEMANTICS`, once in a release, with the first change of

- a byte of any answer, report or alarm;
- the settings that a feed is bound to: one is added, is removed, or has another meaning.

Keep the previous number in `COMPUTED` if both rules can be computed. Never reuse a number.
"""

from collections.abc import Mapping
from typing import Any

from online_svm.errors import InvalidConfig, InvalidSnapshot

SEMANTICS = 6

COMPUTED = (4, 5, SEMANTICS)
"""Numbers of the feeds that this version continues, each under its own rules."""

COMPUTED_SHOWN = " and ".join(map(str, COMPUTED))

_UNNUMBERED = 1
"""Number of settings that were stored without one."""

Settings = Mapping[str, Any]


def check(number: object) -> None:
    """Raise InvalidConfig, which names the way on, for a number that is not computed here."""
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
    """Return whether only earlier versions compute a number."""
    return type(number) is int and 0 < number < COMPUTED[0]


def of(stored: Mapping[str, Settings]) -> object:
    """Return the number in stored groups of settings, known or not."""
    found = (part["semantics"] for part in stored.values() if "semantics" in part)
    return next(found, _UNNUMBERED)


def are_equal(stored: object, ours: Settings) -> bool:
    """Return whether the settings in a snapshot are `ours`.

    Raises InvalidSnapshot if this version does not compute their semantics.
    """
    if not isinstance(stored, dict):
        return False
    try:
        check(of({"settings": stored}))
    except InvalidConfig as error:
        raise InvalidSnapshot(f"the snapshot was made by another version: {error}") from error
    return stored == ours
