"""Whose turn it is in a pool, without any process."""

import pytest
from refits import BASE

from workers.errors import Stopped
from workers.refit.process import STATE, TASK, Reply
from workers.refit.schedule import PooledLearner, ProcessSlot, Schedule


def line():
    return PooledLearner(BASE)


def ask(schedule, *lines):
    for each in lines:
        schedule.submit(each, (TASK, b""))


def compute(schedule, seat):
    """Let a seat take a request and finish it; return whose it was."""
    taken, request = schedule.take(seat)
    with schedule.changed:
        schedule.move(taken, seat)
    taken.note(request.message, Reply(b"", 0.0))
    request.reply.set_result(Reply(b"", 0.0))
    schedule.finish(taken)
    return taken


@pytest.fixture
def seats():
    return [ProcessSlot(), ProcessSlot()]


@pytest.fixture
def schedule(seats):
    seats[0].is_started = True
    return Schedule(seats)


def test_a_line_with_many_requests_takes_its_turn_among_the_others(schedule, seats):
    heavy, light, lightest = line(), line(), line()
    ask(schedule, heavy, heavy, heavy, light, heavy, lightest, light)
    order = [compute(schedule, seats[0]) for _ in range(7)]
    assert order == [heavy, light, lightest, heavy, light, heavy, heavy]


def test_an_awaited_line_goes_first_but_not_twice_in_a_row(schedule, seats):
    first, second, awaited = line(), line(), line()
    ask(schedule, first, second, first, second, awaited, awaited, awaited)
    awaited.is_awaited = True
    order = [compute(schedule, seats[0]) for _ in range(7)]
    assert order == [awaited, first, awaited, second, awaited, first, second]


def test_no_line_is_computed_by_two_seats_at_a_time(schedule, seats):
    one, other = line(), line()
    ask(schedule, one, one, other)
    assert schedule.take(seats[0])[0] is one
    assert schedule.take(seats[1])[0] is other


def test_a_seat_begins_only_when_the_others_have_work(schedule, seats):
    first, second = line(), line()
    ask(schedule, first)
    assert schedule._next(seats[1]) is None
    assert compute(schedule, seats[0]) is first
    ask(schedule, first, second)
    assert schedule.take(seats[0])[0] is first
    assert schedule.take(seats[1])[0] is second


def test_a_learner_stays_where_it_is_unless_it_may_move_for_nothing(schedule, seats):
    busy, other = line(), line()
    ask(schedule, other)
    compute(schedule, seats[0])
    ask(schedule, busy, other)
    assert schedule.take(seats[0])[0] is busy
    assert schedule._next(seats[1]) is None, "its last task would be computed again"
    other.note((STATE, b""), Reply(b"state", 0.0))
    assert schedule.take(seats[1])[0] is other
    with schedule.changed:
        schedule.move(other, seats[1])
    assert seats[0].forgets == [other.forget]
    assert list(seats[1].learners) == [other]


def test_an_abandoned_line_leaves_its_seat_even_in_the_middle_of_a_request(schedule, seats):
    idle, working, waiting = line(), line(), line()
    ask(schedule, idle)
    compute(schedule, seats[0])
    ask(schedule, working, waiting)
    schedule.take(seats[0])
    for each in (idle, working, waiting):
        schedule.abandon(each)
    with schedule.changed:
        schedule.move(working, seats[0])  # its request was on its way to the process
    schedule.finish(working)
    assert seats[0].forgets == [idle.forget, working.forget]
    assert not seats[0].learners
    assert schedule.take(seats[0]) is None, "there is nothing but learners to forget"


def test_a_closed_schedule_has_no_more_work(schedule, seats):
    ask(schedule, line())
    schedule.close()
    with pytest.raises(Stopped):
        schedule.take(seats[0])


def test_learners_beyond_the_bound_are_unloaded_the_oldest_first(schedule, seats):
    first, second, third = line(), line(), line()
    ask(schedule, first, second, third)
    for each in (first, second, third):
        assert compute(schedule, seats[0]) is each
        assert schedule.to_unload(seats[0], each, 10, memory=25) is (
            first if each is third else None
        )
    ask(schedule, first)
    assert schedule._next(seats[0]) is None, "its state is being fetched"
    schedule.unload(first)
    assert seats[0].forgets == [first.forget]
    assert schedule.to_unload(seats[0], third, 20, memory=25) is second
    schedule.unload(second)
    assert schedule.to_unload(seats[0], third, 30, memory=25) is None, "one always stays"
    assert schedule.take(seats[0])[0] is first
