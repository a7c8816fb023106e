"""The registry of reproductions, and what the command prints and writes."""

import io
import json

import pytest
from rich.console import Console

from scripts import papers as reproduce
from scripts.download_data import FILES
from scripts.papers import command
from scripts.papers.report import report
from scripts.parallel import each
from workers.cli.common import note
from workers.errors import BadConfiguration
from workers.push.datasets import DataNotFound, missing

RESULT = {
    "paper": "Someone (1999)",
    "quick": True,
    "seed": 0,
    "rows": [
        {"what": "errors", "paper": 2626, "measured": 2627, "range": [2620, 2630], "reason": None},
        {"what": "p", "paper": "> .15", "measured": 3e-60, "range": None, "reason": "[other] data"},
    ],
    "claims": [
        {"claim": "it is so", "source": "section 1", "holds": 1, "of": 2, "not_in": ["wine"]},
        {"claim": "never tried", "source": "section 2", "holds": 0, "of": 0, "not_in": []},
    ],
    "tables": [{"title": "more", "columns": ["a", "b"], "rows": [["x", 0.25]]}],
    "notes": ["shuffled"],
}


def test_the_paper_stands_beside_the_measurement_and_the_reason():
    console = Console(width=120, record=True, file=io.StringIO())
    for part in report(RESULT):
        console.print(part)
    text = console.export_text()
    assert "Someone (1999), a quick run" in text
    for cell in ("2626", "2627", "2620 to 2630", "3.0e-60", "[other] data", "0.25", "shuffled"):
        assert cell in text
    assert "1 of 2" in text
    assert "never tried" not in text  # there was no setting to try it in


class Fake:
    """A reproduction that takes no time."""

    PAPER, NOTES = "Someone (1999)", ("shuffled",)

    def __init__(self, data=(), ran=None):
        self.DATA, self.ran = data, ran

    def run(self, _):
        note("half way")
        if self.ran is not None:
            self.ran.append(self.DATA)
        return {key: RESULT[key] for key in ("rows", "claims", "tables")}


@pytest.fixture
def fake_without_data(monkeypatch, tmp_path):
    """As on a new machine; returns the data of what is run, as it runs."""
    ran = []
    data = {name: reproduce.experiments(name).DATA for name in reproduce.PAPERS}
    monkeypatch.setenv("ONLINE_SVM_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(reproduce, "experiments", lambda name: Fake(data[name], ran))
    return ran


def test_all_without_data_says_so_first_and_runs_what_needs_none(
    fake_without_data, tmp_path, capsys
):
    command.reproduce(command.Paper("all"), out=tmp_path / "out")
    assert fake_without_data == [()], "psvm alone needs no data"
    told = capsys.readouterr().err
    before = told[: told.index("half way")]
    for name, lacks in {
        "platt": "a1a, a9a, a9a.t, w1a, w7a, w7a.t",
        "venn": "a9a, a9a.t, car.data, winequality-red.csv",
        "implied": "german.data-numeric",
    }.items():
        assert f"{name}: no data ({lacks}): left out\n" in before
    assert "python scripts/download_data.py --out DIR fetches the data" in before


@pytest.mark.parametrize("paper", [paper for paper in reproduce.PAPERS if paper != "psvm"])
def test_one_paper_without_its_data_is_refused_before_it_computes(
    fake_without_data, tmp_path, capsys, paper
):
    with pytest.raises(DataNotFound, match=rf"^{paper}: no data .*scripts/download_data.py"):
        command.reproduce(command.Paper(paper), out=tmp_path / "out")
    assert fake_without_data == []
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out").exists()


def test_the_public_command_that_is_named_fetches_every_file_that_is_needed():
    fetched = {file.name for file in FILES}
    for name in reproduce.PAPERS:
        assert set(missing(reproduce.experiments(name).DATA, "/nowhere")) <= fetched


def test_the_data_that_is_asked_for_is_what_the_experiments_load():
    from scripts.papers import evidential
    from scripts.papers.platt import TASKS
    from scripts.papers.venn import experiments as venn

    data = {name: set(reproduce.experiments(name).DATA) for name in reproduce.PAPERS}
    tasks = [task for task in TASKS if task.training]
    assert data["platt"] == {name for task in tasks for name in (task.training, task.test)}
    assert data["venn"] == {*venn.PAPER_VALUES, "a9a", "a9a.t"}
    tables = {*evidential.TABLE_1, *evidential.TABLE_2}
    assert data["evidential"] == tables - {"adult"} | {"a9a", "a9a.t"}


def test_results_are_printed_and_written_where_asked_or_the_place_is_named(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(reproduce, "experiments", lambda _: Fake())
    command.reproduce(command.Paper("venn"), quick=True, out=tmp_path / "a" / "b", seed=3)
    stored = json.loads((tmp_path / "a" / "b" / "venn.json").read_text())
    assert (stored["seed"], stored["quick"]) == (3, True)
    shown = capsys.readouterr()
    assert "2627" in shown.out
    assert "half way" in shown.err
    assert "venn.json" in shown.err
    command.reproduce(command.Paper("all"), out=tmp_path, json=True)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["paper"] for line in lines] == [Fake.PAPER] * len(reproduce.PAPERS)
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted(reproduce.PAPERS)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfiguration, match=r"file: cannot be written: File exists"):
        command.reproduce(command.Paper("venn"), out=tmp_path / "file")


def test_results_come_in_the_order_of_the_tasks_whoever_is_faster():
    told = []
    assert each(abs, [-3, -2, -1], told.append) == [3, 2, 1]
    assert told == ["1 of 3: -3", "2 of 3: -2", "3 of 3: -1"]
