"""How a level is shared, and several e-values made one."""

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.families import (
    MOST_OF_A_SCOPE,
    Family,
    Subject,
    e_benjamini_hochberg,
)

LEVELS = {"overall": 0.002, "class": 0.003, "slice": 0.005}


def test_all_tests_together_have_the_level_of_the_family():
    family = Family(LEVELS)
    family.add(Subject("overall", None))
    for k in range(MOST_OF_A_SCOPE):
        family.add(Subject("class", str(k)))
        family.add(Subject("slice", f"0={k}"))
    assert sum(family.levels) == pytest.approx(0.01)
    assert not family.takes(Subject("class", "one more"))
    assert family.add(Subject("class", "one more")) is None


def test_the_level_of_a_test_does_not_change_when_others_begin():
    family = Family(LEVELS)
    first = family.add(Subject("class", "a"))
    second = family.add(Subject("class", "b"))
    family.add(Subject("class", "c"))
    assert family.levels[:2] == [first, second]
    restored = Family.from_state(family.state(), LEVELS)
    assert (restored.parts, restored.levels) == (family.parts, family.levels)


@pytest.mark.parametrize("content", [b"[", b'[["class", "a"], ["class", "a"]]', b'[["dog", "a"]]'])
def test_names_that_do_not_fit_are_refused(content):
    with pytest.raises(InvalidSnapshot):
        Family.from_state({"parts": np.frombuffer(content, dtype=np.uint8)}, LEVELS)


def test_rejections_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        e = np.exp(rng.normal(1.0, 2.0, 6))
        largest = max((k for k in range(1, 7) if np.sort(e)[-k] >= 6 / (k * 0.3)), default=0)
        assert set(e_benjamini_hochberg(np.log(e), 0.3)) == set(np.argsort(e)[6 - largest :])


def test_few_of_the_rejected_slices_are_false():
    rng, shares = np.random.default_rng(1), []
    for _ in range(2000):
        # e-values of five true nulls (mean 1) and three false ones, that depend on one another.
        z = rng.normal(0.7 * rng.normal(), 0.7, 8)
        e = np.exp(2 * z - 2 * (0.49 + 0.49))
        e[5:] *= 60
        rejected = e_benjamini_hochberg(np.log(e), 0.1)
        shares.append(sum(i < 5 for i in rejected) / max(1, len(rejected)))
    assert np.mean(shares) <= 0.1
