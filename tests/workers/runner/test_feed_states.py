"""The states of a feed: every pair of state and event, and that the loop keeps to the table."""

import pytest
from many_feeds import alone, contents, fill, running, settings, wait_for
from world import push, rows

from workers.errors import ConfigurationChanged
from workers.runner import feed_task
from workers.runner.feed_states import AT_WORK, TRANSITIONS, TaskEvent, TaskState
from workers.runner.feed_task import FeedTask
from workers.runner.loop import FeedLoop
from workers.session.session import Session

STATES, EVENTS = list(TaskState), list(TaskEvent)

EVERY_PAIR = """
         LEASED BEGUN    MUST_RECOVER HAS_WORK IS_SPENT NEEDS_REFIT IS_BLOCKED SILENCE FAILED STOPPED RETRIED CLOSED
LEASE    HELD   -        -            -        -        -           -          -       PARKED -       -       CLOSED
HELD     HELD   STARTING -            -        -        -           -          -       PARKED -       -       CLOSED
STARTING -      -        STARTING     READY    IDLE     REFIT       BLOCKED    PARKED  PARKED STOPPED -       CLOSED
READY    -      -        STARTING     READY    IDLE     REFIT       BLOCKED    SILENT  PARKED STOPPED -       CLOSED
IDLE     -      -        STARTING     READY    IDLE     REFIT       BLOCKED    SILENT  PARKED STOPPED -       CLOSED
REFIT    -      -        STARTING     READY    IDLE     REFIT       BLOCKED    SILENT  PARKED STOPPED -       CLOSED
BLOCKED  -      -        STARTING     READY    IDLE     REFIT       BLOCKED    SILENT  PARKED STOPPED -       CLOSED
SILENT   -      -        STARTING     READY    IDLE     REFIT       BLOCKED    SILENT  PARKED STOPPED -       CLOSED
PARKED   -      -        -            -        -        -           -          -       -      -       LEASE   CLOSED
STOPPED  -      -        STOPPED      STOPPED  STOPPED  STOPPED     STOPPED    STOPPED PARKED STOPPED -       CLOSED
CLOSED   -      -        -            -        -        -           -          -       -      -       -       -
"""  # noqa: E501 - a table that is read across


def pairs():
    """Return every pair of state and event, with the state that the drawn table names."""
    header, *lines = EVERY_PAIR.strip().splitlines()
    events = header.split()
    assert events == [event.name for event in EVENTS]
    table = {line.split()[0]: dict(zip(events, line.split()[1:], strict=True)) for line in lines}
    assert list(table) == [state.name for state in STATES]
    return [(s, e, table[s.name][e.name]) for s in STATES for e in EVENTS]


@pytest.mark.parametrize(
    ("state", "event", "expected"), pairs(), ids=lambda one: getattr(one, "name", str(one))
)
def test_each_pair_of_state_and_event_leads_to_one_state(state, event, expected):
    found = TRANSITIONS[state].get(event)
    assert (found.name if found else "-") == expected


def reachable(start, without=()):
    found, left = {start}, [start]
    while left:
        new = set(TRANSITIONS[left.pop()].values()) - found - {*without}
        found |= new
        left += new
    return found


def test_every_feed_can_be_answered_again_unless_it_is_closed():
    assert reachable(TaskState.LEASE) == set(STATES)
    assert {state for state in STATES if AT_WORK - reachable(state)} == {TaskState.CLOSED}


def test_a_predictor_ahead_of_the_commits_answers_nothing_more():
    """Only `PARKED`, which closes the session, leads from `STOPPED` to work."""
    assert reachable(TaskState.STOPPED, {TaskState.PARKED}) == {TaskState.STOPPED, TaskState.CLOSED}


class Watched:
    """The moves of all feeds, and after each turn whether the groups of the loop are right."""

    def __init__(self, monkeypatch):
        self.moves, self.wrong, self.turns = set(), [], 0
        move, run_turn = FeedTask._move, FeedLoop.run_turn

        def watched_move(task, event):
            before = task.state
            move(task, event)
            self.moves.add((before, event, task.state))

        def watched_turn(loop, max_wait):
            run_turn(loop, max_wait)
            self.turns += 1
            self.check(loop)

        monkeypatch.setattr(FeedTask, "_move", watched_move)
        monkeypatch.setattr(FeedLoop, "run_turn", watched_turn)

    def check(self, loop):
        groups = {state: set(group) for state, group in loop._groups.items()}
        by_state = {state: set() for state in STATES}
        for feed, task in loop.feeds.items():
            by_state[task.state].add(feed)
        ready = {feed for feed in loop.feeds if feed in loop._turns}
        sessions = {feed for feed, task in loop.feeds.items() if task.session is not None}
        without = by_state[TaskState.LEASE] | by_state[TaskState.HELD] | by_state[TaskState.PARKED]
        if groups != by_state or ready != by_state[TaskState.READY] or sessions & without:
            self.wrong.append((groups, by_state, ready, sessions))


def failing_once(monkeypatch, method, feed, error):
    """Let a method of a feed's session raise an error once; return the list that tells of it."""
    whole, raised = getattr(Session, method), []

    def fail_once(session, *given):
        if session._store.keys.feed == feed and not raised:
            raised.append(error)
            raise error
        return whole(session, *given)

    monkeypatch.setattr(Session, method, fail_once)
    return raised


def test_each_feed_is_in_the_one_group_of_its_state(feeds, redis_url, monkeypatch):
    monkeypatch.setattr(feed_task, "FIRST_RETRY", 0.05)
    watched, stores = Watched(monkeypatch), feeds("good", "fails", "moves", "unlisted")
    good, fails, moves, wrong = stores
    wrong.call("RPUSH", wrong.keys.lease, "no string")
    entries = rows(120, 0)
    fill(entries[:40], *stores)
    names = [store.keys.feed for store in stores]
    with running(names, redis_url, settings=settings(lease=2.0)):
        wait_for(40, good, fails, moves)
        raised = failing_once(monkeypatch, "answer", names[1], ConfigurationChanged("test"))
        moves.fence("another", None)  # as one that took the feed after a pause of this process
        fill(entries[40:80], good, fails, moves, first=41)
        wait_for(80, good, fails, moves)
        wrong.call("DEL", wrong.keys.lease)
        fill(entries[80:], good, fails, moves, first=81)
        push(wrong, entries[40:], first=41)
        wait_for(120, *stores)
    assert raised, "the feed was to fail"
    assert (watched.wrong, watched.turns > 0) == ([], True)
    assert {after for _, _, after in watched.moves} >= {
        *AT_WORK - {TaskState.BLOCKED}, TaskState.HELD, TaskState.STARTING, TaskState.PARKED,
        TaskState.CLOSED,
    }  # fmt: skip
    expected = alone(redis_url, entries)
    assert [contents(store) for store in stores] == [expected] * 4
