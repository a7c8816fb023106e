"""The Python answers of docs/how-to/common-questions.md run, are short, and print what they say."""

import re
from pathlib import Path

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
