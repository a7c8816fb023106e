"""The labels of answered examples, read from the input."""

import pytest

from workers.broker.feed_reader import PAGE_BYTES
from workers.feed.state import PinnedConfig, initial_fields
from workers.reading.true_labels import TrueLabels, _late_labels

COUNT = 40


def answers(count):
    """Return answers to the entries 1-0, 2-0, ..., and their payloads."""
    entries = [(b"%d-0" % i, []) for i in range(1, count + 1)]
    return entries, [{"status": "ok", "label": "b"}] * count


@pytest.fixture
def replies(store, monkeypatch):
    """The bytes of each reply to a read of entries."""
    sizes = []
    call = store._connection.call

    def measured(*command, **options):
        reply = call(*command, **options)
        if command[0] == "XRANGE":
            sizes.append(sum(len(part) for _, fields in reply for part in fields))
        return reply

    monkeypatch.setattr(store._connection, "call", measured)
    return sizes


def test_large_entries_are_read_a_few_at_a_time(store, replies):
    for i in range(1, COUNT + 1):
        label = "b" if i % 3 else "a"
        store.call("XADD", store.keys.input, f"{i}-0", "x", "1" * (1 << 20), "y", label)
    found = list(TrueLabels(store).of(*answers(COUNT)))
    assert [truth.label for truth in found] == ["b" if i % 3 else "a" for i in range(1, COUNT + 1)]
    assert [truth.is_right for truth in found] == [bool(i % 3) for i in range(1, COUNT + 1)]
    assert sum(replies) >= COUNT << 20
    assert max(replies) <= 2 * PAGE_BYTES


@pytest.mark.parametrize("config", ['{"predictor": 5}', '{"join": []}', "[", '{"semantics": 99}'])
def test_answers_are_shown_whatever_the_stored_configuration_is(store, config):
    fields = initial_fields(PinnedConfig(config, "00"))
    store.call("HSET", store.keys.state, "epoch", 1, *fields)
    store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "b")
    (truth,) = TrueLabels(store).of(*answers(1))
    assert (truth.label, truth.is_right) == ("b", True)


@pytest.mark.parametrize(
    "forged", ["<html>", "[]", '{"status":"label"}', '{"status":"label","example":[],"label":1}']
)
def test_what_another_program_wrote_among_the_answers_hides_no_late_label(store, forged):
    label = '{"status":"label","seq":2,"n":1,"example":"e1","label":"b","done":"learned"}'
    store.call("XADD", store.keys.out, "2-0", "p", forged)
    store.call("XADD", store.keys.out, "3-0", "q", "no payload")
    store.call("XADD", store.keys.out, "4-0", "p", label)
    assert _late_labels(store) == {"e1": "b"}
