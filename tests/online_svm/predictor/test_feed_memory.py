"""The memory of a feed against a replay by hand; batches, restarts, late labels and erasures."""

from itertools import cycle

import numpy as np
import pytest
from memory_forests import probabilities

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.memory import rows as memory_rows
from online_svm.memory.encoder import Edges
from online_svm.predictor import memory_experts, memory_fits
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.refit.memory_trees import KINDS, LONG, MID, FitTask, fit
from online_svm.stream.cells import stacked
from online_svm.stream.input_batch import DelayedLabel, Example, InputBatch
from online_svm.stream.prediction import PredictionBlock

TWO = {"classes": ("0", "1"), "metrics_every": 100, "window": 200, "refit_every": 100}
N = 1_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Let fits begin at 200 rows, have few trees and few rows, and chunks have 100 rows."""
    monkeypatch.setattr(memory_fits, "FIRST_FIT", 200)
    monkeypatch.setattr(memory_fits, "MID_DISTANCE", 110)
    monkeypatch.setattr(memory_rows, "CHUNK_ROWS", 100)
    monkeypatch.setattr(memory_experts, "MEMORY_STACK_SIZES", (150, 300))
    for kind in (LONG, MID):
        small = kind._replace(trees_of_two=10, trees_of_more=10, half_life=kind.half_life and 60.0)
        monkeypatch.setattr(memory_fits, kind.name.upper(), small)
        monkeypatch.setitem(KINDS, kind.name, small)


def two_classes(n=N, seed=0):
    """Return rows and classes that a model of few rows does not learn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    wave = np.sin(3 * X[:, 0]) * 2 + np.sign(X[:, 1] * X[:, 2])
    return X, (wave + rng.logistic(size=n) * 0.4 > 0).astype(np.int64)


def config_of(**changes):
    return PredictorConfig.model_validate(TWO | changes)


