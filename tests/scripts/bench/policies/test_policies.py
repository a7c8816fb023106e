"""`bench policies`: its streams, what it counts, and going on where it was cut off."""

import math

import numpy as np
import orjson
import pytest
from sklearn.neighbors import KNeighborsClassifier

from scripts.bench import kept
from scripts.bench.commands import app
from scripts.bench.policies import run as run_module
from scripts.bench.policies.run import (
    METHODS,
    PolicyCell,
    PolicyLosses,
    StreamAnswers,
    cells_of,
    measure,
    run,
    scored,
)
from scripts.bench.policies.streams import DRAWN, ChangingStream, stream
from scripts.command_line import main


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_is_a_draw_whose_change_is_in_the_middle(name):
    one, again, other = (stream(name, seed, 1000) for seed in (1, 1, 2))
    assert (len(one.X), len(one.codes), one.change) == (1000, 1000, 500)
    assert set(one.codes.tolist()) == {0, 1}
    assert np.array_equal(one.X, again.X)
    assert np.array_equal(one.codes, again.codes)
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("name", ["abrupt", "exchange"])
def test_what_was_right_before_an_abrupt_change_is_worse_after_it(name):
    one = stream(name, 0, 4000)
    model = KNeighborsClassifier(25).fit(one.X[:1500], one.codes[:1500])
    right = model.predict(one.X) == one.codes
    assert right[1500:2000].mean() > right[2000:].mean()
    if name == "exchange":
        assert right[2000:].mean() < 0.2


def test_a_gradual_change_begins_and_ends_as_the_abrupt_one():
    sudden, slow = stream("abrupt", 0, 2000), stream("gradual", 0, 2000)
    same = (sudden.X == slow.X).all(axis=1)
    assert same[:1000].all()
    assert same[1400:].all()
    assert 0.35 < same[1000:1400].mean() < 0.65
    assert same[1000:1100].mean() < same[1300:1400].mean()


def test_two_categories_swap_their_rates():
    one = stream("swap", 0, 10_000)
    category = one.X[:, 0]
    rates = [
        one.codes[begin : begin + 5000][category[begin : begin + 5000] == which].mean()
        for begin in (0, 5000)
        for which in (0, 1)
    ]
    assert rates == pytest.approx([0.2, 0.6, 0.6, 0.2], abs=0.03)


def test_a_rare_class_stays_as_rare_and_as_far_away_when_it_moves():
    one = stream("rare", 0, 10_000)
    for half, axis in ((slice(0, 5000), 0), (slice(5000, None), 1)):
        X, is_rare = one.X[half], one.codes[half] == 1
        assert is_rare.mean() == pytest.approx(0.01, abs=0.005)
        apart = X[is_rare].mean(axis=0) - X[~is_rare].mean(axis=0)
        assert apart[axis] == pytest.approx(3.0, abs=0.5)
        assert apart[1 - axis] == pytest.approx(0.0, abs=0.5)


def test_alarms_that_are_only_reported_change_no_probability():
    asked = stream("exchange", 0, 1000)
    none, report = (METHODS[name](asked) for name in ("none", "report"))
    assert np.array_equal(none.probabilities, report.probabilities)
    assert none.acted == report.acted == []


def test_a_reset_is_silent_for_a_while_and_a_refit_is_not():
    asked = stream("exchange", 0, 2000)
    refit, reset = (METHODS[name](asked) for name in ("refit", "reset"))
    assert refit.acted
    assert refit.acted[0] == reset.acted[0] > 1000
    silent = np.flatnonzero(reset.is_warming[1000:]) + 1000
    assert silent[0] == reset.acted[0]
    assert (reset.probabilities[silent] == 0.5).all()
    assert not refit.is_warming[1000:].any()
    assert scored(asked, reset).warming == len(silent)


def test_a_silent_answer_counts_as_all_classes_alike():
    n, classes, change = 400, 4, 300
    said = np.tile([0.7, 0.1, 0.1, 0.1], (n, 1))
    is_warming = np.zeros(n, dtype=np.bool_)
    is_warming[:20] = is_warming[300:310] = True
    said[is_warming] = 1 / classes
    codes = np.zeros(n, dtype=np.int64)
    codes[350:] = 1
    found = scored(
        ChangingStream(np.zeros((n, 1)), codes, classes, change),
        StreamAnswers(said, is_warming, []),
    )
    of_answered = 90 * -math.log(0.7) + 50 * -math.log(0.1)  # of 250 ... 399 but for ten
    assert found.log_loss_answered == pytest.approx(of_answered / 140)
    assert found.log_loss == pytest.approx((of_answered + 10 * math.log(4)) / 150)
    after = 10 * math.log(4) + 40 * -math.log(0.7) + 50 * -math.log(0.1)
    assert found.log_loss_after == pytest.approx(after / 100)
    assert found.warming == 10  # those before the first model followed no reset
    unknown = scored(
        ChangingStream(np.zeros((n, 1)), codes, classes, None), StreamAnswers(said, is_warming, [])
    )
    assert unknown.log_loss_after is None


