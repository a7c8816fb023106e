import pytest

from online_svm.metrics.windowed.slice_values import SliceValues


def test_a_million_values_are_one_group_beside_the_first_few():
    values = SliceValues(1, most=2)
    codes = values.codes([(f"v{i}",) for i in range(100_000)])
    assert codes[:4].ravel().tolist() == [0, 1, 2, 2]
    assert set(codes[2:].ravel().tolist()) == {2}
    assert values.state() == [["v0", "v1"]]


def test_where_a_batch_ends_changes_no_code():
    sent = [("a", "x"), None, ("b", None), ("a", "y"), (None, "z")]
    whole, single = SliceValues(2, most=1), SliceValues(2, most=1)
    expected = whole.codes(sent).tolist()
    assert [single.codes([one]).tolist()[0] for one in sent] == expected
    assert single.state() == whole.state()


def test_stored_values_keep_their_codes():
    values = SliceValues(1, most=3)
    values.codes([("b",), ("a",)])
    again = SliceValues.from_state(values.state(), 1, most=3)
    assert again.codes([("a",), ("c",), ("b",), ("d",)]).ravel().tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize(
    "stored", [None, [], [["a"], ["b"]], ["a"], [[1]], [["a", "a"]], [["a", "b", "c"]], [{"a": 0}]]
)
def test_damaged_values_are_refused(stored):
    with pytest.raises(ValueError, match="slices"):
        SliceValues.from_state(stored, 1, most=2)
