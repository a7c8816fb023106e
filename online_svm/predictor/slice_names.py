"""Names of slices in what monitors find: they know the codes of values alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from online_svm.metrics.windowed.slice_values import SliceValues
from online_svm.stream.alarm import Alarm


class SliceNames:
    """Spells slices as "country=DE", with the names of the settings and the values that were sent.

    Parameters
    ----------
    names : sequence of str
        The slices of the feed.
    values : SliceValues

    Examples
    --------
    >>> values = SliceValues(1, most=1)
    >>> codes = values.codes([("DE",), ("FR",)])
    >>> spelled = SliceNames(["country"], values)
    >>> spelled.of("0=0"), spelled.of("0=1")
    ('country=DE', 'country, other values')
    """

    def __init__(self, names: Sequence[str], values: SliceValues) -> None:
        self._names, self._values = names, values

    def of(self, coded: str) -> str:
        """Return the name of a slice, given as the monitors give it."""
        number, code = map(int, coded.split("="))
        value = self._values.named(number)[code]
        name = self._names[number]
        return f"{name}, other values" if value is None else f"{name}={value}"

    def of_alarm(self, alarm: Alarm) -> Alarm:
        """Return an alarm with its slice spelled out, if it is of one."""
        if alarm.scope != "slice" or alarm.name is None:
            return alarm
        return replace(alarm, name=self.of(alarm.name))

    def of_test(self, test: dict[str, Any]) -> dict[str, Any]:
        """Return a test of a report likewise."""
        return test | {"name": self.of(test["name"])} if test["scope"] == "slice" else test
