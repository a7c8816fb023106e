"""Which feeds names and patterns select."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import InvalidFeedName
from workers.feed.selection import Selection

LISTED = ["fraud", "returns", "sensors-1", "sensors-2", "sensors-12"]
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("given_texts", "found"),
    [
        (["sensors-*"], ["sensors-1", "sensors-12", "sensors-2"]),
        (["sensors-?"], ["sensors-1", "sensors-2"]),
        (["sensors-[!2]"], ["sensors-1"]),
        (["new", "fraud"], ["fraud", "new"]),
        (["*", "new"], ["fraud", "new", "returns", "sensors-1", "sensors-12", "sensors-2"]),
        (["fraud", "f*", "fraud"], ["fraud"]),
        (["SENSORS-*"], []),
    ],
)
def test_names_are_selected_whether_listed_or_not_and_patterns_select_listed_ones(
    given_texts, found
):
    assert Selection(given_texts).of(LISTED) == found


@given(st.lists(NAMES, max_size=5), st.lists(NAMES, max_size=8), st.sets(NAMES, max_size=4))
def test_a_process_selects_names_and_listed_matches_of_its_share_sorted_and_once(
    named, listed, others
):
    others.update(named[:1])
    selection = Selection([*named, "[A-M]*"], owns=lambda name: name not in others)
    matching = {name for name in listed if "A" <= name[0] <= "M"}
    for _ in range(2):
        found = selection.of(listed)
        assert found == sorted((matching | {*named}) - others)
        assert {name for name in {*named, *listed} if selection.selects(name)} == {*found}
        others.clear()  # the share of a process may change


@pytest.mark.parametrize("text", [
    "", "a b", "é*", "ä", "s{1,2}*", "{a}", "a/b", "a:b", "a\n", ".a", "x" * 65, "*" * 257, "s-[1",
])  # fmt: skip
def test_a_text_that_matches_no_feed_is_refused_by_name(text):
    with pytest.raises(InvalidFeedName) as refused:
        Selection([text])
    assert repr(text)[1:-1][:20] in str(refused.value)


def test_nothing_selects_nothing_and_is_refused():
    with pytest.raises(InvalidFeedName, match="a pattern such as"):
        Selection([])
