"""Rows as they come, through the service: their kinds, answers and an explanation."""

import json

import numpy as np
import orjson
import pytest
from world import World

pytestmark = pytest.mark.servers("embedded")  # a form of rows is no matter of the server

QUICK = {"window": 120, "refit_every": 30, "classes": ("no", "yes")}


def raw(count, seed=0):
    """Return the rows of a table as people have it: all text, with gaps and remarks."""
    rng = np.random.default_rng(seed)
    table = []
    for i in range(count):
        y = int(rng.random() < 0.5)
        table.append(
            {
                "number": f"L-{i:05d}",
                "opened": f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}",
                "amount": f"{rng.normal(10 * y, 10):.2f}",
                "branch": f"0{rng.integers(10, 14)}",
                "country": str(
                    rng.choice(["DE", "FR", "IT"], p=[0.6, 0.3, 0.1] if y else [0.2, 0.3, 0.5])
                ),
                "member": str(rng.choice(["yes", "no", "NA"])),
                "remark": f"said {i} things" if i % 3 else "",
                "outcome": ("no", "yes")[y],
            }
        )
        for name in ("amount", "country", "opened"):
            if rng.random() < 0.05:
                table[-1][name] = ""
    return table


def answers(store):
    page = store.call("XRANGE", store.keys.out, "-", "+")
    return [orjson.loads(fields[1]) for _, fields in page]


def test_kinds_are_told_by_status(world):
    world = World(world.url, world.feed, world._run_command, **QUICK)
    with world:
        for row in raw(120):
            y, _ = row.pop("outcome"), row.pop("number")
            world.push([["x", json.dumps(row), "y", y]])
        world.answer()
        _, out, _ = world.run("status", world.feed, "--json")
        features = orjson.loads(out.splitlines()[-1])["validity"]["features"]
        assert {name: one["kind"] for name, one in features.items()} == {
            "opened": "time", "amount": "number", "branch": "category", "country": "category",
            "member": "category", "remark": "text",
        }  # fmt: skip
        assert 0.0 < features["amount"]["missing"] < 0.2
        _, told, _ = world.run("status", world.feed)
        assert "1 number, 3 categories, 1 time; set aside as text: remark" in told
        last = answers(world.store)[-1]
        assert last["guarantee"] == "approximate"
        assert last["about"] == {"case": "time"}
        assert last["imputed"] in range(6)
        code, told, _ = world.run("explain", world.feed, "120-0")
        assert code == 0
        assert "the bytes are the committed ones" in told
        given, because, *near = [line for line in told.splitlines() if "country=" in line]
        assert "because" in because
        assert len(near) == 5  # support vectors
        country = given.split("country=")[1].split()[0]
        assert {line.split("country=")[1].split()[0] for line in near} <= {country, "(another)"}
        assert any(f"country={country}" in line for line in near)
        assert all("amount=" in line for line in near)
