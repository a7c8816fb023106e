import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from online_svm import IsotonicMap
from online_svm.errors import InvalidSnapshot

scores = st.one_of(st.integers(-5, 5).map(float), st.integers(-500, 500).map(lambda v: v / 64))
samples = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)
@given(samples)
def test_values_are_scikit_learns_at_between_and_beyond_the_scores(sample):
    values, labels = map(np.array, zip(*sample, strict=True))
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    reference.fit(values, labels.astype(float))
    grid = np.concatenate((values, np.linspace(-12, 12, 769)))
    ours = IsotonicMap().fit(values, labels).predict(grid)
    assert ours == pytest.approx(reference.predict(grid), abs=1e-12)


def test_a_gap_as_wide_as_the_doubles_is_crossed_without_overflow():
    fitted = IsotonicMap().fit([-1.7e308, 1.7e308], [0, 1])
    assert fitted.predict([-1.7e308, 0.0, 1.7e308]).tolist() == [0.0, 0.5, 1.0]


def test_subnormal_gaps_give_the_values_of_their_ends():
    fitted = IsotonicMap().fit([0.0, 5e-324], [0, 1])
    assert fitted.predict([0.0, 5e-324]).tolist() == [0.0, 1.0]


def test_a_state_with_a_reversed_block_is_refused():
    state = IsotonicMap().fit([0.0, 1.0], [0, 1]).state()
    state["lower"], state["upper"] = state["upper"] + 1.0, state["lower"]
    with pytest.raises(InvalidSnapshot, match="ends before it begins"):
        IsotonicMap.from_state(state)