def test_a_stream_that_was_never_answered_is_scored_as_all_classes_alike():
    asked = ChangingStream(np.zeros((300, 1)), np.zeros(300, dtype=np.int64), 2, None)
    found = scored(asked, StreamAnswers(np.full((300, 2), 0.5), np.ones(300, dtype=np.bool_), []))
    assert found == PolicyLosses(pytest.approx(math.log(2)), None, None, 0, [])


def test_of_recorded_streams_there_is_one_draw():
    cells = cells_of(("elec2", "swap"), ("none", "reset"), 3, 1000)
    assert [(cell.stream, cell.draw) for cell in cells[:4]] == [("elec2", 0), ("swap", 0)] * 2
    assert [cell.draw for cell in cells[4:]] == [1, 1, 2, 2]
    assert {cell.stream for cell in cells[4:]} == {"swap"}


def test_a_peer_answers_the_same_examples():
    found = measure(PolicyCell("exchange", 0, "river ARF", 600))
    assert 0.0 < found.log_loss_after < 2.0
    assert (found.warming, found.acted) == (0, [])


def test_ours_are_measured_again_after_a_change_of_ours_and_peers_are_not(monkeypatch):
    cells = [PolicyCell("swap", 0, method, 500) for method in METHODS]
    before = [cell.key for cell in cells]
    monkeypatch.setattr(kept, "code_digest", lambda: "another")
    after = [cell.key for cell in cells]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False] * 4 + [True]


def figures(loss, after=0.5):
    return PolicyLosses(loss, after, loss, 20, [5040])


def test_a_run_goes_on_from_what_is_kept_and_gives_means(tmp_path, monkeypatch):
    measured = []

    def one(cell):
        measured.append(cell)
        return figures(0.25 + 0.5 * cell.draw, None if cell.stream == "elec2" else 0.5)

    monkeypatch.setattr(run_module, "measure", one)
    cells, file = cells_of(("elec2", "swap"), ("none", "reset"), 2, 1000), tmp_path / "kept.jsonl"
    list(run(cells[:3], file))
    lines = list(run(cells, file))
    assert measured == cells
    assert [(line.stream, line.method) for line in lines] == [
        ("elec2", "none"),
        ("elec2", "reset"),
        ("swap", "none"),
        ("swap", "reset"),
    ]
    swap = lines[2].plain()
    assert (swap["log_loss"], swap["log_loss_error"]) == (0.5, 0.25)
    assert (swap["draws"], swap["warming"], swap["acted"]) == (2, 20, [[5040], [5040]])
    elec2 = lines[0].plain()
    assert (elec2["log_loss_error"], elec2["log_loss_after"]) == (None, None)
    assert "log loss 0.2500  " in str(lines[0])
    assert "log loss 0.5000 ± 0.2500" in str(lines[2])


def test_a_stream_whose_file_is_not_there_is_named_and_the_rest_is_measured(tmp_path):
    cells = cells_of(("elec2", "swap"), ("none",), 1, 500, tmp_path)
    elec2, swap = run(cells, tmp_path / "kept.jsonl")
    assert "elec.csv is not in " in elec2.plain()["skipped"]
    assert "elec2           none       not run: elec.csv" in str(elec2)
    assert swap.plain()["draws"] == 1


@pytest.mark.parametrize("json", [False, True])
def test_the_command_prints_a_line_for_each_stream_and_method(monkeypatch, capsys, tmp_path, json):
    monkeypatch.setattr(run_module, "measure", lambda _: figures(0.25))
    asked = ["--streams", "rare,swap", "--rows", "reset,river ARF", "--draws", "2"]
    kept = ["--results", str(tmp_path / "kept"), *(["--json"] if json else [])]
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["policies", *asked, *kept])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    if json:
        found = [(one["stream"], one["method"]) for one in map(orjson.loads, lines)]
    else:
        found = [(line[:16].strip(), line[16:27].strip()) for line in lines]
    assert found == [(s, m) for s in ("rare", "swap") for m in ("reset", "river ARF")]