def examples_of(kind):
    """Return a stream of examples, or of ids with labels, by the name of its kind."""
    X, y = two_classes()
    if kind == "named":
        colours = ["red", "blue", "green", "grey"]
        return [
            Example({"a": x[0], "b": colours[int(abs(x[1]) * 2) % 4]} | (
                {"new": x[2]} if i > 350 else {}), str(label))
            for i, (x, label) in enumerate(zip(X, y, strict=True))
        ]  # fmt: skip
    if kind == "discovered":
        return [
            Example(x, f"c{label + 2 * (i > 450 and x[3] > 1)}")
            for i, (x, label) in enumerate(zip(X, y, strict=True))
        ]
    if kind == "drift":
        y[N // 2 :] = 1 - y[N // 2 :]
    if kind == "late":
        found = [Example(x, id=str(i)) for i, x in enumerate(X)]
        late = [(i, DelayedLabel(str(i), str(y[i]))) for i in range(N) if i % 7]
        for i, label in reversed(late):
            found.insert(min(i + 20 + 13 * (i % 3), len(found)), label)
        return found
    return [Example(x, str(label)) for x, label in zip(X, y, strict=True)]


KINDS_OF_STREAM = {
    "plain": {},
    "named": {},
    "discovered": {"classes": None},
    "late": {"horizon": 60},
    "drift": {"on_drift": "reset", "alarm_level": 0.5, "tolerance": 0.001},
    "bound": {"memory": 1_000},
}


def play(predictor, items, first=0):
    """Let a predictor answer items in one call; return its points.

    `first`: number of items before these.
    """
    schema, rows, labels, places, delayed, ids = predictor.schema, [], [], [], {}, []
    for place, item in enumerate(items):
        if isinstance(item, DelayedLabel):
            delayed[place] = item
            continue
        x = item.x
        schema = schema.knowing(x).of_example(x)
        rows.append(schema.row(x))
        labels.append(item.y)
        places.append(place)
        ids.append(item.id)
    X = stacked(rows) if rows else np.empty((0, predictor.schema.dimension or 0))
    batch = InputBatch(X, labels, places, delayed, first, schema=schema, ids=ids)
    found = predictor.process(batch).found
    return [row for a in found if isinstance(a, PredictionBlock) for row in a.point.tolist()]


def copy_of(predictor, chunks=None):
    """Return a predictor restored from a snapshot, with the rows in it or in `chunks`."""
    copy = OnlinePredictor(predictor.config)
    if chunks is None:
        copy.restore(predictor.snapshot())
    else:
        copy.restore(predictor.snapshot(with_rows=False), chunks.values())
    return copy


@pytest.mark.parametrize("kind", KINDS_OF_STREAM)
def test_batches_and_restarts_change_no_byte(kind, monkeypatch):
    if kind == "bound":
        monkeypatch.setattr(memory_fits, "MAX_BYTES", 400 * 8 * 4)
    config, items = config_of(**KINDS_OF_STREAM[kind]), examples_of(kind)
    whole, parts = OnlinePredictor(config), OnlinePredictor(config)
    expected = play(whole, items)
    found, at, sizes, store, since = [], 0, cycle((1, 90, 7, 1, 64, 133, 19, 3)), {}, 0
    while at < len(items):
        size = next(sizes)
        found += play(parts, items[at : at + size], at)
        at += size
        if size == 7:
            parts = copy_of(parts)
        elif size == 64:
            store |= {chunk.index: chunk.data for chunk in parts.memory_chunks(since)}
            since = parts.memory_stop
            store = {i: data for i, data in store.items() if i >= parts.memory_first_chunk}
            parts = copy_of(parts, store)
    assert found == expected
    assert parts.snapshot() == whole.snapshot()
    assert whole.memory_status.fitted_at > 0
    assert whole.memory_status.rows <= (525 if kind == "bound" else N)


def replayed(X, y, present):
    """Return the answers with memory, by their definition."""
    n, p = len(y), np.repeat(present[:, None], 5, axis=1)  # shape (n, 5, 2)
    for kind, longest in ((memory_fits.LONG, 25_000), (memory_fits.MID, 110)):
        column = 1 if kind.name == "long" else 2
        at = 200
        starts = []
        while at < n:
            distance = min(int(0.4 * at), longest)
            starts.append((at, at + distance // 4))
            at += distance
        for (at, active), (_, until) in zip(starts, [*starts[1:], (n, n)], strict=True):
            edges = edges_at(X, at)
            newest = at - kind.size(at)
            no = np.zeros(4, dtype=bool)
            bins = Edges(edges).bins(X[newest:at], no)
            task = FitTask(kind, bins, edges, no, y[newest:at], 2, 0, at)
            p[active:until, column] = probabilities(fit(task), X[active:until])
    awake = 200 + 80 // 4
    for place, size in ((3, 150), (4, 300)):
        weights = np.array([1.0, 0.0, 0.0, 0.0])
        odds = np.zeros((n, 4, 2))
        odds[:, :3, 1] = np.log(p[:, :3, 1]) - np.log(p[:, :3, 0])
        odds[:, 3, 1] = 1.0
        for at in range(awake, n, 100):
            until = min(n, at + 100)
            if at > awake:
                first = max(awake, at - size)
                n_rows, inputs = at - first, np.ascontiguousarray(odds[first:at, :, 1].T)
                problem = Regression(
                    inputs, y[first:at] * 1.0, np.ones(n_rows), CENTRE, np.full(4, 5.0)
                )
                fit_ridge_logistic(problem, weights, 12, 0.05)
            sums = np.einsum("j,njk->nk", weights, odds[at:until])
            p[at:until, place] = np.exp(sums) / np.exp(sums).sum(axis=1, keepdims=True)
    prior = np.array([0.5, 0.125, 0.125, 0.125, 0.125])
    share, found = prior.copy(), present.copy()
    for i in range(awake, n):
        found[i] = share @ p[i]
        share = share * p[i, :, y[i]]
        share = 0.999 * share / share.sum() + 0.001 * prior
    return found, share


CENTRE = np.array([1.0, 0.0, 0.0, 0.0])


def edges_at(X, at):
    """Return the edges of a fit: those of the last time that rows had doubled."""
    fits = sorted(fits_until(at))
    renewed = 0
    for one in fits:
        renewed = one if one >= 2 * renewed else renewed
    return Edges.fit(X[:renewed], np.zeros(4, dtype=bool)).values


def fits_until(at):
    for longest in (25_000, 110):
        one = 200
        while one <= at:
            yield one
            one += min(int(0.4 * one), longest)


def test_answers_are_those_of_a_replay_by_hand():
    X, y = two_classes()
    items = examples_of("plain")
    present = np.array(play(OnlinePredictor(config_of(memory=0)), items))
    predictor = OnlinePredictor(config_of())
    found = np.array(play(predictor, items))
    expected, share = replayed(X, y, present)
    np.testing.assert_array_equal(found[:220], present[:220])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(list(predictor.memory_status.weights.values()), share, atol=1e-9)


def test_a_late_label_credits_what_was_said_at_the_answer():
    """Weights and trust follow the stored answers, as they were learned, and make the answers."""
    X, y = two_classes()
    predictor = OnlinePredictor(config_of(horizon=50))
    said, answers, learned, at_first = [], [], [], None
    for at in range(0, N, 50):
        examples = [Example(x, id=str(at + i)) for i, x in enumerate(X[at : at + 50])]
        for example in examples:
            learned.append(predictor.n)
            answers.append(predictor.step(example).probabilities)
            waiting = predictor.delayed_labels.known[example.id].answer
            said.append(waiting.block.member_outputs["memory"][waiting.row].T)
        for i in range(50):
            predictor.label(str(at + i), str(y[at + i]))
        weights = [*predictor.memory_status.weights.values()]
        at_first = at if at_first is None and weights[0] < 1.0 else at_first
    prior = np.array([0.5, 0.25 - 1e-9, 0.25 - 1e-9, 1e-9, 1e-9])
    shares, trusts = [prior] * 221, [np.full(2, 0.5)] * 221
    for i in range(220, predictor.n):
        *experts, average = said[i][:, y[i]]
        share = shares[-1] * experts
        shares.append(0.999 * share / share.sum() + 0.001 * prior)
        trust = trusts[-1] * np.array([experts[0], average]) ** (5.0 / (5.0 + i - learned[i]))
        trusts.append(0.9995 * trust / trust.sum() + 0.00025)
    assert (said[219] == said[219][0]).all()  # before there were trees
    # Trees answer from 220 labels on, which is row 270; after 50 of their labels they are heard.
    assert (predictor.n, at_first) == (950, 350)
    for row in range(N):
        n = learned[row]
        average = shares[n] @ said[row][:5] if row >= 270 else said[row][0]
        np.testing.assert_allclose(said[row][5], average, atol=1e-9)
        forecasts = np.array([said[row][0], average])
        expected = trusts[n] @ forecasts if row >= 370 else said[row][0]
        np.testing.assert_allclose(answers[row], expected, atol=1e-9)
    alone, of_average = trusts[-1]
    expected = of_average * shares[-1] + np.array([alone, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(weights, expected, atol=1e-9)


@pytest.mark.parametrize("without", ["learned again", "erased"])
def test_an_erased_person_is_in_no_row_and_no_tree(without):
    """The trees are those of a memory that has all rows but the person's."""
    X, y = two_classes(600)
    ids = ["person" if 100 <= i < 130 else f"other {i}" for i in range(600)]
    predictor = OnlinePredictor(config_of())
    labels = [str(k) for k in y]
    predictor.step_many(X, labels, ids=ids)
    if without == "erased":
        erased = predictor
        assert predictor.erase_rows(["person"]) == 30
    else:
        erased = OnlinePredictor(config_of())
        erased.step_many(X[300:], labels[300:], ids=ids[300:])
        chunks = [chunk.data for chunk in predictor.memory_chunks()]
        assert erased.adopt_rows(chunks, ["person"]) == 30
    assert erased.erase_rows(["person"]) == 0
    assert erased.memory_status.rows == 570
    np.testing.assert_allclose([*erased.memory_status.weights.values()], [0.5, *[0.125] * 4])
    kept = np.array(ids) != "person"
    no, rows, number = np.zeros(4, dtype=bool), X[kept], erased.memory_stop
    edges = Edges.fit(rows, no)
    task = FitTask(memory_fits.LONG, edges.bins(rows, no), edges.values, no, y[kept], 2, 0, number)
    trees = erased._engine.memory.long
    np.testing.assert_array_equal(probabilities(trees, X), probabilities(fit(task), X))
    copy, more = copy_of(erased), two_classes(300, seed=1)
    found = [one.step_many(more[0], [str(k) for k in more[1]])[0].point for one in (erased, copy)]
    np.testing.assert_array_equal(*found)
    assert copy.snapshot() == erased.snapshot()


def test_a_published_state_answers_with_the_trees():
    predictor = OnlinePredictor(config_of())
    play(predictor, examples_of("plain")[:400])
    X = two_classes(20, seed=2)[0]
    state = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    weights = state.expert_weights
    assert weights["long"] > 0.0
    assert sum(weights.values()) == pytest.approx(1.0)
    found = state.answer(X).point
    expected = [predictor.step(Example(x)).probabilities for x in X]
    np.testing.assert_array_equal(found, expected)


def test_a_snapshot_without_its_chunks_is_refused():
    predictor = OnlinePredictor(config_of())
    play(predictor, examples_of("plain")[:350])
    chunks = {chunk.index: chunk.data for chunk in predictor.memory_chunks()}
    assert sorted(chunks) == [0, 1, 2, 3]
    state = predictor.snapshot(with_rows=False)
    for lacking in range(4):
        copy = OnlinePredictor(predictor.config)
        with pytest.raises(InvalidSnapshot, match="rows of the chunks"):
            copy.restore(state, [data for index, data in chunks.items() if index != lacking])
    with pytest.raises(InvalidSnapshot, match="damaged"):
        copy.restore(state, [chunks[0][:-1] + bytes([chunks[0][-1] ^ 1])])
    play(predictor, examples_of("plain")[350:420])
    later = [chunk.data for chunk in predictor.memory_chunks()]
    copy.restore(state, later)  # rows that came after the snapshot are ignored
    assert copy.snapshot(with_rows=False) == state


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": 0},
        {"committee": "single"},
        {"learner": "psvm"},
        {"scores": "probability", "score_use": "alone"},
    ],
)
def test_some_feeds_have_no_memory(changes):
    predictor = OnlinePredictor(config_of(**changes))
    assert predictor.memory_status is None
    assert predictor.memory_chunks() == []
    assert predictor.erase_rows(["person"]) == predictor.adopt_rows([], []) == 0
