"""The rolling split and the refit schedule."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidInput
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.split import is_early_refit, is_refit_due, next_refit, training_mask


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, 100, 1727])
def test_the_oldest_split_trains_on_the_first_ceil_of_the_fraction(size):
    mask = training_mask("oldest", 40, 40 + size, 0.7)
    assert mask.sum() == math.ceil(0.7 * size)
    assert mask[: mask.sum()].all()


def test_an_interleaved_example_keeps_its_part_in_every_window():
    whole = training_mask("interleaved", 0, 5000, 0.7, seed=3)
    for start, stop in [(0, 1), (17, 1017), (4000, 5000)]:
        part = training_mask("interleaved", start, stop, 0.7, seed=3)
        np.testing.assert_array_equal(part, whole[start:stop])


def test_the_interleaved_share_is_the_fraction_and_has_no_pattern():
    mask = training_mask("interleaved", 0, 100_000, 0.7).astype(float)
    assert abs(mask.mean() - 0.7) < 4 * math.sqrt(0.7 * 0.3 / 100_000)
    for lag in (1, 2, 7, 64):
        assert abs(np.corrcoef(mask[:-lag], mask[lag:])[0, 1]) < 4 / math.sqrt(100_000)


def split_mix(z):
    """The finalizer of SplitMix64 as it was published, on whole numbers of any size."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("start", [0, 7, 2**40])
def test_the_interleaved_split_is_that_of_split_mix_on_whole_numbers(seed, start):
    golden = 0x9E3779B97F4A7C15
    key = split_mix((seed + golden) % 2**64)
    bits = [split_mix((event + 1) * golden % 2**64 ^ key) for event in range(start, start + 50)]
    for share in (0.1, 0.5, 0.7):
        expected = [(z >> 11) * 2.0**-53 < share for z in bits]
        assert training_mask("interleaved", start, start + 50, share, seed).tolist() == expected


def test_another_seed_gives_another_interleaving():
    first = training_mask("interleaved", 0, 1000, 0.5, seed=0)
    assert 400 < (first ^ training_mask("interleaved", 0, 1000, 0.5, seed=1)).sum() < 600


def test_an_unknown_split_is_named():
    with pytest.raises(InvalidInput, match="'newest'"):
        training_mask("newest", 0, 10, 0.7)


@pytest.mark.parametrize("refit_every", [1, 2, 9, 10, 15, 50, 250])
@pytest.mark.parametrize("dense", [0, 1, 2, 4])
def test_next_refit_is_the_first_due_number_above(refit_every, dense):
    until = dense * refit_every
    for n in range(1200):
        later = next(k for k in range(n + 1, n + 700) if is_refit_due(k, refit_every, until))
        assert next_refit(n, refit_every, until) == later


def test_the_refits_of_a_committee_lie_close_together_at_first():
    config = ProtocolConfig(committee="default")
    due = [n for n in range(1, 1800) if is_refit_due(n, 250, config.dense_until)]
    first = [10, 14, 20, 28, 40, 56, 80, 110, 145, 180, 215, 250, 300, 350, 400, 450, 500]
    assert due == [*first, 625, 750, 875, 1000, 1250, 1500, 1750]


@pytest.mark.parametrize(
    "settings", [{}, {"refit_lag": 20}, {"refit_lag": 249}, {"refit_every": 1000}]
)
def test_a_refit_of_a_committee_takes_effect_before_the_next_but_one_begins(settings):
    config = ProtocolConfig(committee="default", **settings)
    every, until = config.distance, config.dense_until
    due = [n for n in range(1, 5000) if is_refit_due(n, every, until)]
    early = [n < config.lags_from or is_early_refit(n, every, until) for n in due]
    active = [n + (0 if at_once else config.lag) for n, at_once in zip(due, early, strict=True)]
    assert active == sorted(active)
    assert all(a < later for a, later in zip(active, due[2:], strict=False))
