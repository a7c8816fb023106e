"""Which feeds names and patterns select."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import InvalidFeedName
from workers.feed.keys import is_feed_name
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
        (["fraud", "f*", "fraud"], ["fraud"]),
        (["SENSORS-*"], []),
    ],
)
def test_names_are_selected_whether_listed_or_not_and_patterns_select_listed_ones(
    given_texts, found
):
    assert Selection(given_texts).of(LISTED) == found


def test_a_process_answers_only_its_share_and_follows_a_change_of_it():
    mine = {"sensors-1", "new"}
    selection = Selection(["new", "sensors-*"], owns=lambda feed: feed in mine)
    assert selection.of(LISTED) == ["new", "sensors-1"]
    mine.remove("new")
    assert selection.of(LISTED) == ["sensors-1"]


@given(st.lists(NAMES, min_size=1, max_size=5), st.lists(NAMES, max_size=8), st.sets(NAMES))
def test_what_is_selected_one_by_one_is_what_is_selected_together(texts, listed, mine):
    patterns = [*texts, f"{texts[0][0]}*"]
    selection = Selection(patterns, owns=lambda feed: feed in mine or len(feed) % 2 == 0)
    names = {*texts, *listed}
    assert {name for name in names if selection.selects(name)} == set(selection.of(listed))


@pytest.mark.parametrize("text", ["", "a b", "é*", "s{1,2}*", "a/b", "x" * 65, "*" * 257, "s-[1"])
def test_a_text_that_matches_no_feed_is_refused_by_name(text):
    with pytest.raises(InvalidFeedName) as refused:
        Selection([text])
    assert text[:20] in str(refused.value)


def test_nothing_selects_nothing_and_is_refused():
    with pytest.raises(InvalidFeedName, match="a pattern such as"):
        Selection([])


@given(st.lists(NAMES, max_size=20), NAMES)
def test_a_star_selects_all_and_what_is_selected_is_sorted_without_repeats(listed, name):
    found = Selection(["*", name]).of(listed)
    assert found == sorted({*listed, name})
    assert all(is_feed_name(one.encode()) for one in found)
