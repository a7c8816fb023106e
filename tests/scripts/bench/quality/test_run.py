"""The quality benchmark: what it measures, keeps and says."""

import numpy as np
import orjson
import pytest

from scripts.bench.commands import app
from scripts.bench.quality import run as run_module
from scripts.bench.quality.report import means, tables
from scripts.bench.quality.run import Quality, QualityCell, cells_of, measure, run
from scripts.command_line import main
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

    monkeypatch.setitem(run_module.METHODS, "known", method)
    found = measure(QualityCell("phishing", 0, "known", examples=400))
    assert seen == [260, 400]
    assert found.examples == 400
    assert found.rows["known"].log_loss == pytest.approx(np.log(2.0))


def test_a_cell_that_cannot_run_here_is_named_and_the_rest_is_measured(tmp_path):
    cells = cells_of(("elec2", "phishing"), (RIVER,), 1, 300, tmp_path)
    found, skipped = run(cells, tmp_path / "kept.jsonl")
    assert [(one.stream, one.row) for one in found] == [("phishing", RIVER)]
    assert len(skipped) == 1
    assert skipped[0].startswith(f"elec2, {RIVER}: elec.csv is not in ")


def test_processes_find_what_one_process_finds(tmp_path):
    cells = cells_of(("phishing",), (RIVER, "rolling LR"), 1, 300)
    one, _ = run(cells, tmp_path / "one.jsonl")
    two, _ = run(cells, tmp_path / "two.jsonl", jobs=2)
    assert [(q.row, q.shuffles) for q in one] == [(q.row, q.shuffles) for q in two]


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
    assert [table.title.plain.partition(":")[0] for table in tables(found)] == [
        "phishing",
        "bananas",
        "car",
        "two classes",
        "more classes",
    ]


@pytest.mark.parametrize("json", [False, True])
def test_the_command_prints_tables_or_json(monkeypatch, capsys, tmp_path, json):
    asked = []

    def measured(cells, kept, jobs, tell):
        asked.append((len(cells), jobs))
        tell("1 of 1: done")
        rows = [quality_of("phishing", "headline", [0.3]), quality_of("phishing", SIGMOID, [0.29])]
        return rows, ["elec2: no file"]

    monkeypatch.setattr(run_module, "run", measured)
    chosen = ["--streams", "phishing,elec2", "--rows", f"headline;{SIGMOID}", "--shuffles", "3"]
    files = ["--results", str(tmp_path / "kept")]
    options = [*chosen, *files, "--jobs", "2", *(["--json"] if json else [])]
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["quality", *options])
    assert ended.value.code == 0
    out, error = capsys.readouterr()
    assert "not measured: elec2: no file" in error
    assert "1 of 1: done" in error
    assert asked == [((3 + 1) * 2, 2)]
    if json:
        lines = [orjson.loads(line) for line in out.splitlines()]
        assert lines[0]["log_loss"] == 0.3
        assert lines[-1]["mean_log_loss"] == 0.29
    else:
        assert out.index("phishing") < out.index(SIGMOID)
