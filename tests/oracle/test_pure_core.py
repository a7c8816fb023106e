"""The oracle's feeds by the pure core alone: in batches of any size, with a restore after each."""

import pytest
from oracle_feeds import feeds, recorded
from pure_replay import given_by, restarted

CUTS = {"of 29": (29,), "mixed": (1, 7, 64, 150), "of one": (1,)}


@pytest.mark.parametrize("name", sorted(feeds()))
@pytest.mark.parametrize("cuts", ["of 29", "mixed", pytest.param("of one", marks=pytest.mark.slow)])
def test_batches_and_restores_give_the_bytes_that_are_kept(name, cuts):
    settings, entries = given_by(feeds()[name])
    _, position, _ = restarted(settings.predictor, entries, settings.limits, CUTS[cuts])
    assert position.digest.hex()[:32] == recorded()["streams"][name]["chained"]
