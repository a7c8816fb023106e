"""The oracle's feeds by the pure core alone: in batches of any size, with a restore after each."""

import builtins
import math

import pytest
from oracle_feeds import feeds, recorded
from pure_replay import given_by, restarted

CUTS = {"mixed": (1, 7, 64, 150), "of one": (1,)}


@pytest.mark.parametrize("name", sorted(feeds()))
@pytest.mark.parametrize("cuts", ["mixed", pytest.param("of one", marks=pytest.mark.slow)])
def test_batches_and_restores_give_the_bytes_that_are_kept(name, cuts):
    settings, entries = given_by(feeds()[name])
    _, position, _, _ = restarted(settings.predictor, entries, settings.limits, CUTS[cuts])
    assert position.digest.hex()[:32] == recorded()["streams"][name]["chained"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(feeds()))
def test_a_sum_that_rounds_once_as_of_python_3_12_changes_no_byte(name, monkeypatch):
    plain = builtins.sum

    def compensated(values, start=0):
        values = [*values]
        are_floats = {*map(type, values)} in ({float}, {float, int})
        return math.fsum([start, *values]) if are_floats else plain(values, start)

    settings, entries = given_by(feeds()[name])
    monkeypatch.setattr(builtins, "sum", compensated)
    _, position, _, _ = restarted(settings.predictor, entries, settings.limits, (29,))
    assert position.digest.hex()[:32] == recorded()["streams"][name]["chained"]
