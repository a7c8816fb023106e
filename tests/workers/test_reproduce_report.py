"""The registry of reproductions, and what the command prints and writes."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from workers import reproduce
from workers.commands import reproduce as command
from workers.errors import BadConfiguration
from workers.reproduce.parallel import each
from workers.reproduce.report import report

RESULT: dict[str, Any] = {
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


def printed(result: dict[str, Any]) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    for part in report(result):
        console.print(part)
    return console.export_text()


def test_the_paper_stands_beside_the_measurement_and_the_reason() -> None:
    text = printed(RESULT)
    assert "Someone (1999), a quick run" in text
    for cell in ("2626", "2627", "2620 to 2630", "3.0e-60", "[other] data", "0.25", "shuffled"):
        assert cell in text


def test_a_statement_without_a_setting_to_try_it_in_is_left_out() -> None:
    text = printed(RESULT)
    assert "1 of 2" in text
    assert "never tried" not in text


def test_the_command_offers_every_paper() -> None:
    assert [paper.value for paper in command.Paper] == [*reproduce.PAPERS, "all"]


class Fake:
    """A reproduction that takes no time."""

    def run(self, data_dir, quick, seed, progress=None):
        progress("half way")
        return RESULT | {"quick": quick, "seed": seed, "data_dir": str(data_dir)}

    def draw(self, result, out_dir):  # noqa: ARG002 - a reproduction takes it
        path = Path(out_dir) / "figure.png"
        path.write_bytes(b"png")
        return [path]


@pytest.fixture
def fake(monkeypatch) -> None:
    monkeypatch.setattr(command, "reproduction", lambda _: Fake())


def test_results_and_figures_are_written_where_asked(fake, tmp_path, capsys) -> None:
    command.reproduce(command.Paper.VENN, quick=True, out=tmp_path / "a" / "b", seed=3)
    stored = json.loads((tmp_path / "a" / "b" / "venn.json").read_text())
    assert (stored["seed"], stored["quick"]) == (3, True)
    assert (tmp_path / "a" / "b" / "figure.png").exists()
    shown = capsys.readouterr()
    assert "2627" in shown.out
    assert "half way" in shown.err
    assert "figure.png" in shown.err


def test_all_runs_every_paper_and_prints_one_json_object_a_line(fake, tmp_path, capsys) -> None:
    command.reproduce(command.Paper.ALL, out=tmp_path, json=True)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["paper"] for line in lines] == ["Someone (1999)"] * 5
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted(reproduce.PAPERS)


def test_an_output_that_is_no_directory_is_named(fake, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfiguration, match=r"file: cannot be written: File exists"):
        command.reproduce(command.Paper.VENN, out=tmp_path / "file")


def test_results_come_in_the_order_of_the_tasks_whoever_is_faster() -> None:
    told: list[str] = []
    assert each(abs, [-3, -2, -1], told.append) == [3, 2, 1]
    assert told == ["1 of 3: -3", "2 of 3: -2", "3 of 3: -1"]
