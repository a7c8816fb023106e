"""The notebooks have the cells of their sources, and print what running them prints."""

import json

import pytest

from scripts import make_notebooks

NOTEBOOKS = sorted(make_notebooks.FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_what_running_its_source_gives(path, monkeypatch):
    stored = json.loads(path.read_text("utf-8"))
    made = make_notebooks.executed(path.with_suffix(".py").read_text("utf-8"))
    plain = make_notebooks.without_pictures
    assert plain(stored["cells"]) == plain(made), "python scripts/make_notebooks.py"
    assert any("image/png" in o.get("data", {}) for c in made for o in c.get("outputs", []))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)


def test_each_source_is_a_notebook():
    sources = {path.stem for path in make_notebooks.FOLDER.glob("*.py")}
    assert sources == {path.stem for path in NOTEBOOKS} == {"score_to_alarm", "table_to_answer"}
