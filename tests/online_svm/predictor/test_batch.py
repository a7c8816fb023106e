"""A batch of examples and labels: what is found of it names the item that caused it."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import DelayedLabel, InputBatch

COUNT = 400


def made(**changes):
    small = {"classes": ["a", "b"], "committee": "single", "window": 120, "refit_every": 20}
    every = {"metrics_every": 10, "tolerance": 0.001, "alarm_level": 0.5}
    return OnlinePredictor(PredictorConfig.model_validate(small | every | changes))


def rows():
    """Return rows, and labels that turn over again and again: alarms are sure to come."""
    X = np.random.default_rng(3).normal(size=(COUNT, 2))
    codes = (X[:, 0] > 0).astype(int)
    codes ^= np.arange(COUNT) // 100 % 2
    return X, ["ab"[code] for code in codes]


def late_batch(X, labels, delay):
    """Return examples without labels, each label `delay` examples later; a gap after each."""
    indices, late, index = [], {}, 0
    for i in range(len(X)):
        indices.append(index)
        if i >= delay:
            index += 1
            late[index] = DelayedLabel(str(i - delay), labels[i - delay])
        index += 2  # an item that is neither
    return InputBatch(X, [None] * len(X), indices, late, ids=[str(i) for i in range(len(X))])


def one_by_one(predictor, batch):
    """Return the reports and alarms of each item, which is a batch of its own."""
    found = []
    for index in sorted({*batch.indices, *batch.delayed}):
        chosen = batch.without({i for i in batch.indices if i != index})
        late = {index: batch.delayed[index]} if index in batch.delayed else {}
        alone = InputBatch(chosen.X, chosen.labels, chosen.indices, late, ids=chosen.ids)
        result = predictor.process(alone)
        found += [("report", index, report.n) for _, report in result.reports]
        found += [("alarm", index, alarm.n) for _, alarm in result.alarms]
    return sorted(found)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_report_and_an_alarm_name_the_item_that_caused_them(is_late):
    X, labels = rows()
    changes = {"horizon": 12} if is_late else {}
    batch = InputBatch(X, labels, range(5, 5 + 3 * COUNT, 3))
    batch = late_batch(X, labels, 7) if is_late else batch
    result = made(**changes).process(batch)
    found = [("report", cause, report.n) for cause, report in result.reports]
    found += [("alarm", cause, alarm.n) for cause, alarm in result.alarms]
    assert sorted(found) == one_by_one(made(**changes), batch)
    assert {kind for kind, _, _ in found} == {"report", "alarm"}


def test_an_answer_names_its_example_and_what_is_left_out_has_none():
    class Seen(dict):
        is_used = True

        def first(self, name):
            return self.get(name)

        def add(self, name, seq, _waiting):
            self[name] = seq

    X, seen = np.eye(4), Seen(b=3)
    batch = InputBatch(X, ["x", "y", "z", "x"], [1, 4, 5, 9], first=100, ids=list("abcd"))
    predictor = OnlinePredictor(PredictorConfig())
    result = predictor.process(batch, seen, max_classes=1)
    assert result.repeats == {4: 3}
    assert {index: error.code for index, error in result.rejected.items()} == {
        5: "too_many_classes"
    }
    # The second answer knows the class of the first: they are two blocks.
    assert [list(answered.indices) for answered in result.answers] == [[1], [9]]
    assert [result.learned_before(index) for index in (0, 1, 4, 5, 9, 10)] == [0, 0, 1, 1, 1, 2]
    assert seen == {"b": 3, "a": 101, "d": 109}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_settled_row_has_its_label_and_the_answer_that_it_got(is_late):
    X, labels = rows()
    late = late_batch(X, labels, 7)
    predictor = made(**({"horizon": 12} if is_late else {}))
    points, settled = [], []
    for begin in range(0, COUNT, 50):
        here = slice(begin, begin + 50)
        batch = InputBatch(X[here], labels[here], range(50))
        if is_late:
            indices = late.indices[here]
            next_ones = range(indices[0], indices[-1] + 2)
            sent = {index: late.delayed[index] for index in next_ones if index in late.delayed}
            batch = InputBatch(X[here], [None] * 50, indices, sent, ids=late.ids[here])
        result = predictor.process(batch)
        points += [point for _, block in result.answers for point in block.point.tolist()]
        settled += result.settled
    names, i = predictor.labels.labels, 0
    for block, codes, columns, _, seen, before in settled:
        stop = i + len(block)
        assert seen.tolist() == X[i:stop].tolist()
        assert [names[code] for code in codes] == labels[i:stop]
        assert [block.classes[column] for column in columns] == labels[i:stop]
        assert block.point.tolist() == points[i:stop]
        assert before.tolist() == list(range(i, stop))
        i = stop
    assert i == predictor.n == (COUNT - 12 if is_late else COUNT)
