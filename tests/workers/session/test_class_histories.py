"""A feed whose classes vanish and return goes on from each of its snapshots."""

import json

import pytest
from class_histories import ALONE, ROWS, Part, rows_of
from late_refits import late_refits
from world import World

HISTORIES = {
    "one class alone": ALONE,
    "classes in turn": [Part(ROWS, (k,), 0.0, "overlapping") for k in (0, 1, 0)],
    "rare, then none": [Part(ROWS, (0, 1), share, "apart") for share in (0.5, 0.02, 0.0)],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("are_late", [False, True], ids=["at once", "late"])
@pytest.mark.servers("embedded")
def test_a_feed_goes_on_from_the_snapshot_at_each_200_rows(redis_url, feed, history, are_late):
    X, labels = rows_of(history, seed=0)
    with late_refits(are_late), World(redis_url, feed, window=80) as world:
        world.entries = [
            ["x", json.dumps(x.tolist()), "y", label] for x, label in zip(X, labels, strict=True)
        ]
        for _ in range(0, len(X), ROWS):
            world.push(ROWS)
            world.answer(batch=50).snapshot()
        world.check()
