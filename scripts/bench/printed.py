"""The figures of a benchmark, read back from what its command printed, in this version or another.

Versions differ: some have no `--json` for every benchmark. Whatever they printed is read here.
"""

import re
from collections.abc import Iterator
from typing import Any

import orjson

PEER = "peer: "
"""Stands before the name of a figure that is a peer's."""

Speeds = dict[str, float]
"""By name, what is the greater the faster: a rate, or one divided by a time."""

_TIMES = re.compile(r"(?P<name>.+?) +(?P<ours>[\d.]+) ms +(?P<peer>[\d.]+) ms +[\d.]+ x")
_RATES = re.compile(r"(?P<name>.+?) +(?P<ours>[\d,]+)/s +(?P<peer>[\d,]+)/s +[\d.]+")
_WHOLE = re.compile(r"(?P<name>[^:]+): (?P<whole>[\d.]+) microseconds an example")
_PART = re.compile(r"  (?P<part>.+?) +(?P<value>[\d.]+) +[\d.]+%")
_PROCESSOR = re.compile(r"  processor time, (?P<process>.+?) +(?P<value>[\d.]+)$")


def speeds(text: str) -> Speeds:
    """Return the figures that `bench worker`, `profile` or `solver` printed, as JSON or as lines.

    Examples
    --------
    >>> speeds('{"name": "engine / null worker", "ours": 30.0, "peer": 60.0, "unit": "/s"}')
    {'engine': 30.0, 'peer: null worker': 60.0}
    >>> speeds("window 1000, one in, one out       0.200 ms      20.00 ms   100.0 x  9 pair steps")
    {'window 1000, one in, one out': 5000.0, 'peer: window 1000, one in, one out': 50.0}
    """
    found: Speeds = {}
    for result in _results(text.splitlines()):
        for name, speed in _of_result(result):
            if 0.0 < speed < float("inf"):
                found.setdefault(name, speed)  # one figure stands beside several peers
    return found


def _results(lines: list[str]) -> Iterator[dict[str, Any]]:
    """Yield each result as its JSON has it."""
    profile: dict[str, Any] = {}
    for line in lines:
        if line.startswith("{"):
            yield orjson.loads(line)
        elif found := _TIMES.match(line):
            ours, peer = (float(found[side]) / 1e3 for side in ("ours", "peer"))
            yield {"name": found["name"], "ours": ours, "peer": peer, "unit": "s"}
        elif found := _RATES.match(line):
            ours, peer = (float(found[side].replace(",", "")) for side in ("ours", "peer"))
            yield {"name": found["name"], "ours": ours, "peer": peer, "unit": "/s"}
        elif found := _WHOLE.match(line):
            profile = {"name": found["name"], "whole": float(found["whole"])}
            yield profile
        elif found := _PART.match(line):
            yield {"name": profile["name"], "parts": {found["part"]: float(found["value"])}}
        elif found := _PROCESSOR.match(line):
            yield {"name": profile["name"], "processor": {found["process"]: float(found["value"])}}


def _of_result(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    name = result["name"]
    if "ours" in result:
        ours, _, peer = name.partition(" / ")
        yield ours, _speed(result["ours"], result["unit"])
        yield PEER + (peer or ours), _speed(result["peer"], result["unit"])
    if "whole" in result:
        yield f"{name}: whole", _speed(result["whole"])
    for part, value in result.get("parts", {}).items():
        yield f"{name}: {part}", _speed(value)
    for process, value in result.get("processor", {}).items():
        yield f"{name}: processor time, {process}", _speed(value)


def _speed(value: float, unit: str = "s") -> float:
    if unit == "/s":
        return value
    return 1.0 / value if value else float("inf")
