"""Fair turns: by seconds used, whoever was idle first, nobody starves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.runner.fair_turns import FairTurns


def serve(turns, rounds, cost, goes_on=lambda _item: True):
    """Serve so many turns; return the seconds that each item got."""
    used = {}
    for _ in range(rounds):
        item = turns.next()
        if item is None:
            break
        used[item] = used.get(item, 0.0) + cost[item]
        turns.charge(item, cost[item], goes_on(item))
    return used


@given(st.lists(st.floats(0.01, 3.0), min_size=2, max_size=6))
def test_those_that_always_have_something_to_do_get_equal_seconds(costs):
    turns, cost = FairTurns(quantum=1.0), dict(enumerate(costs))
    for item in cost:
        turns.add(item)
    used = serve(turns, 3000, cost)
    most, least = max(used.values()), min(used.get(item, 0.0) for item in cost)
    assert most - least <= 2 * (1.0 + max(costs)), "one quantum and one serving apart at most"


def test_one_that_was_idle_goes_before_those_that_always_have_something_to_do():
    turns = FairTurns(quantum=1.0)
    for item in range(10):
        turns.add(item)
    serve(turns, 25, dict.fromkeys(range(10), 1.0))
    turns.add("slow")
    assert turns.next() == "slow"


def test_one_that_is_idle_again_and_again_does_not_go_first_each_time():
    turns, order = FairTurns(quantum=1.0), []
    turns.add("hot")
    for _ in range(12):
        turns.add("flickering")
        order.append(turns.next())
        turns.charge(order[-1], 1.0, has_more=order[-1] == "hot")
    assert order.count("hot") >= 5


def test_a_long_serving_is_paid_back_but_not_for_ever():
    turns = FairTurns(quantum=1.0)
    turns.add("long")
    turns.charge("long", 1_000.0, has_more=True)
    turns.add("other")
    used = serve(turns, 60, {"long": 1.0, "other": 1.0})
    assert 20 <= used["other"] - used.get("long", 0.0) <= 24


@pytest.mark.parametrize("times", [1, 3])
def test_what_was_discarded_has_no_turn_until_it_is_added_again(times):
    turns = FairTurns()
    for _ in range(times):
        turns.add("a")
        assert "a" in turns
        turns.discard("a")
        assert "a" not in turns
    assert len(turns) == 0
    assert turns.next() is None
    turns.add("a")
    assert turns.next() == "a"
