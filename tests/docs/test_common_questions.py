"""The Python answers of docs/how-to/common-questions.md run, are short, and print what they say."""

import re
from pathlib import Path

import pytest
from system_tools import package

PAGE = (Path(__file__).parents[2] / "docs/how-to/common-questions.md").read_text("utf-8")


def test_each_answer_prints_the_figures_beside_it(capsys):
    names, answered = {}, 0
    for block in re.findall(r"(?<!-->\n)```python\n(.*?)```", PAGE, re.S):
        exec(block, names)  # our own page
        printed = capsys.readouterr().out.split()
        said = re.findall(r"print\(.*\)  # (.*)", block)
        assert printed == " ".join(said).split()
        answered += bool(said)
    assert answered == 3


def test_each_answer_has_at_most_ten_lines():
    for block in re.findall(r"```(?:python|sh)\n(.*?)```", PAGE, re.S):
        assert len([line for line in block.splitlines() if line]) <= 10


@pytest.mark.scale  # MLflow brings eighty packages: where it is installed
@pytest.mark.filterwarnings("default")  # of the libraries that MLflow uses
@pytest.mark.timeout(300)
def test_a_model_kept_in_mlflow_gives_the_same_probabilities(capsys, tmp_path, monkeypatch):
    package("mlflow", "pip install mlflow skops")
    package("skops", "pip install mlflow skops")
    monkeypatch.chdir(tmp_path)
    (block,) = (text for text in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "mlflow" in text)
    exec(block, {})  # our own page
    assert capsys.readouterr().out.split()[-1] == "True"
