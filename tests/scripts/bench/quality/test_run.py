"""The quality benchmark: what it measures, keeps and says."""

import numpy as np
import orjson
import pytest

from scripts.bench.commands import app
from scripts.bench.quality import cells as cells_module
from scripts.bench.quality import rows
from scripts.bench.quality import run as run_module
from scripts.bench.quality.cells import Cell, Measured, cells_of, measure
from scripts.bench.quality.figure import draw
from scripts.bench.quality.goals import goals
from scripts.bench.quality.kept import KeptCells
from scripts.bench.quality.report import means, tables
from scripts.bench.quality.run import Quality, run
from scripts.command_line import main
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import Published
from workers.history.backtest.result import scores

RIVER = "river LogisticRegression"
SIGMOID = "rolling SVC, sigmoid"


def scores_of(log_loss):
    """Return scores of which only the log loss matters."""
    return scores(
        Published(np.array([[0.5, 0.5], [0.5, 0.5]])), ("0", "1"), np.array([0, 1])
    ).model_copy(update={"log_loss": log_loss})


def quality_of(stream, row, losses, microseconds=10.0):
    return Quality(stream, row, 1250, microseconds, [scores_of(loss) for loss in losses])


def test_the_first_examples_are_answered_but_not_scored(monkeypatch):
    seen = []

    def method(X, codes, n_classes):
        seen.append(len(X))
        said = np.full((len(X), 2), 0.5)
        said[:250] = [1.0, 0.0]
        return {"known": Published(said)}

    monkeypatch.setitem(cells_module.METHODS, "known", method)
    found = measure(Cell("phishing", 0, "known", examples=400))
    assert seen == [260, 400]
    assert found.examples == 400
    assert found.rows["known"].log_loss == pytest.approx(np.log(2.0))


def test_a_cell_that_cannot_run_here_is_named_and_the_rest_is_measured(tmp_path):
    cells = cells_of(("elec2", "phishing"), (RIVER,), 1, 300, tmp_path)
    found, skipped = run(cells, KeptCells(tmp_path / "kept.jsonl"))
    assert [(one.stream, one.row) for one in found] == [("phishing", RIVER)]
    assert len(skipped) == 1
    assert skipped[0].startswith(f"elec2, {RIVER}: elec.csv is not in ")


def test_what_is_kept_is_not_measured_again(monkeypatch, tmp_path):
    path, cells = tmp_path / "kept.jsonl", cells_of(("phishing",), (RIVER,), 2, 300)
    first, _ = run(cells[:1], KeptCells(path))
    measured = []
    monkeypatch.setattr(run_module, "measure", lambda cell: measured.append(cell) or measure(cell))
    whole, _ = run(cells, KeptCells(path))
    assert measured == cells[1:]
    assert whole[0].shuffles[0] == first[0].shuffles[0]
    again, _ = run(cells, KeptCells(path))
    assert measured == cells[1:]
    assert again == whole


def test_processes_find_what_one_process_finds(tmp_path):
    cells = cells_of(("phishing",), (RIVER, "rolling LR"), 1, 300)
    one, _ = run(cells, KeptCells(tmp_path / "one.jsonl"))
    two, _ = run(cells, KeptCells(tmp_path / "two.jsonl"), jobs=2)
    assert [(q.row, q.shuffles) for q in one] == [(q.row, q.shuffles) for q in two]


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    path, (cell,) = tmp_path / "kept.jsonl", cells_of(("phishing",), (RIVER,), 1, 300)
    run([cell], KeptCells(path))
    line = path.read_bytes()
    path.write_bytes(line[:-20])
    assert KeptCells(path).get(cell) is None
    found, _ = run([cell], KeptCells(path))
    assert len(path.read_bytes().splitlines()) == 1
    assert KeptCells(path).get(cell).rows[RIVER] == found[0].shuffles[0]


def test_ours_are_measured_again_after_a_change_of_ours_and_peers_are_not(monkeypatch, tmp_path):
    kept = KeptCells(tmp_path / "kept.jsonl")
    own, peer = Cell("phishing", 0, "headline"), Cell("phishing", 0, RIVER)
    for cell in (own, peer):
        kept.add(cell, Measured(1250, 1.0, {"known": scores_of(0.3)}))
    monkeypatch.setattr(rows, "code_digest", lambda: "another")
    assert kept.get(own) is None
    assert kept.get(peer) is not None


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"no json", b'{"stream": "phishing"}'])
def test_a_file_of_something_else_is_refused(tmp_path, line):
    path = tmp_path / "kept.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(BadConfiguration, match="line 1: no cell of this benchmark"):
        KeptCells(path)


