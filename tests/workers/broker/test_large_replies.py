"""How many entries a batch has, by their bytes."""

from hypothesis import given
from hypothesis import strategies as st

from workers.broker.large_replies import BatchSize

sizes = st.lists(st.integers(1, 300), min_size=1, max_size=64)


def entries(lengths):
    return [(b"%d-0" % (i + 1), [b"x", b"1" * (n - 1)]) for i, n in enumerate(lengths)]


@given(sizes, st.integers(1, 2000))
def test_a_batch_is_the_longest_beginning_within_the_bytes_but_never_empty(lengths, limit):
    count = BatchSize(64, limit).first_of(entries(lengths))
    assert sum(lengths[:count]) <= limit or count == 1
    assert count == len(lengths) or sum(lengths[: count + 1]) > limit


@given(st.lists(sizes, max_size=20), st.integers(1, 2000))
def test_the_number_that_is_asked_for_stays_within_its_bounds(reads, limit):
    size = BatchSize(64, limit)
    for lengths in reads:
        size.first_of(entries(lengths[: size.count]))
        assert 1 <= size.count <= 64


def test_large_entries_lower_the_number_and_small_ones_raise_it_again():
    size = BatchSize(64, 1000)
    while size.count > 3:
        size.first_of(entries([300] * size.count))
    assert size.count == 2
    for _ in range(10):
        size.first_of(entries([2] * size.count))
    assert size.count == 64
