"""The clock of a feed follows its examples; times far ahead do not move it at once."""

import numpy as np
import pytest

from online_svm.predictor.feed_clock import DAY, Dated, FeedClock

HOUR = 3_600_000
NOW = 1_750_000_000_000
MONTH = 30 * DAY
YEAR_2100 = 4_102_444_800_000


def played(times, ids=None, horizon=HOUR):
    """Return the clock after each time."""
    clock, found = FeedClock(horizon), []
    for i, time in enumerate(times):
        clock.place(Dated(i, time, str(i) if ids is None else ids[i]))
        clock = FeedClock(horizon).restore(clock.state())
        found.append(clock.now)
    return found


def minutes(count, begin=NOW):
    return [begin + 60_000 * i for i in range(count)]


@pytest.mark.parametrize("place", range(12))
@pytest.mark.parametrize("wrong", [YEAR_2100, NOW + 2 * DAY, 1000 * NOW])
def test_one_time_far_ahead_does_not_move_the_clock(place, wrong):
    times = minutes(12)
    usual = played(times)
    times.insert(place, wrong)
    after = played(times)
    assert after[place + 1 :] == usual[place:]
    assert after[:place] == usual[:place]


@pytest.mark.parametrize("ahead", [DAY, DAY + 100 * 60_000, MONTH])
def test_a_near_time_moves_the_clock_and_a_sleep_ends_with_the_third_later_one(ahead):
    times = minutes(5)
    later = minutes(5, times[-1] + ahead)
    is_near = ahead <= DAY
    expected = later if is_near else [times[-1]] * 3 + later[3:]
    assert played(times + later) == times + expected


def test_a_hundred_of_the_largest_steps_are_near():
    times = [NOW, NOW + DAY, NOW + 101 * DAY, NOW + 102 * DAY + 9_900 * DAY]
    assert played(times) == times
    assert played([*times[:2], NOW + 101 * DAY + 1])[-1] == NOW + DAY


def test_a_horizon_longer_than_a_day_is_near():
    assert played([NOW, NOW + MONTH], horizon=MONTH) == [NOW, NOW + MONTH]
    assert played([NOW, NOW + MONTH + 1], horizon=MONTH) == [NOW, NOW]


def test_an_example_that_is_sent_again_confirms_nothing():
    times = [*minutes(5), *minutes(8, NOW + MONTH)]
    ids = [*"abcde", *"xxxxyzxw"]
    now = played(times, ids)
    assert now[:12] == [*times[:5], *[times[4]] * 7]
    assert now[12] == times[12]


def test_examples_of_the_usual_time_between_them_keep_the_clock():
    good, wrong = minutes(60), minutes(60, YEAR_2100)
    mixed = [time for pair in zip(good, wrong, strict=True) for time in pair]
    assert played(mixed)[::2] == good


def test_microseconds_among_milliseconds_do_not_move_the_clock():
    times = minutes(200)
    chosen = np.random.default_rng(3).random(200) < 0.2
    pairs = list(zip(times, chosen, strict=True))
    after = played([1000 * time if is_wrong else time for time, is_wrong in pairs])
    good = np.flatnonzero(~chosen)
    assert [after[i] for i in good] == [times[i] for i in good]


def test_the_clock_does_not_go_back_by_a_day():
    times = [*minutes(10), *minutes(10, NOW - DAY)]
    assert played(times) == times[:10] + [times[9]] * 10


def test_a_feed_of_rare_examples_goes_on():
    times = [NOW + 3 * DAY * i for i in range(8)]
    assert played(times) == [NOW] * 4 + times[4:]


def test_a_wrong_time_after_a_sleep_does_not_take_the_clock_along():
    times = minutes(5)
    later = minutes(6, NOW + MONTH)
    assert played([*times, *later[:3], YEAR_2100, *later[3:]])[-1] == later[-1]


DATED = [1, NOW, "a"]


@pytest.mark.parametrize(
    "run",
    [None, {}, [DATED] * 4, [1], [["1", NOW, None]], [[1, 2.0, None]], [DATED[:2]], [[1, NOW, 3]]],
)
def test_stored_examples_that_are_none_are_refused(run):
    state = FeedClock(HOUR).state()
    FeedClock(HOUR).restore(state | {"run": [DATED] * 3, "first": [DATED]})
    for name in ("run", "first"):
        with pytest.raises(ValueError, match=r"clock|FeedClock"):
            FeedClock(HOUR).restore(state | {name: run})


@pytest.mark.parametrize(("earlier", "moves"), [(HOUR, True), (HOUR + 1, False)])
def test_a_run_ahead_begins_again_with_a_time_more_than_a_horizon_earlier(earlier, moves):
    ahead = NOW + MONTH
    now = played([*minutes(5), ahead, ahead - earlier, ahead, ahead])[-1]
    assert now == (ahead if moves else minutes(5)[-1])