def test_means_are_over_the_streams_that_all_rows_of_them_have():
    found = [
        quality_of("phishing", "headline", [0.2, 0.4]),
        quality_of("bananas", "headline", [0.5]),
        quality_of("phishing", RIVER, [0.1]),
        quality_of("car", "headline", [0.7]),
    ]
    (mean,) = means(found, "two classes")
    assert (mean.row, mean.streams, mean.log_loss) == ("headline", 2, pytest.approx(0.4))
    assert found[0].error("log_loss") == pytest.approx(0.1)
    assert found[1].error("log_loss") is None
    assert [table.title.partition(":")[0] for table in tables(found)] == [
        "phishing",
        "bananas",
        "car",
        "two classes",
        "more classes",
    ]


def reached(found):
    return {goal.name.partition(": ")[2]: goal.is_reached for goal in goals(found)}


def test_two_classes_are_held_against_the_sigmoid_and_every_river_model():
    peers = [quality_of(name, SIGMOID, [0.3]) for name in ("phishing", "adult")]
    peers += [quality_of("phishing", RIVER, [0.25]), quality_of("adult", RIVER, [0.5])]
    good = [quality_of("phishing", "headline", [0.2]), quality_of("adult", "headline", [0.35])]
    found = reached([*good, *peers])
    assert found["mean log loss at most 0.94 of rolling SVC, sigmoid"]
    assert not found["better than it on 15 in 19 streams"]
    assert found["better than every river model on all"]
    assert found["log loss at most 0.215"]
    poor = [quality_of("phishing", "headline", [0.26]), quality_of("adult", "headline", [0.31])]
    found = reached([*poor, *peers])
    assert not found["mean log loss at most 0.94 of rolling SVC, sigmoid"]
    assert not found["better than every river model on all"]
    (told,) = (str(goal) for goal in goals([*poor, *peers]) if "river" in goal.name)
    assert told.endswith(f"worse on phishing ({RIVER})")


def test_more_classes_are_held_against_the_rolling_svc_that_is_best_on_each_stream():
    found = [
        quality_of("car", "headline", [0.3]),
        quality_of("car", SIGMOID, [0.9]),
        quality_of("car", "rolling SVC, tuned", [0.3]),
        quality_of("wine", "headline", [0.3]),
        quality_of("wine", SIGMOID, [0.5]),
        quality_of("wine", "rolling SVC, tuned", [0.9]),
    ]
    (goal,) = (one for one in goals(found) if "best" in one.name)
    assert goal.figure == "0.3000 to 0.4000, 0.750"
    assert goal.is_reached


def test_a_row_is_on_the_front_where_none_is_better_and_cheaper(tmp_path):
    found = [
        quality_of("phishing", "headline", [0.2], 40.0),
        quality_of("phishing", "single", [0.3], 50.0),
        quality_of("phishing", RIVER, [0.4], 20.0),
    ]
    front = {goal.name: goal.is_reached for goal in goals(found) if "front" in goal.name}
    assert front == {
        "two classes: headline on the front": True,
        "two classes: single on the front": False,
    }
    draw(found, tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("json", [False, True])
def test_the_command_prints_tables_or_json_and_goals_last(monkeypatch, capsys, tmp_path, json):
    asked = []

    def measured(cells, kept, jobs, tell):
        asked.append((len(cells), jobs))
        tell("1 of 1: done")
        rows = [quality_of("phishing", "headline", [0.3]), quality_of("phishing", SIGMOID, [0.29])]
        return rows, ["elec2: no file"]

    monkeypatch.setattr(run_module, "run", measured)
    chosen = ["--streams", "phishing,elec2", "--rows", f"headline;{SIGMOID}", "--shuffles", "3"]
    files = ["--results", str(tmp_path / "kept"), "--figure", str(tmp_path / "front.svg")]
    options = [*chosen, *files, "--jobs", "2", *(["--json"] if json else [])]
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["quality", *options])
    assert ended.value.code == 0
    out, error = capsys.readouterr()
    assert "not measured: elec2: no file" in error
    assert "1 of 1: done" in error
    assert asked == [((3 + 1) * 2, 2)]
    assert (tmp_path / "front.svg").exists()
    if json:
        lines = [orjson.loads(line) for line in out.splitlines()]
        assert lines[0]["log_loss"] == 0.3
        assert "reached" in lines[-1]
    else:
        assert out.index(SIGMOID) < out.index("NOT REACHED")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--streams", "phising"], "--streams phising: unknown; one of phishing,bananas,"),
        (["--streams", "digits"], "--streams digits: unknown"),
        (["--rows", "river"], "--rows river: unknown; one of headline;"),
    ],
)
def test_a_stream_or_row_that_is_not_known_is_named(capsys, options, told):
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["quality", *options])
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())
